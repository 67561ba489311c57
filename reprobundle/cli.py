"""The command line: parse, call one verb, print, exit. Nothing else.

Every import that is not click stays inside a command: `reprobundle verify` of a small
bundle is to answer in a tenth of a second.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reprobundle import __version__
from reprobundle.errors import EXIT_BAD_CALL, ReprobundleError

if TYPE_CHECKING:
    from reprobundle.replay.options import ReplayOptions
    from reprobundle.replay.plan import ReplayPlan

EXIT_INCOMPLETE = 11
DEVICES = ("as-is", "cpu", "cuda", "mps")

_bundle = click.argument("bundle", type=click.Path(path_type=Path))
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_allow = click.option(
    "--allow",
    multiple=True,
    metavar="NAME",
    help="Accept a warning by name; the verdict says so. CPU fallback, stand-in "
    "devices and reduced input can never be accepted.",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="reprobundle")
def cli() -> None:
    """Pack a PyTorch run into one file, replay it elsewhere, judge the result.

    Exit status: 0 reproduced, 10 not reproduced, 11 no verdict yet, 12 reproduced
    with warnings, 20 bad call, 21 bundle unreadable or altered, 22 command failed.
    """


class _CommandAfterDashes(click.Command):
    """A command whose last part is the user's own command, after ``--``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Split at the first ``--`` and keep what follows as it is."""
        if "--" in args:
            split = args.index("--")
            args, ctx.obj = args[:split], tuple(args[split + 1 :])
        elif not {"-h", "--help"}.intersection(args):
            raise click.UsageError(
                "put the whole command after --, such as: "
                "reprobundle pack -- python train.py",
                ctx,
            )
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return the usage line with the command part."""
        return [*super().collect_usage_pieces(ctx), "-- COMMAND..."]


@cli.command(cls=_CommandAfterDashes)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Bundle to write. [default: <project>.rpb.zip]",
)
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), help="Seed everything.")
@click.option(
    "--input",
    "inputs",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A file or folder that is an input, even where git ignores it.",
)
@click.option("--policy", type=click.Path(path_type=Path), help="Policy file (JSON).")
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME=REGEX",
    help="A number the command prints that counts as a result.",
)
@click.option("--expect-failure", is_flag=True, help="Failing is the result.")
@click.option(
    "--passes",
    default="measured,repeat",
    show_default=True,
    help="Passes to make; one that is left out is reported as not checked.",
)
@click.option(
    "--project",
    type=click.Path(path_type=Path),
    help="Top of the project. [default: the git root, else the working directory]",
)
@click.option("--device", type=click.Choice(DEVICES), default="as-is")
@click.option("--purpose", default="", help="What the result is for, one sentence.")
@click.option("--scenario", default="", help="The bounded case that is accepted.")
@click.option(
    "--accepting-platforms",
    default="",
    help="Platforms whose result counts, such as linux-cpu,macos-mps.",
)
@click.option(
    "--fallback",
    type=click.Choice(("forbidden", "allowed")),
    default="forbidden",
    help="Whether CPU fallback is part of the plan; it is shown either way.",
)
@click.option(
    "--output-limit",
    type=click.IntRange(1),
    default=4 << 30,
    help="Largest single output in bytes.",
)
@click.option("-q", "--quiet", is_flag=True, help="Do not show the command's output.")
@click.pass_context
def pack(
    ctx: click.Context,
    *,
    output: Path | None,
    seed: int | None,
    inputs: tuple[Path, ...],
    policy: Path | None,
    metrics: tuple[str, ...],
    expect_failure: bool,
    passes: str,
    project: Path | None,
    device: str,
    purpose: str,
    scenario: str,
    accepting_platforms: str,
    fallback: str,
    output_limit: int,
    quiet: bool,
) -> int:
    """Run COMMAND and write one bundle about it.

    The command runs twice in copies of the project: once measured, once again from
    what the bundle holds. Nothing is written if it fails.
    """
    from reprobundle.format.policy import Intent
    from reprobundle.pack.options import PackOptions
    from reprobundle.pack.pack import pack as run_pack
    from reprobundle.pack.passes import parse_passes
    from reprobundle.pack.policy import parse_metric
    from reprobundle.report.packed import render_packed
    from reprobundle.report.progress import progress
    from reprobundle.report.screen import Screen

    here = Path.cwd()
    options = PackOptions(
        argv=ctx.obj,
        output=output or here / f"{(project or here).resolve().name}.rpb.zip",
        working_directory=here,
        project=project,
        seed=seed,
        inputs=inputs,
        policy=policy,
        metrics=tuple(parse_metric(metric) for metric in metrics),
        intent=Intent(
            purpose=purpose,
            scenario=scenario,
            accepting_platforms=_split(accepting_platforms),
            fallback="allowed" if fallback == "allowed" else "forbidden",
        ),
        expect_failure=expect_failure,
        passes=parse_passes(passes),
        device=device,
        output_limit_bytes=output_limit,
        echo=not quiet,
    )
    with progress("writing the bundle") as advance:
        packed = run_pack(options, say=_say, progress=advance)
    click.echo(render_packed(packed, Screen.of(sys.stdout)))
    return 0


@cli.command()
@_bundle
@click.option(
    "--integrity", is_flag=True, help="Check integrity and completeness only."
)
@click.option("--deep", is_flag=True, help="Prove the chunk digests too.")
@click.option("--replay", "replay_id", metavar="ID", help="Judge this replay only.")
@click.option(
    "--replay-file",
    type=click.Path(path_type=Path),
    help="Judge a replay that travels alone (.rpr.zip).",
)
@click.option("--expect-id", metavar="ID", help="The bundle id you were told.")
@_allow
@_json
@click.option("-v", "--verbose", is_flag=True, help="Show every finding.")
def verify(
    *,
    bundle: Path,
    integrity: bool,
    deep: bool,
    replay_id: str | None,
    replay_file: Path | None,
    expect_id: str | None,
    allow: tuple[str, ...],
    as_json: bool,
    verbose: bool,
) -> int:
    """Judge a bundle: is it whole, and did the replays give the same result?

    Needs no torch and no network, and executes nothing of the bundle.
    """
    from reprobundle.report.progress import progress
    from reprobundle.verify.verify import verify_bundle

    with progress("checking digests", _size(bundle)) as advance:
        report = verify_bundle(
            bundle,
            integrity_only=integrity,
            deep=deep,
            replay=replay_id,
            replay_file=replay_file,
            expect_id=expect_id,
            allow=allow,
            progress=advance,
        )
    if as_json:
        from reprobundle.report.json import report_json

        click.echo(report_json(report).decode(), nl=False)
    else:
        from reprobundle.report.screen import Screen
        from reprobundle.report.terminal import render_report

        click.echo(render_report(report, Screen.of(sys.stdout), verbose=verbose))
    return report.exit_status


@cli.command()
@_bundle
@click.option(
    "--env",
    "environment",
    default="current",
    show_default=True,
    metavar="current|fresh|PYTHON",
    help="Run in the current environment, in one built from the lock, or with PYTHON.",
)
@click.option("--yes", is_flag=True, help="Consent to running the bundle's command.")
@click.option("--smoke", is_flag=True, help="Run the quick claim only.")
@click.option("--passes", default="measured,repeat", show_default=True)
@click.option("--device", type=click.Choice(DEVICES), default="as-is")
@click.option(
    "--record",
    "record_file",
    type=click.Path(path_type=Path),
    help="Write the record there (.rpr.zip) instead of attaching it.",
)
@click.option(
    "--wheels",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder of wheels, for a machine without network.",
)
@click.option("--detach", is_flag=True, help="Go on after this terminal is closed.")
@_allow
@_json
@click.option("-q", "--quiet", is_flag=True, help="Do not show the command's output.")
def replay(
    *,
    bundle: Path,
    environment: str,
    yes: bool,
    smoke: bool,
    passes: str,
    device: str,
    record_file: Path | None,
    wheels: Path | None,
    detach: bool,
    allow: tuple[str, ...],
    as_json: bool,
    quiet: bool,
) -> int:
    """Run a bundle's command here, attach the record, print the verdict.

    This runs the code in the bundle. The bundle is checked first, the command is
    shown, and you are asked.
    """
    from reprobundle.pack.passes import parse_passes
    from reprobundle.replay.options import ReplayOptions
    from reprobundle.replay.replay import inspect_plan

    options = ReplayOptions(
        bundle=bundle,
        environment=environment,
        device=device,
        passes=parse_passes(passes),
        smoke=smoke,
        record_file=record_file,
        wheels=wheels,
        allow=allow,
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

    def say(line: str) -> None:
        _say(line)
        report_progress(line)

    try:
        done = run_replay(options, plan, say=say)
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


@cli.command()
@click.argument("job", required=False)
@click.option("--cancel", is_flag=True, help="End the job.")
@_json
def status(*, job: str | None, cancel: bool, as_json: bool) -> int:
    """Show detached replays: running, finished, crashed, or lost in a reboot."""
    from reprobundle.report.jobs import render_jobs

    text, exit_status = render_jobs(job, end=cancel, as_json=as_json)
    click.echo(text)
    return exit_status


@cli.command()
@_bundle
@_json
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


@cli.command()
@_bundle
@click.argument("paths", nargs=-1)
@click.option(
    "--into",
    required=True,
    type=click.Path(path_type=Path),
    help="A new folder; nothing is ever overwritten.",
)
def extract(*, bundle: Path, paths: tuple[str, ...], into: Path) -> int:
    """Write members of a bundle to a new folder; all of them without PATHS."""
    from reprobundle.format.reader import extract as write_members
    from reprobundle.format.reader import open_bundle
    from reprobundle.report.progress import progress

    with open_bundle(bundle) as opened:
        wanted = tuple(paths) or None
        with progress("extracting", opened.size_bytes) as advance:
            write_members(opened, into, paths=wanted, progress=advance)
    click.echo(f"extracted to {into}")
    return 0


@cli.command()
@_bundle
@click.argument("path")
def cat(*, bundle: Path, path: str) -> int:
    """Print one member of a bundle, whole and unchanged."""
    from reprobundle.format.reader import open_bundle

    with open_bundle(bundle) as opened, opened.open(path) as stream:
        out = sys.stdout.buffer
        while block := stream.read(1 << 20):
            out.write(block)
        out.flush()
    return 0


@cli.command()
@_bundle
@click.argument("replay_file", type=click.Path(path_type=Path))
def attach(*, bundle: Path, replay_file: Path) -> int:
    """Attach a replay that travelled alone (.rpr.zip) to its bundle."""
    from reprobundle.format.attach import attach_replay_file

    for identifier in attach_replay_file(bundle, replay_file):
        click.echo(f"attached replay {identifier}")
    return 0


@cli.command()
@_bundle
@click.argument("replay_id")
def detach(*, bundle: Path, replay_id: str) -> int:
    """Remove the newest attached replay; the sealed part stays as it is."""
    from reprobundle.format.attach import detach_replay

    detach_replay(bundle, replay_id)
    click.echo(f"detached replay {replay_id}")
    return 0


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _size(path: Path) -> int | None:
    return path.stat().st_size if path.is_file() else None


def _say(line: str) -> None:
    click.echo(line, err=True)


def _tell_job(error: ReprobundleError) -> None:
    """Let a detached replay that ends with an error say so, if this is one."""
    if "REPROBUNDLE_JOB" in os.environ:
        from reprobundle.replay.jobs import report_result

        report_result(error.exit_status, str(error))


def run(arguments: list[str]) -> int:
    """Run the command line and return its exit status.

    Args:
        arguments: Without the program's name.
    """
    try:
        status = cli.main(arguments, prog_name="reprobundle", standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("interrupted", err=True)
        return EXIT_BAD_CALL
    except click.ClickException as error:
        click.echo(f"reprobundle: {error.format_message()}", err=True)
        return EXIT_BAD_CALL
    except ReprobundleError as error:
        click.echo(f"reprobundle: {error}", err=True)
        _tell_job(error)
        return error.exit_status
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        return EXIT_BAD_CALL
    except BrokenPipeError:
        # The reader of our output went away, as `head` does.
        sys.stderr.close()
        return EXIT_BAD_CALL
    return status if isinstance(status, int) else 0


def main() -> None:
    """Run the console script.

    It ends without the interpreter's clean-up, which takes a sixth of the time that a
    verify of a small bundle takes: every file and folder is closed or removed by then.
    """
    status = run(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        # The reader of our output may have gone away, as `head` does.
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)
