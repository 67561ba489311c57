"""``reprobundle replay``: ask for consent, run here or detached, print the verdict."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from reprobundle.cli.options import (
    DEVICES,
    EXIT_INCOMPLETE,
    allow_option,
    bundle_argument,
    json_option,
    map_device_option,
    mapped_devices,
    parse_devices,
    restart_option,
    resume_option,
    say,
    split,
)
from reprobundle.errors import EXIT_BAD_CALL

if TYPE_CHECKING:
    from reprobundle.format.record import DrawMode
    from reprobundle.replay.options import ReplayOptions
    from reprobundle.replay.plan import ReplayPlan
    from reprobundle.run.device_facts import DeviceMapping


@click.command()
@bundle_argument
@click.option(
    "--env",
    "environment",
    default="current",
    show_default=True,
    metavar="current|fresh|PYTHON",
    help="Run in the current environment, in one built from the lock, or with PYTHON.",
)
@click.option("--yes", is_flag=True, help="Consent to running the bundle's command.")
@click.option(
    "--claims",
    default="all",
    show_default=True,
    metavar="NAME[,NAME]|smoke|all",
    help="Which claims to run; one that is left out is NOT RUN.",
)
@click.option("--smoke", is_flag=True, help="The same as --claims smoke.")
@click.option(
    "--passes",
    default="measured,evidence",
    show_default=True,
    help="Passes to make; evidence is traced, and left out where torch is not loaded.",
)
@click.option(
    "--repeat",
    "repeats",
    type=click.IntRange(1, 1000),
    default=1,
    show_default=True,
    help="How often to run the main command; every run is judged and attached, and "
    "policy suggest takes them all.",
)
@restart_option
@resume_option
@click.option(
    "--device",
    default="as-is",
    show_default=True,
    metavar="DEVICE[,DEVICE]",
    help=f"Run on each of these: {', '.join(DEVICES)}. Others are hidden from the "
    "command.",
)
@map_device_option
@click.option(
    "--rng",
    type=click.Choice(("native", "portable", "recorded")),
    help="How random draws are made. [default: as in the reference]",
)
@click.option(
    "--fallback",
    type=click.Choice(("forbid", "diagnose")),
    default="forbid",
    show_default=True,
    help="On MPS, stop at an operator it lacks, or go on with the CPU: a mixed run.",
)
@click.option(
    "--record",
    "record_file",
    type=click.Path(path_type=Path),
    help="Write the record there (.rpr.zip) instead of attaching it.",
)
@click.option(
    "--as-reference",
    "reference_by",
    default="",
    metavar="NAME",
    help="On Linux: NAME states that this run is the Linux reference of a bundle that "
    "was packed elsewhere.",
)
@click.option(
    "--data",
    multiple=True,
    metavar="PATH=FILE",
    help="Your copy of a file that the bundle holds by digest only; folders work too.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set a variable of the numeric libraries, such as OMP_NUM_THREADS=1: one "
    "change to find a cause. The record holds it.",
)
@click.option(
    "--wheels",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder of wheels, for a machine without network.",
)
@click.option(
    "--allow-other-build",
    is_flag=True,
    help="With --env fresh: take the plain release where a build such as +cpu cannot "
    "be had. It may compute other numbers; the record names it.",
)
@click.option(
    "--allow-other-python",
    is_flag=True,
    help="With --env fresh: build on another Python version rather than not at all; it "
    "shows as drift.",
)
@click.option(
    "--without",
    multiple=True,
    metavar="PACKAGE",
    help="Leave a package of the lock out of a fresh environment; it shows as drift.",
)
@click.option(
    "--allow-sensitive",
    multiple=True,
    metavar="[KIND@]PATH",
    help="Attach the record although a log or output looks like a secret or personal "
    "data there; what the author allowed is allowed here too.",
)
@click.option("--detach", is_flag=True, help="Go on after this terminal is closed.")
@allow_option
@json_option
@click.option("-q", "--quiet", is_flag=True, help="Do not show the command's output.")
def replay(
    *,
    bundle: Path,
    environment: str,
    yes: bool,
    claims: str,
    smoke: bool,
    passes: str,
    repeats: int,
    restart_check: bool,
    resume_command: str,
    device: str,
    mappings: tuple[DeviceMapping, ...],
    rng: DrawMode | None,
    fallback: Literal["forbid", "diagnose"],
    record_file: Path | None,
    reference_by: str,
    data: tuple[str, ...],
    settings: tuple[str, ...],
    wheels: Path | None,
    without: tuple[str, ...],
    allow_other_build: bool,
    allow_other_python: bool,
    allow_sensitive: tuple[str, ...],
    detach: bool,
    allow: tuple[str, ...],
    as_json: bool,
    quiet: bool,
) -> int:
    """Run a bundle's command here, attach the record, print the verdict.

    This runs the code in the bundle. The bundle is checked first, the command is
    shown, and you are asked.
    """
    from reprobundle.pack.passes import REPLAYED, parse_command, parse_passes
    from reprobundle.replay.options import ReplayOptions
    from reprobundle.replay.replay import inspect_plan

    options = ReplayOptions(
        bundle=bundle,
        environment=environment,
        devices=mapped_devices(parse_devices(device), mappings),
        mappings=mappings,
        rng=rng or "",
        fallback=fallback,
        passes=parse_passes(f"{passes}{',restart' * restart_check}", REPLAYED),
        repeats=repeats,
        resume_command=parse_command(resume_command),
        claims=_claims(claims, smoke=smoke),
        record_file=record_file,
        reference_by=reference_by,
        data=data,
        settings=settings,
        wheels=wheels,
        without=without,
        allow_other_build=allow_other_build,
        allow_other_python=allow_other_python,
        allow=allow,
        allow_sensitive=allow_sensitive,
        echo=not quiet,
    )
    plan = inspect_plan(options)
    from reprobundle.report.planned import render_plan
    from reprobundle.report.screen import Screen

    fresh = environment == "fresh"
    shown = render_plan(plan, Screen.of(sys.stderr), fresh_environment=fresh)
    click.echo(shown, err=True)
    if not yes and not _consents():
        return EXIT_BAD_CALL
    if detach:
        return _start_job(bundle, plan)
    return _run_replay(options, plan, as_json=as_json)


def _claims(text: str, *, smoke: bool) -> tuple[str, ...]:
    """Return the names of the claims to run; none stands for all of them."""
    if smoke and text != "all":
        raise click.UsageError("--smoke is the same as --claims smoke: leave one out")
    if smoke:
        return ("smoke",)
    return () if text == "all" else split(text)


def _consents() -> bool:
    if not sys.stdin.isatty():
        raise click.UsageError(
            "a replay runs the bundle's code and there is no terminal to ask; "
            "read the command above and add --yes"
        )
    return click.confirm("Run this code on this machine?", err=True)


def _run_replay(options: ReplayOptions, plan: ReplayPlan, *, as_json: bool) -> int:
    from reprobundle.replay.jobs import report_progress, report_result
    from reprobundle.replay.replay import replay as run_replay
    from reprobundle.report.json import report_json
    from reprobundle.report.screen import Screen
    from reprobundle.report.terminal import render_report

    def tell(line: str) -> None:
        say(line)
        report_progress(line)

    try:
        done = run_replay(options, plan, say=tell)
    except KeyboardInterrupt:
        click.echo("INCOMPLETE: interrupted before a record was attached", err=True)
        return EXIT_INCOMPLETE
    if as_json:
        click.echo(report_json(done.report).decode(), nl=False)
    else:
        click.echo(render_report(done.report, Screen.of(sys.stdout)))
    report_result(done.report.exit_status, done.report.verdict)
    return done.report.exit_status


def _start_job(bundle: Path, plan: ReplayPlan) -> int:
    from reprobundle.replay.jobs import start_detached

    arguments = [argument for argument in sys.argv[1:] if argument != "--detach"]
    if "--yes" not in arguments:
        arguments.append("--yes")
    job = start_detached(
        [sys.executable, "-m", "reprobundle", *arguments],
        name=bundle.name.removesuffix(".rpb.zip"),
        bundle=plan.bundle,
    )
    click.echo(f"started job {job.name}; see: reprobundle status {job.name}")
    return 0
