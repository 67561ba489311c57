"""``reprobundle extract`` and ``reprobundle cat``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reprobundle.cli.data_use import note, override_option, used
from reprobundle.cli.paths import named
from reprobundle.cli.places import place_argument, reached

if TYPE_CHECKING:
    from reprobundle.cli.places import Given


@contextmanager
def _members_asked_for() -> Iterator[None]:
    """Tell a name that is in no list from a bundle that lacks what it lists.

    Raises:
        BadCallError: A member that was asked for is not in the bundle.
    """
    from reprobundle.errors import AbsentMemberError, BadCallError, MissingMemberError

    try:
        yield
    except AbsentMemberError:
        raise
    except MissingMemberError as error:
        if error.rule != "R-4.31":
            raise
        advice = "reprobundle inspect -v BUNDLE lists the members"
        raise BadCallError(str(error), advice=advice) from error


@click.command()
@place_argument
@click.argument("paths", nargs=-1)
@click.option(
    "--into",
    required=True,
    type=click.Path(path_type=Path),
    callback=named,
    help="A new folder; nothing is ever overwritten.",
)
@override_option
def extract(
    *,
    bundle: Given,
    download_limit: int | None,
    paths: tuple[str, ...],
    into: Path,
    override: str,
) -> int:
    """Write members of a bundle to a new folder; all of them without PATHS.

    If its policy states rules about data, they are asked, and the copy is noted:
    reprobundle copies.
    """
    from reprobundle.format.reader import extract as write_members
    from reprobundle.format.reader import open_listing
    from reprobundle.report.progress import progress

    with (
        reached(bundle, download_limit, whole=not paths, override=override) as place,
        _members_asked_for(),
        open_listing(place) as opened,
    ):
        wanted = tuple(paths) or None
        use = used(opened, override, what="extracting", paths=wanted)
        if not into.exists():
            note(use, "members", into)
        with progress("extracting", opened.size_bytes) as advance:
            write_members(opened, into, paths=wanted, progress=advance)
    click.echo(f"extracted to {into}")
    return 0


@click.command()
@place_argument
@click.argument("path")
@override_option
def cat(*, bundle: Given, download_limit: int | None, path: str, override: str) -> int:
    """Print one member of a bundle, whole and unchanged."""
    from reprobundle.format.reader import open_listing

    with (
        reached(bundle, download_limit, whole=False) as place,
        _members_asked_for(),
        open_listing(place) as opened,
        opened.open(path) as stream,
    ):
        use = used(opened, override, what="printing it", paths=(path,))
        note(use, "printed", f"standard output ({path})")
        out = sys.stdout.buffer
        while block := stream.read(1 << 20):
            out.write(block)
        out.flush()
    return 0
