"""``reprobundle replay``: ask for consent, run here or detached, print the verdict."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from reprobundle.cli.consent import consents
from reprobundle.cli.data_use import override_option
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
from reprobundle.cli.paths import named
from reprobundle.errors import EXIT_BAD_CALL

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    help="How often to run each claim's command; every run is judged and attached, and "
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
    callback=named,
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
    metavar="PATH=FILE|FOLDER",
    help="Your copy of a file that the bundle holds by digest only. Folders work on "
    "both sides; in a FOLDER alone files are found by their digests.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="One change to find a cause: a switch (allow_tf32=false, deterministic=true, "
    "threads=1, matmul_precision=highest …) or a variable of the numeric libraries "
    "(OMP_NUM_THREADS=1). The record holds it.",
)
@click.option(
    "--with",
    "packages",
    multiple=True,
    metavar="PACKAGE==VERSION",
    help="Run with this version of one package, laid over the environment.",
)
@click.option(
    "--shapes",
    default="",
    metavar="constant|dynamic",
    help="Tell the command which shapes to use: {shapes}, REPROBUNDLE_SHAPES, "
    "reprobundle.shapes(). constant,dynamic makes the pair.",
)
@click.option(
    "--round",
    "round_",
    default="",
    metavar="full|minimal",
    help="Tell the command to leave out loggers and lists of results: {round}, "
    "REPROBUNDLE_ROUND, reprobundle.minimal(). full,minimal makes the pair.",
)
@click.option(
    "--ab",
    nargs=2,
    metavar="ARGS ARGS",
    help="Run twice, once with each of two quoted lists of more options, and show "
    "what differs, as diff does.",
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
@override_option
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
    packages: tuple[str, ...],
    shapes: str,
    round_: str,
    ab: tuple[str, str] | None,
    wheels: Path | None,
    without: tuple[str, ...],
    allow_other_build: bool,
    allow_other_python: bool,
    allow_sensitive: tuple[str, ...],
    override: str,
    detach: bool,
    allow: tuple[str, ...],
    as_json: bool,
    quiet: bool,
) -> int:
    """Run a bundle's command here, attach the record, print the verdict.

    This runs the code in the bundle. The bundle is checked first, the command is
    shown, and you are asked.
    """
    context = click.get_current_context()
    from reprobundle.cli.pair import show_pair, sides_of
    from reprobundle.replay.data_use import data_use
    from reprobundle.replay.replay import inspect_plan

    pair = sides_of(context, ab, shapes=shapes, round_=round_)
    sides = tuple(map(_options, pair or (context.params,)))
    plan = inspect_plan(sides[0])
    from reprobundle.report.planned import render_plan
    from reprobundle.report.screen import Screen

    fresh = environment == "fresh"
    shown = render_plan(
        plan,
        Screen.of(sys.stderr),
        fresh_environment=fresh,
        overridden=data_use(sides[0], plan).overridden,
    )
    click.echo(shown, err=True)
    if not yes and not consents(what="a replay"):
        return EXIT_BAD_CALL
    if len(sides) > 1:
        return show_pair(bundle, sides, as_json=as_json)
    if detach:
        return _start_job(bundle, plan)
    return _run_replay(sides[0], plan, as_json=as_json)


def _options(given: Mapping[str, Any]) -> ReplayOptions:
    """Return what the parameters of a call, or of one side of a pair, ask for.

    Raises:
        BadCallError: A setting is not known or does not take that value.
    """
    from reprobundle.pack.passes import REPLAYED, parse_command, parse_passes
    from reprobundle.replay.options import ReplayOptions
    from reprobundle.run.asked import parse_asked

    parse_asked(
        given["settings"],
        shapes=given["shapes"],
        round_=given["round_"],
        packages=given["packages"],
    )
    passes = given["passes"]
    return ReplayOptions(
        bundle=given["bundle"],
        environment=given["environment"],
        devices=mapped_devices(parse_devices(given["device"]), given["mappings"]),
        mappings=given["mappings"],
        repeats=given["repeats"],
        rng=given["rng"] or "",
        fallback=given["fallback"],
        passes=parse_passes(f"{passes}{',restart' * given['restart_check']}", REPLAYED),
        resume_command=parse_command(given["resume_command"]),
        claims=_claims(given["claims"], smoke=given["smoke"]),
        record_file=given["record_file"],
        reference_by=given["reference_by"],
        data=given["data"],
        settings=given["settings"],
        shapes=given["shapes"],
        round=given["round_"],
        packages=given["packages"],
        wheels=given["wheels"],
        without=given["without"],
        allow_other_build=given["allow_other_build"],
        allow_other_python=given["allow_other_python"],
        allow=given["allow"],
        allow_sensitive=given["allow_sensitive"],
        override=given["override"],
        echo=not given["quiet"],
    )


def _claims(text: str, *, smoke: bool) -> tuple[str, ...]:
    """Return the names of the claims to run; none stands for all of them."""
    if smoke and text != "all":
        raise click.UsageError("--smoke is the same as --claims smoke: leave one out")
    if smoke:
        return ("smoke",)
    return () if text == "all" else split(text)


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
