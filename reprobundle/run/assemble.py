"""Make one run record, and the files that belong to it, from a finished run."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from reprobundle import __version__
from reprobundle.format.canonical import encode
from reprobundle.format.digests import digest_file
from reprobundle.format.policy import Metric, RoleRule
from reprobundle.format.record import (
    Command,
    ContentMember,
    Fact,
    FileRead,
    Memory,
    MemorySeries,
    Outcome,
    Record,
    Remark,
    Restart,
    WithheldFile,
)
from reprobundle.run import (
    device_facts,
    facts,
    hints,
    memory_log,
    notebooks,
    produced,
    ranks,
    remarks,
)
from reprobundle.run.accessed import Accesses, Places, accesses
from reprobundle.run.command import platform_name
from reprobundle.run.drawn import FINGERPRINTS, fingerprints, kept_draws
from reprobundle.run.drawn import MEMBER as DRAWS
from reprobundle.run.events import End, EventFile, read_events
from reprobundle.run.launch import Launched
from reprobundle.run.observed import observed_facts
from reprobundle.run.placeholders import Names, without_names
from reprobundle.run.project import files_digest
from reprobundle.run.promoted import promotion
from reprobundle.run.randomness import randomness
from reprobundle.run.stops import StopReason, stop_of
from reprobundle.run.system_packages import package_facts

# Members of a record that are neither output nor log.
SERIES = frozenset({"memory.json", DRAWS, FINGERPRINTS})
OUTPUT_LIMIT_BYTES = 4 << 30

PassName = Literal["measured", "repeat", "evidence", "restart", "truth"]
Role = Literal[
    "reference",
    "repeat",
    "claim",
    "evidence",
    "restart",
    "truth",
    "counterpart",
    "replay",
]


@dataclass(frozen=True)
class FinishedRun:
    """Everything known after a command ended.

    Attributes:
        launched: How it ended.
        places: Scratch folder, original project, machinery.
        staged: Digest of each file the scratch folder started with, by name.
        members: Member of the bundle that holds each of those files.
        withheld: Those that the bundle holds by digest only.
        changed: Files below the scratch folder that the run created or changed.
        command: As recorded.
        python: The user's interpreter, or None.
        work: A folder for files made on the way.
        device: Device asked for.
        mapping: As in `Devices`.
        pass_name: As in `Record`.
        restart: As in `Record`.
        metrics: Numbers to read from the standard output.
        roles: What outputs are for.
        hide: Pairs of text and replacement for every recorded text.
        extra_facts: Facts that the launcher knows, such as the git commit.
    """

    launched: Launched
    places: Places
    staged: Mapping[str, str]
    members: Mapping[str, str]
    changed: tuple[str, ...]
    command: Command
    python: Path | None
    work: Path
    withheld: tuple[WithheldFile, ...] = ()
    device: str = "as-is"
    mapping: device_facts.DeviceMapping = ""
    pass_name: PassName = "measured"
    restart: Restart | None = None
    metrics: tuple[Metric, ...] = ()
    roles: tuple[RoleRule, ...] = ()
    hide: list[tuple[str, str]] = field(default_factory=list)
    extra_facts: Mapping[str, Fact] = field(default_factory=dict)
    output_limit_bytes: int = OUTPUT_LIMIT_BYTES


@dataclass(frozen=True)
class Assembled:
    """A record and its content.

    Attributes:
        record: The record.
        content: Member name relative to the record → file on disk.
        accesses: Which files the run read and wrote.
    """

    record: Record
    content: dict[str, Path]
    accesses: Accesses


def assemble(
    run: FinishedRun,
    *,
    role: Role,
    claim: str = "main",
    bundle: str = "",
    compared_run: int = 0,
    occasion: str = "",
    expected_failure: bool = False,
    externals: Mapping[Path, FileRead] | None = None,
    sealed: Mapping[str, str] | None = None,
) -> Assembled:
    """Return the record of `run`.

    Args:
        run: The finished run.
        role: As in `Record`.
        claim: As in `Record`.
        bundle: As in `Record`.
        occasion: As in `Record`.
        compared_run: Number of the sealed run a replay stands against.
        expected_failure: Whether failing is the result to record.
        externals: Files read outside the project that the bundle holds or names.
        sealed: Digest → sealed member, for outputs that are already in the bundle.

    Raises:
        PackRefusedError: An output is larger than the limit.
    """
    files = read_events(run.launched.session.events)
    access = accesses(files, run.places)
    run = _with_cell_places(run, files, access)
    processes = facts.processes(files, run.launched)
    known = randomness(
        files,
        run.command.seed,
        run.hide,
        complete=run.launched.watched and all(one.entered for one in processes),
    )
    environment = {
        **facts.environment(files),
        **observed_facts(files, known),
        **run.extra_facts,
    }
    environment |= package_facts(environment)
    outputs, missing_metrics = _outputs(run, files, access, sealed or {})
    content = {**outputs.content, **_logs(run)}
    content |= kept_draws(files, run.launched.session.values)
    content |= fingerprints(run.launched.session.values)
    traced = run.pass_name in ("evidence", "truth")
    samples = memory_log.memory_samples(files, run.launched.start_ns)
    samples = () if traced else samples
    kept = memory_log.thinned(samples)
    if kept:
        content["memory.json"] = _write(
            run.work / "memory.json", encode(MemorySeries(samples=kept))
        )
    # What tracing costs is no property of the run: times and memory are thrown away.
    phases = () if traced else facts.phases(files)[0]
    log = memory_log.memory(
        files,
        samples,
        environment,
        series="memory.json",
        kept=len(kept),
        hide=run.hide,
    )
    sources = _sources(files, run.places.scratch)
    record = Record(
        bundle=bundle,
        role=role,
        pass_name=run.pass_name,
        claim=claim,
        runs=compared_run,
        occasion=occasion,
        tool=f"reprobundle {__version__}",
        started=run.launched.started,
        elapsed_ns=run.launched.elapsed_ns,
        platform=platform_name(),
        command=run.command,
        environment=dict(sorted(environment.items())),
        randomness=known,
        processes=processes,
        ranks=ranks.ranks(files, run.places.scratch),
        restart=run.restart,
        promotion=promotion(files) if run.pass_name == "truth" else None,
        phases=phases,
        memory=log,
        devices=device_facts.devices(
            files,
            environment,
            run.device,
            stderr=run.launched.session.stderr,
            hide=run.hide,
            mapping=run.mapping,
        ),
        files_digest=files_digest(list(run.staged.items())),
        reads=_reads(run, access, externals or {}),
        sources=sources,
        outputs=tuple(outputs.outputs),
        outcome=_outcome(
            run,
            files,
            expected_failure=expected_failure,
            may_stop=role == "replay" and not expected_failure,
        ),
        remarks=(
            *remarks.of_run(
                files,
                run.launched,
                processes,
                access,
                run.hide,
                seed=run.command.seed,
            ),
            *_output_remarks(outputs, missing_metrics),
            *(_kept_memory(log, run, access, sources) if role == "reference" else ()),
        ),
        members=tuple(
            ContentMember(
                name=name, size_bytes=path.stat().st_size, blake3=digest_file(path)
            )
            for name, path in sorted(content.items())
        ),
        withheld=run.withheld,
    )
    record = without_names(record, run.hide, Names.here())
    return Assembled(record=record, content=content, accesses=access)


def _with_cell_places(
    run: FinishedRun, files: tuple[EventFile, ...], access: Accesses
) -> FinishedRun:
    """Have recorded texts name notebook cells instead of a kernel's made-up files."""
    names = [
        name for name in (*sorted(access.read), *run.changed) if name.endswith(".ipynb")
    ]
    places = notebooks.cell_places(files, run.places.scratch, names)
    return dataclasses.replace(run, hide=[*places, *run.hide])


def _outputs(
    run: FinishedRun,
    files: tuple[EventFile, ...],
    access: Accesses,
    sealed: Mapping[str, str],
) -> tuple[produced.Produced, list[str]]:
    session = run.launched.session
    printed, missing = produced.metrics_found(run.metrics, session.stdout, run.work)
    found = [
        *produced.files_found(
            run.places.scratch, run.changed, frozenset(run.staged), access.read
        ),
        *produced.values_found(files, session.values),
        *printed,
    ]
    return (
        produced.collect(
            found,
            python=run.python,
            work=run.work,
            sealed=sealed,
            limit_bytes=run.output_limit_bytes,
            roles=run.roles,
        ),
        missing,
    )


def _logs(run: FinishedRun) -> dict[str, Path]:
    session = run.launched.session
    return {"stdout.txt": session.stdout, "stderr.txt": session.stderr}


def _write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def _reads(
    run: FinishedRun, access: Accesses, externals: Mapping[Path, FileRead]
) -> tuple[FileRead, ...]:
    inside = [
        FileRead(
            path=f"project:{name}",
            member=run.members.get(name, ""),
            size_bytes=_size(run.places.scratch / name),
            blake3=run.staged[name],
        )
        for name in sorted(access.read)
        if name in run.staged
    ]
    outside = [
        externals.get(
            path, FileRead(path=f"missing:{path.name}", size_bytes=0, blake3="")
        )
        for path in sorted(access.read_outside)
    ]
    return (*inside, *outside)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _sources(files: tuple[EventFile, ...], scratch: Path) -> tuple[str, ...]:
    found = {
        Path(source)
        for _, event in facts.events_of(files, End)
        for source in event.sources
    }
    return tuple(
        sorted(
            path.relative_to(scratch).as_posix()
            for path in found
            if path.is_relative_to(scratch)
        )
    )


def _outcome(
    run: FinishedRun,
    files: tuple[EventFile, ...],
    *,
    expected_failure: bool,
    may_stop: bool,
) -> Outcome:
    launched = run.launched
    if launched.interrupted:
        return Outcome(
            exit_status=launched.exit_status,
            completed=False,
            stop="interrupted",
            stop_detail="the run was interrupted from the keyboard",
        )
    failed = launched.exit_status != 0
    error = facts.error(files, run.hide) if failed else None
    stop: StopReason = ""
    detail = ""
    if error is not None and may_stop:
        stop, detail = stop_of(error)
    return Outcome(
        exit_status=launched.exit_status,
        expected_failure=expected_failure,
        error=error,
        stop=stop,
        stop_detail=detail,
    )


def _kept_memory(
    log: Memory, run: FinishedRun, access: Accesses, sources: tuple[str, ...]
) -> tuple[Remark, ...]:
    """Return that memory grows, and what in the sources may be behind it.

    The script itself is no imported module, but a file that was read.
    """
    read = {name for name in access.read if name.endswith(".py")}
    return (
        *memory_log.growth_remarks(log),
        *hints.hints_in(run.places.scratch, sorted(read.union(sources))),
    )


def _output_remarks(
    outputs: produced.Produced, missing_metrics: list[str]
) -> list[Remark]:
    unreadable = [
        Remark(id="output-unreadable", severity="warning", where=name, text=reason)
        for name, reason in sorted(outputs.problems.items())
    ]
    unseen = [
        Remark(
            id="metric-not-found",
            severity="warning",
            where=name,
            text="the command printed nothing that matches the metric's pattern",
        )
        for name in missing_metrics
    ]
    return [*unreadable, *unseen]
