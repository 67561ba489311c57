"""``reprobundle doctor``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from reprobundle.cli.options import json_option
from reprobundle.cli.paths import local_path

_paths = click.Path(path_type=Path)


@click.command()
@click.argument("bundle", type=local_path, required=False)
@click.option("--python", type=_paths, help="The interpreter to ask.")
@click.option("--read", type=_paths, multiple=True, help="Data that a run has to read.")
@click.option(
    "--write", type=_paths, multiple=True, help="A folder that a run writes to."
)
@json_option
@click.option("-v", "--verbose", is_flag=True, help="Show every rule and cause.")
def doctor(
    *,
    bundle: Path | None,
    python: Path | None,
    read: tuple[Path, ...],
    write: tuple[Path, ...],
    as_json: bool,
    verbose: bool,
) -> int:
    """Ask this machine, now, whether a run on MPS can start here and survive.

    With a BUNDLE, also whether this machine has what the bundle needs; nothing of it
    is run. Exit status: 0 MPS is usable and nothing blocks, 10 something does, 11
    nothing blocks and MPS could not be tested, as on Linux; 20 bad call, 21 bad bundle.
    """
    from reprobundle.format.canonical import encode
    from reprobundle.port.doctor.doctor import examine_machine
    from reprobundle.port.doctor.needs import read_needs
    from reprobundle.report.examined import render_doctor
    from reprobundle.report.screen import Screen

    report = examine_machine(
        os.environ,
        python=python,
        read=read,
        write=write,
        needs=read_needs(bundle) if bundle else None,
    )
    if as_json:
        click.echo(encode(report).decode(), nl=False)
    else:
        click.echo(render_doctor(report, Screen.of(sys.stdout), verbose=verbose))
    return report.exit_status
