"""Make a forecast of the events of a run on the CPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from reprobundle.errors import BadCallError
from reprobundle.format.forecast_report import (
    Drawn,
    ForecastInvented,
    ForecastKernel,
    ForecastOperator,
    ForecastRefusal,
    ForecastReport,
    ForecastSite,
)
from reprobundle.port.forecast.crossed import judge_crossings, judge_kernels
from reprobundle.port.forecast.judged import (
    SCALAR_READ,
    judge_operators,
    memory_fits,
)
from reprobundle.run.events import (
    AnyEvent,
    EventFile,
    FactEvent,
    Float64SearchEvent,
    Float64SiteEvent,
    MappedEvent,
    SteeredEndEvent,
    SteeredInputsEvent,
    SteeredInventedEvent,
    SteeredOperatorEvent,
    SteeredRefusalEvent,
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
    "operators and copies inside C++ code below the dispatcher, and those of saving",
    "branches that were not taken in this run",
)
_DRY = (
    "values: nothing was computed, so indices, masks and losses were not looked at",
)
# What a question of a size or a time got where MPS was not there to ask.
ANSWERED = "0"
_MOST_NAMED = 4
# Questions to a tensor, and marks for a profiler.
_NO_WORK = ("prim.", "profiler.")


def judge(
    processes: Sequence[EventFile],
    argv: tuple[str, ...],
    *,
    torch: str = "",
    memory_bytes: int | None = None,
    gaps: tuple[str, ...] = (),
    mode: Literal["run", "dry"] = "run",
    ended: bool = False,
) -> ForecastReport:
    """Return the forecast that follows from events.

    Args:
        processes: Events of all processes.
        argv: The command.
        torch: Target version; the one that ran by default.
        memory_bytes: Memory of the Mac; all usual sizes by default.
        gaps: What else is known to be missing.
        mode: ``dry`` where no value was computed.
        ended: Whether the command ended by the last refusal.

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
    table = table_for(torch or ran_with)
    rows = [one for one in events if isinstance(one, SteeredOperatorEvent)]
    rows = [row for row in rows if not row.operator.startswith(_NO_WORK)]
    steered = any(row.steered for row in rows)
    counted = [row for row in rows if row.steered or not steered]
    invented = tuple(_invented(events))
    found = (*gaps, *_gaps(events, invented, steered=steered, dry=mode == "dry"))
    report = ForecastReport(
        command=argv,
        torch=table.version,
        ran_with=ran_with,
        steered=steered,
        steps=max(one.steps for one in ends),
        operators=tuple(judge_operators(counted, table, steered=steered)),
        float64=tuple(_sites(events)),
        scalar_reads=sum(row.count for row in counted if SCALAR_READ in row.operator),
        peak_bytes=max(one.peak_bytes for one in ends),
        memory=memory_fits(max(one.peak_bytes for one in ends), memory_bytes),
        not_covered=(*found, *_ALWAYS),
        mode=mode,
        crossings=tuple(judge_crossings(events)),
        kernels=tuple(judge_kernels(events, table.version)),
        refused=tuple(_refused(events, ended=ended)),
        invented=invented,
        inputs=_inputs(events),
        exit_status=EXIT_UNDECIDED if found else EXIT_NOTHING_BLOCKS,
    )
    return with_status(report, asked_memory=memory_bytes is not None)


def with_status(report: ForecastReport, *, asked_memory: bool) -> ForecastReport:
    """Return the report with the exit status that its content asks for.

    Args:
        report: With the status that its gaps ask for.
        asked_memory: Whether one size of Mac was named, which then has to do.
    """
    status = report.exit_status
    if (
        any(one.place == "unknown" for one in report.operators)
        or any(on_cpu(report))
        or any(one.kind == "refused" for one in report.kernels)
    ):
        status = EXIT_UNDECIDED
    if _blocked(report) or (asked_memory and report.memory[0].fit == "cannot"):
        status = EXIT_BLOCKED
    return msgspec.structs.replace(report, exit_status=status)


def _blocked(report: ForecastReport) -> bool:
    """Tell whether something raises, or is wrong for certain.

    Where MPS was never asked for, no operator is known to come there.
    """
    return (
        not report.operators
        or (report.steered and any(is_refused(one) for one in report.operators))
        or bool(report.float64)
        or any(one.kind == "mixed-devices" for one in report.crossings)
        or any(map(is_wrong, report.kernels))
        or any(map(raises, report.kernels))
        or bool(report.refused)
    )


def is_refused(one: ForecastOperator) -> bool:
    """Tell whether an operator has no kernel, so that MPS raises."""
    return one.place == "missing"


def is_wrong(one: ForecastKernel) -> bool:
    """Tell whether a form is known to give wrong numbers for certain."""
    return one.kind == "wrong" and one.certainty == "certain"


def raises(one: ForecastKernel) -> bool:
    """Tell whether a kernel refuses a form for certain."""
    return one.kind == "refused" and one.certainty == "certain"


def on_cpu(report: ForecastReport) -> Iterator[str]:
    """Yield the operators that run on the CPU of a Mac whatever is set.

    They raise nothing and stop no run. But a run that touched the CPU is no result of
    MPS, so a forecast with one of them never has status 0.
    """
    for one in report.operators:
        if one.place == "always-cpu":
            yield one.operator
    for kernel in report.kernels:
        if kernel.kind == "detour" and kernel.certainty == "certain":
            yield kernel.operator


def table_for(version: str) -> OperatorTable:
    """Return the table of a version of torch.

    Raises:
        BadCallError: There is none.
    """
    table = table_of(version)
    if table is None:
        known = table_versions()
        raise BadCallError(
            f"there is no table of operators for torch {version or 'of this run'}",
            advice=f"name one with --torch, {known[0]} to {known[-1]}",
        )
    return table


def _version(events: Sequence[AnyEvent]) -> str:
    facts = [one for one in events if isinstance(one, FactEvent)]
    found = [one.value for one in facts if one.name == "torch.version"]
    return str(found[0]) if found else ""


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


def _invented(events: Sequence[AnyEvent]) -> Iterator[ForecastInvented]:
    for one in events:
        if isinstance(one, SteeredInventedEvent):
            yield ForecastInvented(where=one.where, how=one.how, count=one.count)


def _refused(events: Sequence[AnyEvent], *, ended: bool) -> Iterator[ForecastRefusal]:
    found = [one for one in events if isinstance(one, SteeredRefusalEvent)]
    for one in found:
        last = ended and one is found[-1]
        yield ForecastRefusal(where=one.where, error=one.error, ended=last)


def _inputs(events: Sequence[AnyEvent]) -> Drawn:
    found = [one for one in events if isinstance(one, SteeredInputsEvent)]
    drawn, others = sum(o.drawn for o in found), sum(o.others for o in found)
    if not drawn:
        return "not-seen-drawn" if others else "unknown"
    return "partly-drawn" if others else "drawn"


def _gaps(
    events: Sequence[AnyEvent],
    invented: Sequence[ForecastInvented],
    *,
    steered: bool,
    dry: bool,
) -> Iterator[str]:
    """Yield what this run in particular left unseen, each once."""
    if dry:
        yield from _DRY
    places = list(dict.fromkeys(one.where for one in invented if one.where))
    if places:
        rest = len(places) - _MOST_NAMED
        told = ", ".join(places[:_MOST_NAMED]) + (f" and {rest} more" * (rest > 0))
        yield f"what depends on values that were invented at {told}"
    if not steered:
        yield (
            "whether MPS is asked for at all: nothing was moved to or made on a device "
            "that the command is told ({device}) or a call names (mps), so on a Mac it "
            "may stay on the CPU; all operators count as if it did not, memory and "
            "float64 do not count"
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
    found += _replaced(events)
    yield from dict.fromkeys(found)


def _replaced(events: Sequence[AnyEvent]) -> Iterator[str]:
    """Yield what was done in the place of MPS, and is not what a Mac does."""
    for one in events:
        if isinstance(one, MappedEvent) and one.call == "torch.autocast":
            yield f"what autocast casts at {one.where}: it cast as on the CPU"
        elif isinstance(one, MappedEvent) and one.call == "torch.compile":
            yield f"what is compiled at {one.where}: it ran as it stands"
        elif isinstance(one, MappedEvent) and one.became == ANSWERED:
            yield f"what depends on {one.call}() at {one.where}: 0 was answered"
