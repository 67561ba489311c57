"""``reprobundle inspect``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reprobundle.cli.options import bundle_argument, json_option
from reprobundle.cli.standard_input import bundle_file

if TYPE_CHECKING:
    from reprobundle.format.reader import Bundle
    from reprobundle.report.screen import Screen


@click.command()
@bundle_argument
@click.option(
    "--target",
    metavar="NAME",
    help="Show what the lock installs on linux-x86_64, linux-aarch64 or macos-arm64.",
)
@json_option
@click.option("-v", "--verbose", is_flag=True, help="Show every member and fact.")
def inspect(*, bundle: Path, target: str | None, as_json: bool, verbose: bool) -> int:
    """Show what is in a bundle. Nothing is judged. BUNDLE may be - (standard input)."""
    from reprobundle.format.canonical import encode
    from reprobundle.format.reader import open_bundle
    from reprobundle.report.inspect import render_inspect, view
    from reprobundle.report.screen import Screen

    screen = Screen.of(sys.stdout)
    with bundle_file(bundle) as path, open_bundle(path) as opened:
        if target is not None:
            shown = _selection(opened, target, screen, as_json=as_json, verbose=verbose)
        elif as_json:
            shown = encode(view(opened)).decode()
        else:
            shown = render_inspect(view(opened), screen, verbose=verbose)
    click.echo(shown, nl=not as_json)
    return 0


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
