"""Files that the reference read outside its project, and where they lie here."""

from __future__ import annotations

from pathlib import Path

import msgspec

from reprobundle.format.digests import digest_file
from reprobundle.format.record import FileRead, Record
from reprobundle.replay.plan import ReplayPlan
from reprobundle.run.command import replace_paths, replace_words
from reprobundle.run.outside import as_withheld, external, places, shown
from reprobundle.run.own_words import own_words
from reprobundle.run.withheld import problem


def placed(
    reference: Record, *, plan: ReplayPlan, extracted: Path
) -> tuple[dict[str, str], str]:
    """Return where external files lie here, or why the command cannot run.

    A file that the command line names is taken from the caller or from the bundle, in
    the place of that argument; one that the program finds by itself must lie
    where it was.

    Args:
        reference: The record of the run that is made again.
        plan: Where the caller says that files are.
        extracted: Folder with the bundle's members.

    Returns:
        Path as the arguments name it on this machine → path of the file, and an
        empty string; or the reason.
    """
    words = own_words(reference.command.placeholders)
    argv = [replace_words(part, words) for part in reference.command.argv]
    found: dict[str, str] = {}
    for read in external(reference):
        copy = _copy_of(read, plan, extracted)
        is_right = copy is not None and _has_content(copy, read.blake3)
        names = [str(place) for place in places(read)]
        named = [name for name in names if _is_named(name, argv)]
        if named and is_right:
            found.update(dict.fromkeys(named, str(copy)))
        elif not any(_has_content(Path(name), read.blake3) for name in names):
            if named and copy is not None:
                return {}, _other_content(read, copy)
            given = is_right and read.origin in plan.externals
            return {}, _not_in_place(read, named=bool(named), given=given)
    return found, ""


def _is_named(path: str, argv: list[str]) -> bool:
    return any(replace_paths(part, {path: ""}) != part for part in argv)


def external_reads(
    reference: Record, *, plan: ReplayPlan, extracted: Path
) -> dict[Path, FileRead]:
    """Return the reference's external files by each path they can have here."""
    found = {}
    for read in external(reference):
        found.update({place.resolve(): read for place in places(read)})
        copy = _copy_of(read, plan, extracted)
        if copy is not None:
            found[copy.resolve()] = read
    return found


def _copy_of(read: FileRead, plan: ReplayPlan, extracted: Path) -> Path | None:
    """Return a file with the content that was read, the caller's first."""
    given = plan.externals.get(read.origin)
    if given is not None or not read.member:
        return given
    return extracted / read.member


def _other_content(read: FileRead, copy: Path) -> str:
    """Return what is wrong with a file that was given or extracted."""
    [sought] = as_withheld([read])
    sought = msgspec.structs.replace(sought, name=shown(read))
    return problem(sought, {sought.name: copy}) or f"{copy} changed while it was read"


def _not_in_place(read: FileRead, *, named: bool, given: bool) -> str:
    """Return what to do about a file that is not where the program looks for it."""
    name = shown(read)
    what = f"{name} is not on this machine with the sealed content"
    if given:
        return (
            f"{what}; the program looks for it there by itself, so --data cannot give "
            "it: copy it to that place"
        )
    if read.member:
        return f"{what}; extract {read.member} to that place"
    if named:
        return f"{what}; its holder can replay with --data {name}=FILE or --data FOLDER"
    return f"{what}; put it there, for the program looks for it by itself"


def _has_content(path: Path, digest: str) -> bool:
    try:
        return digest_file(path) == digest
    except OSError:
        return False
