"""``reprobundle doctor``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from reprobundle.cli.options import json_option

_paths = click.Path(path_type=Path)


@click.command()
@click.option("--python", type=_paths, help="The interpreter to ask.")
@click.option("--read", type=_paths, multiple=True, help="Data that a run has to read.")
@click.option(
    "--write", type=_paths, multiple=True, help="A folder that a run writes to."
)
@json_option
@click.option("-v", "--verbose", is_flag=True, help="Show every rule and cause.")
def doctor(
    *,
    python: Path | None,
    read: tuple[Path, ...],
    write: tuple[Path, ...],
    as_json: bool,
    verbose: bool,
) -> int:
    """Ask this machine, now, whether a run on MPS can start here and survive.

    Exit status: 0 nothing blocks (on Linux MPS cannot be tested, and the answer says
    so), 10 something does, 20 bad call.
    """
    from reprobundle.format.canonical import encode
    from reprobundle.port.doctor.doctor import examine_machine
    from reprobundle.report.examined import render_doctor
    from reprobundle.report.screen import Screen

    report = examine_machine(os.environ, python=python, read=read, write=write)
    if as_json:
        click.echo(encode(report).decode(), nl=False)
    else:
        click.echo(render_doctor(report, Screen.of(sys.stdout), verbose=verbose))
    return report.exit_status
