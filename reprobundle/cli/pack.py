"""``reprobundle pack``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reprobundle.cli.options import (
    DEVICES,
    destinations_option,
    map_device_option,
    mapped_devices,
    parse_devices,
    restart_option,
    resume_option,
    say,
    size_bytes,
    split,
)
from reprobundle.cli.paths import named

if TYPE_CHECKING:
    from reprobundle.format.record import DrawMode
    from reprobundle.pack.contents import ExternalChoice
    from reprobundle.pack.options import Packed
    from reprobundle.run.device_facts import DeviceMapping


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


def _devices(device: str, mappings: tuple[DeviceMapping, ...]) -> tuple[str, ...]:
    """Return the devices of a reference and its counterparts, in order."""
    devices = mapped_devices(parse_devices(device), mappings)
    if len(devices) > 1 and "as-is" in devices:
        raise click.UsageError("as-is is no device: name each one, such as cuda,cpu")
    if len(mappings) > 1:
        raise click.UsageError("a reference is mapped once: give --map-device once")
    return devices


@click.command(cls=_CommandAfterDashes)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    callback=named,
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
@click.option(
    "--exclude",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A file or folder that is not put into the bundle.",
)
@click.option(
    "--hash-only",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A file, folder or output whose content stays here: the bundle keeps size and "
    "digest. The holder of an input replays with --data.",
)
@click.option(
    "--pin",
    "pinned",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A file or folder outside the project, such as a cache of weights: the bundle "
    "keeps size and digest of what is read there, and a replay needs the same content.",
)
@click.option(
    "--external",
    type=click.Choice(("include", "pin", "refuse")),
    default="include",
    show_default=True,
    help="What happens to files that are read outside the project. Files of more than "
    "256 MiB are pinned in any case.",
)
@click.option(
    "--stand-in",
    "stand_ins",
    multiple=True,
    metavar="PATH=SAMPLE",
    help="The same, with a sample in its place: everybody can run one of an input, and "
    "see the form of an output.",
)
@click.option(
    "--keep-summaries",
    is_flag=True,
    help="Keep shapes, counts and moments of outputs that --hash-only and --stand-in "
    "withhold.",
)
@click.option(
    "--allow-sensitive",
    multiple=True,
    metavar="[KIND@]PATH",
    help="Seal what looks like a secret or personal data there; the record says so.",
)
@click.option("--policy", type=click.Path(path_type=Path), help="Policy file (JSON).")
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME=REGEX",
    help="A number the command prints that counts as a result.",
)
@click.option(
    "--role",
    "roles",
    multiple=True,
    metavar="PATTERN=ROLE",
    help="What outputs are for: checkpoint, metrics, prediction, figure, export, "
    "report or log.",
)
@click.option(
    "--fact",
    "facts",
    multiple=True,
    metavar="KEY=VALUE",
    help="A fact that cannot be observed, such as model_commit=4f2a; kept as stated.",
)
@click.option(
    "--citation",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="How the work is cited (CITATION.cff 1.2.0); kept as stated.",
)
@click.option(
    "--doi",
    default="",
    metavar="DOI",
    help="A DOI that is reserved for the work; kept as stated. See docs/papers.md.",
)
@click.option("--expect-failure", is_flag=True, help="Failing is the result.")
@click.option(
    "--passes",
    default="measured,repeat,evidence",
    show_default=True,
    help="Passes to make; one that is left out is reported as not checked.",
)
@click.option(
    "--repeat",
    "repeats",
    type=click.IntRange(1, 1000),
    default=1,
    show_default=True,
    help="How many repeat passes to make of each claim's command; the frozen noise "
    "floor takes in all of them.",
)
@click.option(
    "--truth",
    is_flag=True,
    help="Also run it on the CPU in float64; verify then says which side is nearer to "
    "that. See docs/truth.md.",
)
@click.option(
    "--project",
    type=click.Path(path_type=Path),
    help="Top of the project. [default: the git root, else the working directory]",
)
@restart_option
@resume_option
@click.option(
    "--device",
    default="as-is",
    show_default=True,
    metavar="DEVICE[,DEVICE]",
    help=f"One of {', '.join(DEVICES)}. On each further one the command is run once "
    "more, and a replay is judged by the run of its own device.",
)
@map_device_option
@click.option(
    "--force",
    is_flag=True,
    help="Write over a bundle that holds replays or signatures; they are lost.",
)
@click.option(
    "--rng",
    type=click.Choice(("native", "portable", "recorded")),
    default="native",
    show_default=True,
    help="Random draws: torch's own, or by the CPU's generator for every device, or "
    "that and kept for replays to start from.",
)
@click.option(
    "--draws-limit",
    default="64MiB",
    show_default=True,
    metavar="SIZE",
    help="Budget for draws, first weights and batches kept with --rng recorded.",
)
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
@click.option(
    "--offline",
    is_flag=True,
    help="Ask no package index; the bundle then has no lock for other systems.",
)
@click.option(
    "--output-budget",
    type=size_bytes,
    default="16MiB",
    show_default=True,
    metavar="SIZE",
    help="What the outputs of one run may take together. The largest ones that do not "
    "fit are kept as digests, and as values or rows at up to 100,000 places.",
)
@destinations_option
@click.option("-q", "--quiet", is_flag=True, help="Do not show the command's output.")
@click.pass_context
def pack(
    ctx: click.Context,
    *,
    output: Path | None,
    seed: int | None,
    inputs: tuple[Path, ...],
    exclude: tuple[Path, ...],
    hash_only: tuple[Path, ...],
    stand_ins: tuple[str, ...],
    keep_summaries: bool,
    pinned: tuple[Path, ...],
    external: ExternalChoice,
    allow_sensitive: tuple[str, ...],
    policy: Path | None,
    metrics: tuple[str, ...],
    roles: tuple[str, ...],
    facts: tuple[str, ...],
    citation: Path | None,
    doi: str,
    expect_failure: bool,
    passes: str,
    repeats: int,
    truth: bool,
    project: Path | None,
    restart_check: bool,
    resume_command: str,
    device: str,
    mappings: tuple[DeviceMapping, ...],
    force: bool,
    rng: DrawMode,
    draws_limit: str,
    purpose: str,
    scenario: str,
    accepting_platforms: str,
    fallback: str,
    output_limit: int,
    offline: bool,
    output_budget: int,
    destinations: tuple[str, ...],
    quiet: bool,
) -> int:
    """Run COMMAND and write one bundle about it.

    The command runs in copies of the project: once measured, once again from what
    the bundle holds, and, if it loads torch, once traced for evidence about devices
    and operators. Nothing is written if it fails. With --for the bundle is written and
    compared with what the destination takes: exit status 10 if that refuses it.
    """
    from reprobundle.format.policy import Intent
    from reprobundle.pack.citing import with_citation
    from reprobundle.pack.options import PackOptions
    from reprobundle.pack.pack import pack as run_pack
    from reprobundle.pack.passes import parse_command, parse_passes
    from reprobundle.pack.policy import parse_metric, parse_role
    from reprobundle.pack.stated import parse_facts
    from reprobundle.report.packed import render_packed
    from reprobundle.report.progress import progress
    from reprobundle.report.screen import Screen

    here = Path.cwd()
    devices = _devices(device, mappings)
    options = PackOptions(
        argv=ctx.obj,
        output=output or here / f"{(project or here).resolve().name}.rpb.zip",
        working_directory=here,
        project=project,
        seed=seed,
        inputs=inputs,
        exclude=exclude,
        hash_only=hash_only,
        stand_ins=stand_ins,
        keep_summaries=keep_summaries,
        pinned=pinned,
        external=external,
        allow_sensitive=allow_sensitive,
        policy=policy,
        metrics=tuple(parse_metric(metric) for metric in metrics),
        roles=tuple(parse_role(role) for role in roles),
        facts=with_citation(parse_facts(facts), citation, doi),
        intent=Intent(
            purpose=purpose,
            scenario=scenario,
            accepting_platforms=split(accepting_platforms),
            fallback="allowed" if fallback == "allowed" else "forbidden",
        ),
        expect_failure=expect_failure,
        passes=parse_passes(f"{passes}{',restart' * restart_check}{',truth' * truth}"),
        repeats=repeats,
        resume_command=parse_command(resume_command),
        device=devices[0],
        further_devices=devices[1:],
        mapping=mappings[0] if mappings else "",
        force=force,
        rng=rng,
        draws_limit_bytes=size_bytes(draws_limit),
        output_limit_bytes=output_limit,
        output_budget_bytes=output_budget,
        echo=not quiet,
        offline=offline,
    )
    with progress("writing the bundle") as advance:
        packed = run_pack(options, say=say, progress=advance)
    _note(packed)
    click.echo(render_packed(packed, Screen.of(sys.stdout)))
    return _fitting(packed.path, destinations)


def _note(packed: Packed) -> None:
    """Note the bundle as a copy of data, if its policy states rules about them."""
    from reprobundle.errors import EnvironmentUnusableError
    from reprobundle.run.copies import DataUse

    use = DataUse(packed.sealed.id, packed.data, "")
    try:
        use.copied("bundle", packed.path)
    except EnvironmentUnusableError as error:
        say(f"NOT NOTED in the list of copies: {error}")


def _fitting(path: Path, destinations: tuple[str, ...]) -> int:
    """Say whether the bundle fits where it is to go; return the exit status."""
    if not destinations:
        return 0
    from reprobundle.report.fitted import render_fit
    from reprobundle.report.screen import Screen
    from reprobundle.verify.fit.check import check_fit

    report = check_fit(path, destinations)
    click.echo(render_fit(report, Screen.of(sys.stdout)))
    return report.exit_status
