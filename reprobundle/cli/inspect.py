"""``reprobundle inspect``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reprobundle.cli.options import json_option
from reprobundle.cli.places import place_argument, reached

if TYPE_CHECKING:
    from reprobundle.cli.places import Given
    from reprobundle.format.reader import Bundle, ReplayFile
    from reprobundle.format.source import Place
    from reprobundle.report.screen import Screen


@click.command()
@place_argument
@click.option(
    "--target",
    metavar="NAME",
    help="Show what the lock installs on linux-x86_64, linux-aarch64 or macos-arm64.",
)
@json_option
@click.option("-v", "--verbose", is_flag=True, help="Show every member and fact.")
def inspect(
    *,
    bundle: Given,
    download_limit: int | None,
    target: str | None,
    as_json: bool,
    verbose: bool,
) -> int:
    """Show what is in a bundle. Nothing is judged.

    BUNDLE may be - (standard input) or an address.

    Of a bundle at https://, s3:// or gs:// only what is shown is read, and it says
    what was not checked. A replay that travels alone (.rpr.zip) is shown too, and what
    of it lies in the bundle only.
    """
    from reprobundle.format.canonical import encode
    from reprobundle.format.reader import Bundle
    from reprobundle.report.inspect import render_inspect, view
    from reprobundle.report.screen import Screen

    screen = Screen.of(sys.stdout)
    with (
        reached(bundle, download_limit, whole=False) as place,
        _opened(place) as opened,
    ):
        if not isinstance(opened, Bundle):
            shown = _replays(opened, screen, as_json=as_json, verbose=verbose)
        elif target is not None:
            shown = _selection(opened, target, screen, as_json=as_json, verbose=verbose)
        elif as_json:
            shown = encode(view(opened)).decode()
        else:
            seen = view(opened)
            elsewhere = not isinstance(place, Path)
            shown = render_inspect(seen, screen, verbose=verbose, elsewhere=elsewhere)
    click.echo(shown, nl=not as_json)
    return 0


def _opened(place: Path | Place) -> ReplayFile:
    """Return a bundle as far as it has to be read, or a replay file of this machine."""
    from reprobundle.format.reader import open_any, open_listing

    return open_any(place) if isinstance(place, Path) else open_listing(place)


def _replays(
    replays: ReplayFile, screen: Screen, *, as_json: bool, verbose: bool
) -> str:
    from reprobundle.format.canonical import encode
    from reprobundle.report.alone import render_alone, view_alone

    shown = view_alone(replays)
    if as_json:
        return encode(shown).decode()
    return render_alone(shown, screen, verbose=verbose)


def _selection(
    bundle: Bundle, target: str, screen: Screen, *, as_json: bool, verbose: bool
) -> str:
    from reprobundle.format.canonical import encode
    from reprobundle.report.selected import render_selection
    from reprobundle.run.bundle_lock import locked_selection

    _, selection, lock = locked_selection(bundle, target)
    if as_json:
        return encode(selection).decode()
    return render_selection(selection, lock, screen, verbose=verbose)
