"""``reprobundle scan``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from reprobundle.cli.options import json_option
from reprobundle.cli.paths import local_path


@click.command()
@click.argument("target", type=local_path, default=".")
@json_option
@click.option("--sarif", is_flag=True, help="Print SARIF 2.1.0, for code scanning.")
@click.option("-v", "--verbose", is_flag=True, help="Show every place and mention.")
def scan(*, target: Path, as_json: bool, sarif: bool, verbose: bool) -> int:
    """Read a project, a file or a bundle for what needs an NVIDIA GPU.

    Nothing is imported or run. Exit status: 0 everything was read and nothing
    blocks, 10 something blocks or could not be read, 20 bad call, 21 bad bundle.
    """
    from reprobundle.format.canonical import encode
    from reprobundle.port.scan.scan import scan as run_scan
    from reprobundle.report.sarif import render_sarif
    from reprobundle.report.scanned import render_scan
    from reprobundle.report.screen import Screen

    if as_json and sarif:
        raise click.UsageError("--json and --sarif exclude each other")
    report = run_scan(target)
    if sarif:
        click.echo(render_sarif(report))
    elif as_json:
        click.echo(encode(report).decode(), nl=False)
    else:
        click.echo(render_scan(report, Screen.of(sys.stdout), verbose=verbose))
    return report.exit_status
