"""Compare the operators of a reduced run with those of the full run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from reprobundle.errors import BadCallError, DocumentError
from reprobundle.format.canonical import decode
from reprobundle.format.forecast_report import ForecastComparison, ForecastReport
from reprobundle.verify.mps_operators import base_name

LARGEST_REPORT_BYTES = 64 << 20


def read_forecast(path: Path) -> ForecastReport:
    """Return a forecast that was written with ``--json``.

    Raises:
        BadCallError: The file cannot be read, or is no forecast.
    """
    advice = "write one with: reprobundle forecast --json … > full.json"
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_REPORT_BYTES + 1)
        return decode(
            data,
            ForecastReport,
            where=str(path),
            rule="reprobundle/forecast/1",
            limit_bytes=LARGEST_REPORT_BYTES,
        )
    except OSError as error:
        raise BadCallError(
            f"cannot read {str(path)!r}: {error.strerror}", advice=advice
        ) from error
    except DocumentError as error:
        raise BadCallError(
            f"{str(path)!r} is no forecast: {error}", advice=advice
        ) from error


def compare(reduced: ForecastReport, full: ForecastReport) -> ForecastComparison:
    """Return what a reduced run leaves out of the full one."""
    ours, theirs = _operators(reduced), _operators(full)
    vanished = tuple(name for base, name in theirs.items() if base not in ours)
    return ForecastComparison(
        other=full.command,
        vanished=vanished,
        added=tuple(name for base, name in ours.items() if base not in theirs),
        warnings=tuple(_warnings(reduced, full, len(vanished))),
    )


def _operators(report: ForecastReport) -> dict[str, str]:
    """Return base name, as MPS is asked for it → name as called."""
    return {
        one.on_mps or base_name(one.operator): one.operator for one in report.operators
    }


def _warnings(
    reduced: ForecastReport, full: ForecastReport, vanished: int
) -> Iterator[str]:
    if vanished:
        yield (
            f"the reduced run does not call {vanished} operators of the full run: it "
            "cannot stand for it"
        )
    if reduced.inputs == "drawn" and full.inputs != "drawn":
        yield "its models were given random draws alone, the full run's were not"
    if reduced.steps == 0 < full.steps:
        yield "it makes no optimizer step, and the full run does"
    if (full.torch, full.ran_with) != (reduced.torch, reduced.ran_with):
        yield (
            f"the full run was forecast for torch {full.torch} with {full.ran_with}, "
            f"this one for {reduced.torch} with {reduced.ran_with}"
        )
    if not full.operators:
        yield "no operator was seen in the full run"
