"""``reprobundle forecast``: run a command, or a bundle's, on the CPU and judge it."""

from __future__ import annotations

import os
import re
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reprobundle.cli.consent import consents
from reprobundle.cli.data_use import folder_of_copies, note, override_option, used_file
from reprobundle.cli.options import json_option, size_bytes
from reprobundle.errors import EXIT_BAD_CALL

if TYPE_CHECKING:
    from reprobundle.port.forecast.subject import Subject
    from reprobundle.run.copies import DataUse


@click.command(context_settings={"ignore_unknown_options": True})
@click.option("--torch", default="", metavar="VERSION", help="Target, such as 2.15.")
@click.option("--memory", default="", metavar="SIZE", help="The Mac's, such as 16GB.")
@click.option(
    "--dry",
    is_flag=True,
    help="Compute no value: for a model that does not fit here. What depends on values "
    "is then unknown.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Raise in the command what MPS would raise, where it would raise it.",
)
@click.option(
    "--against",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Compare with this forecast of the full run, made with --json.",
)
@click.option("--echo", is_flag=True, help="Show what the command prints.")
@click.option("--yes", is_flag=True, help="Consent to running the bundle's command.")
@click.option(
    "--env",
    "environment",
    default="current",
    show_default=True,
    metavar="current|fresh|PYTHON",
    help="For a bundle: run here, in an environment from its lock, or with PYTHON.",
)
@click.option(
    "--data",
    multiple=True,
    metavar="PATH=FILE",
    help="Your copy of a file that the bundle holds by digest only.",
)
@override_option
@json_option
@click.option("-v", "--verbose", is_flag=True, help="Show every operator.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def forecast(
    *,
    torch: str,
    memory: str,
    dry: bool,
    strict: bool,
    against: Path | None,
    echo: bool,
    yes: bool,
    environment: str,
    data: tuple[str, ...],
    override: str,
    as_json: bool,
    verbose: bool,
    command: tuple[str, ...],
) -> int:
    """Run a command on the CPU and say what it would meet on MPS.

    Put the whole command after --, as for pack, or name a bundle, whose command is
    shown and run after you agreed. {device} in it becomes cpu; a project that names mps
    gets mps, and the CPU stands for it. The command runs in a copy of the project.
    Exit status: 0 nothing found that blocks, 10 an operator without a kernel, float64,
    or more memory than --memory, 11 not everything was seen, or an operator runs on the
    CPU of a Mac; 20 bad call, or no torch; 22 the command failed.
    """
    from reprobundle.format.canonical import encode
    from reprobundle.port.forecast.forecast import ForecastOptions
    from reprobundle.port.forecast.forecast import forecast as run_forecast
    from reprobundle.report.forecasted import render_forecast
    from reprobundle.report.screen import Screen

    with ExitStack() as stack:
        if _is_bundle(command):
            path = Path(command[0])
            use = used_file(path, override, what="a forecast")
            folder = folder_of_copies(use, prefix="reprobundle-forecast-")
            place = stack.enter_context(folder)
            subject = _of_bundle(
                path, place, environment, data, use, override=override, yes=yes
            )
        else:
            subject = _typed(command)
        if subject is None:
            return EXIT_BAD_CALL
        options = ForecastOptions(
            torch=torch,
            memory_bytes=_of_mac(memory) if memory else None,
            dry=dry,
            strict=strict,
            against=against,
            echo=echo,
        )
        report = run_forecast(subject, options)
    if as_json:
        click.echo(encode(report).decode(), nl=False)
    else:
        click.echo(render_forecast(report, Screen.of(sys.stdout), verbose=verbose))
    return report.exit_status


def _is_bundle(command: tuple[str, ...]) -> bool:
    """Tell whether one word was given that is a bundle, or is named like one."""
    if len(command) != 1:
        return False
    if command[0].endswith(".rpb.zip"):
        return True
    try:
        with Path(command[0]).open("rb") as file:
            return file.read(4) == b"PK\x03\x04"
    except OSError:
        return False


def _typed(command: tuple[str, ...]) -> Subject:
    from reprobundle.port.forecast.subject import typed

    return typed(command, Path.cwd(), os.environ)


def _of_mac(text: str) -> int:
    """Return a Mac's memory: one of 16 GB has 16 GiB.

    Raises:
        BadParameter: It is no size, or none at all.
    """
    size = size_bytes(re.sub("(?<=[kmgt])b$", "ib", text.lower()))
    if size == 0:
        raise click.BadParameter(f"{text!r} is no memory: write it like 16GB")
    return size


def _of_bundle(
    bundle: Path,
    folder: Path,
    environment: str,
    data: tuple[str, ...],
    use: DataUse,
    *,
    override: str,
    yes: bool,
) -> Subject | None:
    """Return a bundle's command, or None where the user does not agree to run it."""
    from reprobundle.port.forecast.subject import Subject
    from reprobundle.replay.options import ReplayOptions
    from reprobundle.replay.replay import inspect_plan
    from reprobundle.replay.taken_out import take_out
    from reprobundle.report.planned import render_plan
    from reprobundle.report.screen import Screen

    options = ReplayOptions(
        bundle=bundle,
        environment=environment,
        devices=("cpu",),
        passes=("measured",),
        claims=("main",),
        data=data,
        override=override,
    )
    plan = inspect_plan(options)
    shown = render_plan(
        plan, Screen.of(sys.stderr), fresh_environment=environment == "fresh"
    )
    click.echo(shown, err=True)
    if not yes and not consents(what="a forecast"):
        return None
    note(use, "run", folder)
    taken = take_out(options, plan, folder)
    gaps = [f"the environment is another one: {one}" for one in taken.differences[:4]]
    if len(taken.differences) > len(gaps):
        rest = len(taken.differences) - len(gaps)
        gaps.append(f"the environment is another one: and {rest} more packages")
    return Subject(
        command=taken.command,
        placed=taken.placed,
        stage=taken.stage,
        variables=taken.variables,
        python=taken.python,
        bundle=plan.bundle,
        gaps=tuple(gaps),
    )
