"""Run a command on the CPU, watched, and say what it would meet on MPS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from reprobundle.errors import CommandFailedError
from reprobundle.format.forecast_report import (
    ForecastCrossing,
    ForecastInvented,
    ForecastKernel,
    ForecastOperator,
    ForecastRefusal,
    ForecastReport,
    ForecastSite,
)
from reprobundle.port.forecast.compared import compare, read_forecast
from reprobundle.port.forecast.judged import refused_names
from reprobundle.port.forecast.judging import (
    EXIT_NOTHING_BLOCKS,
    EXIT_UNDECIDED,
    judge,
    table_for,
)
from reprobundle.port.forecast.subject import Subject
from reprobundle.port.forecast.watching import (
    Watched,
    torch_of,
    watch,
    without_torch,
)
from reprobundle.run.events import SteeredOperatorEvent, SteeredRefusalEvent

Placed = TypeVar(
    "Placed",
    ForecastCrossing,
    ForecastInvented,
    ForecastKernel,
    ForecastOperator,
    ForecastRefusal,
    ForecastSite,
)


@dataclass(frozen=True, kw_only=True)
class ForecastOptions:
    """What a forecast is asked for.

    Attributes:
        torch: Target version such as ``2.15``; the one that runs by default.
        memory_bytes: Memory of the Mac; all usual sizes by default.
        dry: Compute no value: for models that do not fit here.
        strict: Raise in the command what MPS would raise.
        against: Forecast of the full run, as JSON, that this run is a reduced form of.
        echo: Show what the command prints.
    """

    torch: str = ""
    memory_bytes: int | None = None
    dry: bool = False
    strict: bool = False
    against: Path | None = None
    echo: bool = False


_PLAIN = ForecastOptions()


def forecast(subject: Subject, options: ForecastOptions = _PLAIN) -> ForecastReport:
    """Run a command in a copy of its project, and judge what it asked of its device.

    Args:
        subject: The command and its files; ``{device}`` in it becomes ``cpu``.
        options: What is asked for.

    Raises:
        BadCallError: The command cannot be started or its interpreter has no torch,
            there is no table, or the forecast to compare with cannot be read.
        CommandFailedError: The command failed, so that most of it was not seen.
    """
    full = read_forecast(options.against) if options.against else None
    asked: dict[str, object] = {"dry": options.dry}
    if options.torch:
        table_for(options.torch)
    if options.strict:
        target = options.torch or torch_of(subject)
        asked["refuse"] = sorted(refused_names(table_for(target)))
    watched = watch(subject, asked=asked, echo=options.echo)
    ended = bool(watched.exit_status) and _was_refused(watched)
    gap = "what comes after the refusal that ended the command" if ended else ""
    if watched.exit_status and not ended:
        error = without_torch(watched, subject.python)
        if error is not None:
            raise error
        gap = _stopped(watched, dry=options.dry)
    report = judge(
        watched.processes,
        subject.command.argv,
        torch=options.torch,
        memory_bytes=options.memory_bytes,
        gaps=(*subject.gaps, *((gap,) if gap else ())),
        mode="dry" if options.dry else "run",
        ended=ended,
    )
    report = msgspec.structs.replace(
        _without(report, watched.root), bundle=subject.bundle, strict=options.strict
    )
    return _with_full(report, full) if full is not None else report


def _with_full(report: ForecastReport, full: ForecastReport) -> ForecastReport:
    """Return the report beside the full run's; what is left out makes it not whole."""
    compared = compare(report, full)
    status = report.exit_status
    if compared.warnings and status == EXIT_NOTHING_BLOCKS:
        status = EXIT_UNDECIDED
    return msgspec.structs.replace(report, compared=compared, exit_status=status)


def _was_refused(watched: Watched) -> bool:
    return any(
        isinstance(event, SteeredRefusalEvent)
        for process in watched.processes
        for event in process.events
    )


def _stopped(watched: Watched, *, dry: bool) -> str:
    """Return what a command that failed leaves unseen.

    A dry run goes as far as it gets without values, and is never whole anyway.

    Raises:
        CommandFailedError: It was no dry run, or nothing was seen of it.
    """
    said = watched.last_words or "it printed no error"
    seen = any(
        isinstance(event, SteeredOperatorEvent) and event.steered
        for process in watched.processes
        for event in process.events
    )
    if dry and seen:
        status = f"status {watched.exit_status}, perhaps for want of values"
        return f"what comes after the command ended ({status}): {said}"
    advice = "a forecast needs a run on the CPU that goes to its end"
    raise CommandFailedError(
        f"the command ended with status {watched.exit_status}: {said}",
        status=watched.exit_status,
        advice=advice,
    )


def _without(report: ForecastReport, root: str) -> ForecastReport:
    """Return the report with places in the project instead of in its copy."""
    place = msgspec.structs.replace
    gaps = tuple(gap.replace(root, "") for gap in report.not_covered)
    return place(
        report,
        operators=tuple(map(_placed(root), report.operators)),
        float64=tuple(map(_placed(root), report.float64)),
        crossings=tuple(map(_placed(root), report.crossings)),
        kernels=tuple(map(_placed(root), report.kernels)),
        refused=tuple(map(_placed(root), report.refused)),
        invented=tuple(map(_placed(root), report.invented)),
        not_covered=gaps,
    )


def _placed(root: str) -> Callable[[Placed], Placed]:
    def shortened(one: Placed) -> Placed:
        return msgspec.structs.replace(one, where=one.where.removeprefix(root))

    return shortened
