"""Run a command on the CPU, watched, and say what it would meet on MPS."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from reprobundle.errors import BadCallError, CommandFailedError
from reprobundle.format.forecast_report import ForecastReport, ForecastSite
from reprobundle.port.forecast.judged import (
    SCALAR_READ,
    judge_operators,
    memory_fits,
)
from reprobundle.port.forecast.subject import Subject
from reprobundle.port.forecast.watching import watch
from reprobundle.run.events import (
    AnyEvent,
    EventFile,
    FactEvent,
    Float64SearchEvent,
    Float64SiteEvent,
    SteeredEndEvent,
    SteeredOperatorEvent,
    Trouble,
)
from reprobundle.verify.mps_operators import OperatorTable, table_of, table_versions

EXIT_NOTHING_BLOCKS = 0
EXIT_BLOCKED = 10
# Nothing blocks, as far as was seen, and something was not seen.
EXIT_UNDECIDED = 11
_ALWAYS = (
    "dtypes and shapes that a kernel refuses: the table says only that there is one",
    "numerics, speed, and memory beyond the tensors that operators saw",
    "operators and copies inside C++ code below the dispatcher",
    "branches that were not taken in this run",
)


def forecast(
    subject: Subject,
    *,
    torch: str = "",
    memory_bytes: int | None = None,
    echo: bool = False,
) -> ForecastReport:
    """Run a command in a copy of its project, and judge what it asked of its device.

    Args:
        subject: The command and its files; ``{device}`` in it becomes ``cpu``.
        torch: Target version such as ``2.15``; the one that ran by default.
        memory_bytes: Memory of the Mac; all usual sizes by default.
        echo: Show what the command prints.

    Raises:
        BadCallError: The command cannot be started, or there is no table.
        CommandFailedError: The command failed, so that most of it was not seen.
    """
    if torch and table_of(torch) is None:
        raise _no_table(torch)
    watched = watch(subject, echo=echo)
    if watched.exit_status:
        raise CommandFailedError(
            f"the command ended with status {watched.exit_status}: "
            f"{watched.last_words or 'it printed no error'}",
            status=watched.exit_status,
            advice="a forecast needs a run on the CPU that goes to its end",
        )
    report = judge(
        watched.processes,
        subject.command.argv,
        torch=torch,
        memory_bytes=memory_bytes,
        gaps=subject.gaps,
    )
    return msgspec.structs.replace(
        _without(report, watched.root), bundle=subject.bundle
    )


def _without(report: ForecastReport, root: str) -> ForecastReport:
    """Return the report with places in the project instead of in its copy."""
    place = msgspec.structs.replace
    operators = (
        place(one, where=one.where.removeprefix(root)) for one in report.operators
    )
    sites = (place(one, where=one.where.removeprefix(root)) for one in report.float64)
    return place(report, operators=tuple(operators), float64=tuple(sites))


def judge(
    processes: Sequence[EventFile],
    argv: tuple[str, ...],
    *,
    torch: str = "",
    memory_bytes: int | None = None,
    gaps: tuple[str, ...] = (),
) -> ForecastReport:
    """Return the forecast that follows from events.

    Args:
        processes: Events of all processes.
        argv: The command.
        torch: Target version; the one that ran by default.
        memory_bytes: Memory of the Mac; all usual sizes by default.
        gaps: What else is known to be missing.

    Raises:
        BadCallError: torch was never imported, or there is no table for its version.
    """
    events = [event for process in processes for event in process.events]
    ends = [one for one in events if isinstance(one, SteeredEndEvent)]
    if not ends:
        raise BadCallError(
            "the command imported no torch that the recorder could watch",
            advice="forecast the command that computes, such as -- python train.py",
        )
    ran_with = _version(events)
    table = _table(torch or ran_with)
    rows = [one for one in events if isinstance(one, SteeredOperatorEvent)]
    steered = any(row.steered for row in rows)
    counted = [row for row in rows if row.steered or not steered]
    operators = judge_operators(counted, table, steered=steered)
    sites = tuple(_sites(events))
    peak = max(one.peak_bytes for one in ends)
    fits = memory_fits(peak, memory_bytes)
    blocked = (
        any(one.place in {"missing", "always-cpu"} for one in operators)
        or bool(sites)
        or not operators
        or (memory_bytes is not None and fits[0].fit == "cannot")
    )
    gaps = (*gaps, *_gaps(events, steered=steered))
    unknown = bool(gaps) or any(one.place == "unknown" for one in operators)
    return ForecastReport(
        command=argv,
        torch=table.version,
        ran_with=ran_with,
        steered=steered,
        steps=max(one.steps for one in ends),
        operators=tuple(operators),
        float64=sites,
        scalar_reads=sum(row.count for row in counted if SCALAR_READ in row.operator),
        peak_bytes=peak,
        memory=fits,
        not_covered=(*gaps, *_ALWAYS),
        exit_status=EXIT_BLOCKED
        if blocked
        else EXIT_UNDECIDED
        if unknown
        else EXIT_NOTHING_BLOCKS,
    )


def _version(events: Sequence[AnyEvent]) -> str:
    facts = [one for one in events if isinstance(one, FactEvent)]
    found = [one.value for one in facts if one.name == "torch.version"]
    return str(found[0]) if found else ""


def _table(version: str) -> OperatorTable:
    table = table_of(version)
    if table is None:
        raise _no_table(version)
    return table


def _no_table(version: str) -> BadCallError:
    known = table_versions()
    return BadCallError(
        f"there is no table of operators for torch {version or 'of this run'}",
        advice=f"name one with --torch, {known[0]} to {known[-1]}",
    )


def _sites(events: Sequence[AnyEvent]) -> Iterator[ForecastSite]:
    for one in events:
        if isinstance(one, Float64SiteEvent):
            yield ForecastSite(
                where=one.where,
                how=one.how,
                dtype=one.dtype,
                operator=one.operator,
                count=one.count,
            )


def _gaps(events: Sequence[AnyEvent], *, steered: bool) -> Iterator[str]:
    """Yield what this run in particular left unseen, each once."""
    if not steered:
        yield (
            "which operators are the device's: the script moves nothing to a device "
            "that it is told, so all of them count, and memory and float64 do not"
        )
    found = [
        one.reason
        for one in events
        if isinstance(one, (SteeredEndEvent, Float64SearchEvent)) and one.reason
    ]
    found += [
        f"the recorder's part {one.part} failed: {one.message}"
        for one in events
        if isinstance(one, Trouble)
    ]
    yield from dict.fromkeys(found)
