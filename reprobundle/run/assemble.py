"""Make one run record, and the files that belong to it, from a finished run."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path

from reprobundle import __version__
from reprobundle.format.canonical import encode
from reprobundle.format.digests import digest_file
from reprobundle.format.record import (
    ContentMember,
    Fact,
    FileRead,
    Memory,
    MemorySeries,
    Randomness,
    Record,
    Remark,
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
from reprobundle.run.accessed import Accesses, accesses
from reprobundle.run.command import platform_name
from reprobundle.run.drawn import fingerprints, kept_draws
from reprobundle.run.events import EventFile, read_events
from reprobundle.run.files_read import files_read, sources
from reprobundle.run.finished import Assembled, FinishedRun, Role
from reprobundle.run.left_aside import left_aside
from reprobundle.run.missing_variables import missing_variables
from reprobundle.run.observed import observed_facts
from reprobundle.run.outcome import outcome
from reprobundle.run.placeholders import Names, without_names
from reprobundle.run.project import files_digest
from reprobundle.run.promoted import promotion
from reprobundle.run.randomness import randomness
from reprobundle.run.shared_content import share_content
from reprobundle.run.system_packages import package_facts
from reprobundle.run.unseen_generators import unseen_in
from reprobundle.run.unseen_programs import programs_not_seen


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
        sealed: Digest → sealed member, for content that is already in the bundle.

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
    environment = _environment(run, files, known)
    outputs, missing_metrics = _outputs(run, files, access, sealed or {})
    log, memory_series = _memory(run, files, environment)
    content = {
        **outputs.content,
        **_logs(run),
        **kept_draws(files, run.launched.session.values),
        **fingerprints(run.launched.session.values),
        **memory_series,
    }
    loaded = sources(files, run.places.scratch)
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
        environment=environment,
        randomness=known,
        processes=processes,
        ranks=ranks.ranks(files, run.places.scratch),
        restart=run.restart,
        promotion=promotion(files) if run.pass_name == "truth" else None,
        phases=() if _is_traced(run) else facts.phases(files)[0],
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
        reads=files_read(run, access, externals or {}),
        sources=loaded,
        outputs=tuple(outputs.outputs),
        outcome=outcome(
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
            *programs_not_seen(files, run.launched, processes, run.command.argv),
            *_output_remarks(outputs, missing_metrics),
            *_missing_variables(run, files, role),
            *left_aside(run.places.scratch, run.staged),
            *(
                _told_by_sources(log, run, access, loaded)
                if role == "reference"
                else ()
            ),
        ),
        members=_content_members(content),
        withheld=run.withheld,
    )
    record = without_names(record, run.hide, Names.here())
    made = Assembled(record=record, content=content, accesses=access)
    return share_content(made, sealed or {})


def _is_traced(run: FinishedRun) -> bool:
    """Return whether times and memory are those of tracing, and no property of it."""
    return run.pass_name in ("evidence", "truth")


def _environment(
    run: FinishedRun, files: tuple[EventFile, ...], known: Randomness
) -> dict[str, Fact]:
    found = {
        **facts.environment(files),
        **observed_facts(files, known),
        **run.extra_facts,
    }
    return dict(sorted((found | package_facts(found)).items()))


def _memory(
    run: FinishedRun, files: tuple[EventFile, ...], environment: Mapping[str, Fact]
) -> tuple[Memory, dict[str, Path]]:
    """Return the memory log, and the file of its series if there is one."""
    samples = memory_log.memory_samples(files, run.launched.start_ns)
    samples = () if _is_traced(run) else samples
    kept = memory_log.thinned(samples)
    log = memory_log.memory(
        files,
        samples,
        environment,
        series="memory.json",
        kept=len(kept),
        hide=run.hide,
    )
    if not kept:
        return log, {}
    path = run.work / "memory.json"
    path.write_bytes(encode(MemorySeries(samples=kept)))
    return log, {"memory.json": path}


def _content_members(content: Mapping[str, Path]) -> tuple[ContentMember, ...]:
    return tuple(
        ContentMember(
            name=name, size_bytes=path.stat().st_size, blake3=digest_file(path)
        )
        for name, path in sorted(content.items())
    )


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


def _told_by_sources(
    log: Memory, run: FinishedRun, access: Accesses, sources: tuple[str, ...]
) -> tuple[Remark, ...]:
    """Return that memory grows, and what the sources tell that a run does not.

    The script itself is no imported module, but a file that was read.
    """
    read = {name for name in access.read if name.endswith(".py")}
    names = sorted(read.union(sources))
    return (
        *memory_log.growth_remarks(log),
        *hints.hints_in(run.places.scratch, names),
        *unseen_in(run.places.scratch, names),
    )


def _missing_variables(
    run: FinishedRun, files: tuple[EventFile, ...], role: Role
) -> Iterator[Remark]:
    """Yield what a replay will lack; said once, of the run that shows it first."""
    if role in ("reference", "claim"):
        names = missing_variables(files, run.command, run.inherited)
        yield from remarks.limited(names)


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
            text="nothing that matches the metric's pattern was found in what the "
            "command printed, within a minute",
        )
        for name in missing_metrics
    ]
    return [*unreadable, *unseen]
