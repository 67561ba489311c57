"""``reprobundle check``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from reprobundle.cli.options import destinations_option, json_option
from reprobundle.cli.paths import path_or_standard_input
from reprobundle.cli.standard_input import bundle_file


@click.command()
@click.argument("bundle", type=path_or_standard_input)
@destinations_option
@json_option
@click.option("-v", "--verbose", is_flag=True, help="Show where each figure is from.")
def check(
    *, bundle: Path, destinations: tuple[str, ...], as_json: bool, verbose: bool
) -> int:
    """Say whether a bundle fits where it is to be attached, and what to leave out.

    Sizes, counts, names and types are compared with what is taken there; without --for,
    at every destination. Whether the bundle is intact says verify. Exit status: 0 it
    fits, 10 a destination refuses it, 20 bad call, 21 bad bundle.
    """
    from reprobundle.format.canonical import encode
    from reprobundle.report.fitted import render_fit
    from reprobundle.report.screen import Screen
    from reprobundle.verify.fit.check import check_fit

    with bundle_file(bundle) as path:
        report = check_fit(path, destinations)
    if as_json:
        click.echo(encode(report).decode(), nl=False)
    else:
        click.echo(render_fit(report, Screen.of(sys.stdout), verbose=verbose))
    return report.exit_status
