"""``reprobundle inspect``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reprobundle.cli.options import bundle_argument, json_option

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
    """Show what is in a bundle. Nothing is judged."""
    from reprobundle.format.canonical import encode
    from reprobundle.format.reader import open_bundle
    from reprobundle.report.inspect import render_inspect, view
    from reprobundle.report.screen import Screen

    screen = Screen.of(sys.stdout)
    with open_bundle(bundle) as opened:
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
    from reprobundle.errors import BadCallError
    from reprobundle.format.canonical import decode, encode
    from reprobundle.format.lock import LOCK_MEMBER, PYLOCK_MEMBER, Lock
    from reprobundle.report.selected import render_selection
    from reprobundle.run.pylock_file import parse_pylock, select
    from reprobundle.run.targets import target_named

    lock = decode(bundle.read(LOCK_MEMBER), Lock, where=LOCK_MEMBER, rule="R-7.3")
    wanted = target_named(target, lock.python)
    if PYLOCK_MEMBER not in bundle.members:
        raise BadCallError(
            f"{bundle.path.name} holds no lock for other systems: "
            f"{lock.pylock_unknown or 'none was made'}",
            advice="pack it again where uv and a package index can be reached",
        )
    selection = select(parse_pylock(bundle.read(PYLOCK_MEMBER)), wanted)
    if as_json:
        return encode(selection).decode()
    return render_selection(selection, lock, screen, verbose=verbose)
