"""``reprobundle split`` and ``reprobundle join``."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reprobundle.cli.data_use import folder_of_copies, note, override_option, used
from reprobundle.cli.options import (
    DESTINATIONS,
    say,
    size_bytes,
)
from reprobundle.cli.paths import STANDARD, named
from reprobundle.cli.standard_input import bundle_file, bundle_or_standard_input, send

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reprobundle.run.copies import DataUse
    from reprobundle.verify.fit.dividing import Budget

_SUFFIX = ".rpb.zip"


@click.command()
@bundle_or_standard_input
@click.option(
    "--for",
    "destination",
    type=click.Choice(DESTINATIONS),
    help="Where the first part is to go.",
)
@click.option(
    "--most",
    type=size_bytes,
    metavar="SIZE",
    help="Size of the first part, if it is another one than --for allows.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    callback=named,
    help="The first part. [default: NAME.part1.rpb.zip]",
)
@click.option(
    "--rest",
    type=click.Path(path_type=Path),
    callback=named,
    help="The second part. [default: NAME.part2.rpb.zip]",
)
@override_option
def split(
    *,
    bundle: Path,
    destination: str | None,
    most: int | None,
    output: Path | None,
    rest: Path | None,
    override: str,
) -> int:
    """Split a bundle in two: what is needed first fits, the rest is another file.

    The first part has all documents, the project and attached replays, and names the
    second by its digest. Both keep the bundle's id. verify says of a part what it did
    not look at, and never more than INCOMPLETE; join gives the whole back.
    """
    from reprobundle.format.parting import split_bundle
    from reprobundle.format.reader import open_bundle
    from reprobundle.report.text import plural
    from reprobundle.verify.fit.dividing import moved_members

    stem = bundle.name.removesuffix(_SUFFIX)
    first = output or Path(f"{stem}.part1{_SUFFIX}")
    rest = rest or first.parent / f"{stem}.part2{_SUFFIX}"
    for path in (first, rest):
        if path.exists():
            raise click.UsageError(f"{path} exists already: choose another name")
    if first.resolve() == rest.resolve():
        raise click.UsageError("both parts have one name")
    with open_bundle(bundle) as opened:
        use = used(opened, override, what="a split", travels=True)
        moved = moved_members(opened, _budget(destination, most))
        note(use, "export", first)
        note(use, "export", rest)
        split_bundle(opened, moved, first=first, rest=rest)
        taken = sum(opened.members[path].size_bytes for path in moved)
        count = len(opened.members)
    for path, words in (
        (first, f"{count - len(moved):,} of {count:,} members"),
        (rest, f"{plural(len(moved), 'member')} of {taken:,} bytes"),
    ):
        say(f"{path}  {path.stat().st_size:,} bytes, {words}")
    say(f"the whole again: reprobundle join {first} {rest} -o {bundle.name}")
    return 0


def _budget(destination: str | None, most: int | None) -> Budget:
    from reprobundle.verify.fit.dividing import Budget, budget_of

    if most is not None:
        return Budget(most)
    if destination is None:
        raise click.UsageError("say how large the first part may be: --for or --most")
    return budget_of(destination)


@click.command()
@click.argument("parts", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path),
    help="The whole bundle, - for standard output; a file that is there is not "
    "overwritten.",
)
@override_option
def join(*, parts: tuple[Path, ...], output: Path, override: str) -> int:
    """Put the two PARTS of a bundle together, byte for byte as it was.

    Every digest is proven first. A part may be - (standard input: a file, or a text
    out of a clipboard); a whole bundle from there is written as a file.
    """
    if len(parts) > 2 or parts.count(Path("-")) > 1:
        raise click.UsageError("give the two parts of one bundle, at most one as -")
    is_sent = output == STANDARD
    if is_sent and sys.stdout.isatty():
        raise click.UsageError(
            "a bundle is no text for a terminal: name a file with -o, or lead the "
            "output into one"
        )
    if not is_sent and output.exists():
        raise click.UsageError(f"{output} exists already: choose another name")
    with ExitStack() as stack:
        files = [stack.enter_context(bundle_file(part)) for part in parts]
        use = _joined(files, override)
        target = output
        if is_sent:
            # What is not proven to its end is not sent.
            folder = folder_of_copies(use, prefix="reprobundle-join-")
            target = stack.enter_context(folder) / "whole.rpb.zip"
        note(use, "bundle", "standard output (join)" if is_sent else output)
        identifier, size_bytes = _write_whole(files, target)
        if is_sent:
            send(target)
    shown = "standard output" if is_sent else output
    say(f"{shown}  {size_bytes:,} bytes, id {identifier}")
    return 0


def _write_whole(files: Sequence[Path], target: Path) -> tuple[str, int]:
    """Write the bundle that `files` are, or are parts of; return its id and size."""
    from reprobundle.format.parting import join_parts, whole_copy
    from reprobundle.report.progress import progress

    if len(files) == 1:
        identifier = whole_copy(files[0], target)
    else:
        size = sum(file.stat().st_size for file in files if file.is_file())
        with progress("checking digests", size) as advance:
            one, two = files
            identifier = join_parts(one, two, target, progress=advance)
    return identifier, target.stat().st_size


def _joined(files: Sequence[Path], override: str) -> DataUse:
    """Return the use that is made of the data, by the policy in the part that has it.

    Raises:
        DataRuleError: The policy is against it, and nobody overrides it.
    """
    from reprobundle.format.reader import open_bundle
    from reprobundle.run.data_rules import POLICY

    with ExitStack() as stack:
        opened = [stack.enter_context(open_bundle(file)) for file in files]
        held = [one for one in opened if POLICY not in one.absent]
        return used((held or opened)[0], override, what="joining it")
