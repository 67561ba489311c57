"""``reprobundle forecast``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from reprobundle.cli.options import json_option, size_bytes


@click.command(context_settings={"ignore_unknown_options": True})
@click.option("--torch", default="", metavar="VERSION", help="Target, such as 2.15.")
@click.option("--memory", default="", metavar="SIZE", help="The Mac's, such as 16GB.")
@click.option("--echo", is_flag=True, help="Show what the command prints.")
@json_option
@click.option("-v", "--verbose", is_flag=True, help="Show every operator.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def forecast(
    *,
    torch: str,
    memory: str,
    echo: bool,
    as_json: bool,
    verbose: bool,
    command: tuple[str, ...],
) -> int:
    """Run a command on the CPU and say what it would meet on MPS.

    Put the whole command after --, as for pack; {device} in it becomes cpu. It runs in
    a copy of the project. Exit status: 0 nothing found that blocks, 10 an operator
    without a kernel, float64, or more memory than --memory; 20 bad call, 22 the
    command failed.
    """
    from reprobundle.format.canonical import encode
    from reprobundle.port.forecast.forecast import forecast as run_forecast
    from reprobundle.report.forecasted import render_forecast
    from reprobundle.report.screen import Screen

    report = run_forecast(
        command,
        working_directory=Path.cwd(),
        variables=os.environ,
        torch=torch,
        # A Mac of 16 GB has 16 GiB.
        memory_bytes=size_bytes(memory.lower().replace("gb", "gib"))
        if memory
        else None,
        echo=echo,
    )
    if as_json:
        click.echo(encode(report).decode(), nl=False)
    else:
        click.echo(render_forecast(report, Screen.of(sys.stdout), verbose=verbose))
    return report.exit_status
