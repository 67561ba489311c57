"""Files that the reference read outside its project, and where they lie here."""

from __future__ import annotations

from pathlib import Path

from reprobundle.format.digests import digest_file
from reprobundle.format.record import FileRead, Record
from reprobundle.replay.plan import ReplayPlan
from reprobundle.run.command import replace_paths, replace_words
from reprobundle.run.own_words import own_path, own_words


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
    places: dict[str, str] = {}
    for read in _external(reference):
        origin = str(own_path(read.origin))
        copy = _copy_of(read, plan, extracted)
        if copy is not None and not _has_content(copy, read.blake3):
            return {}, f"{copy} is not the {read.origin} that was read"
        named = any(replace_paths(part, {origin: ""}) != part for part in argv)
        if named and copy is not None:
            places[origin] = str(copy)
        elif not _has_content(Path(origin), read.blake3):
            return {}, _not_in_place(read, named=named)
    return places, ""


def external_reads(
    reference: Record, *, plan: ReplayPlan, extracted: Path
) -> dict[Path, FileRead]:
    """Return the reference's external files by each path they can have here."""
    found = {}
    for read in _external(reference):
        found[own_path(read.origin).resolve()] = read
        copy = _copy_of(read, plan, extracted)
        if copy is not None:
            found[copy.resolve()] = read
    return found


def _external(reference: Record) -> list[FileRead]:
    return [read for read in reference.reads if read.path.startswith("external:")]


def _copy_of(read: FileRead, plan: ReplayPlan, extracted: Path) -> Path | None:
    """Return a file with the content that was read, the caller's first."""
    given = plan.externals.get(read.origin)
    if given is not None or not read.member:
        return given
    return extracted / read.member


def _not_in_place(read: FileRead, *, named: bool) -> str:
    """Return what to do about a file that is not where the program looks for it."""
    what = f"{read.origin} is not on this machine with the sealed content"
    if read.member:
        return f"{what}; extract {read.member} to that place"
    if named:
        return f"{what}; its holder can replay with --data {read.origin}=FILE"
    return f"{what}; put it there, for the program looks for it by itself"


def _has_content(path: Path, digest: str) -> bool:
    try:
        return digest_file(path) == digest
    except OSError:
        return False
