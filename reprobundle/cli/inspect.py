"""``reprobundle inspect``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from reprobundle.cli.options import bundle_argument, json_option


@click.command()
@bundle_argument
@json_option
@click.option("-v", "--verbose", is_flag=True, help="Show every member and fact.")
def inspect(*, bundle: Path, as_json: bool, verbose: bool) -> int:
    """Show what is in a bundle. Nothing is judged."""
    from reprobundle.format.canonical import encode
    from reprobundle.format.reader import open_bundle
    from reprobundle.report.inspect import render_inspect, view
    from reprobundle.report.screen import Screen

    with open_bundle(bundle) as opened:
        seen = view(opened)
    if as_json:
        click.echo(encode(seen).decode(), nl=False)
    else:
        click.echo(render_inspect(seen, Screen.of(sys.stdout), verbose=verbose))
    return 0
