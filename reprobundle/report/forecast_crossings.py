"""What passes between the device and the CPU in a forecast, for a terminal."""

from __future__ import annotations

from reprobundle.format.forecast_report import (
    Crossing,
    ForecastCrossing,
    ForecastReport,
)
from reprobundle.report import text
from reprobundle.report.layout import Column, Row, paragraph, table
from reprobundle.report.screen import Line, Screen, Span, Style

_COLUMNS = (
    Column("crossing"),
    Column("sure"),
    Column("where", least=12),
    Column("calls", align="right"),
    Column("a step", align="right"),
    Column("size", align="right"),
    Column("note", least=16, wraps=True),
)
_NAMES: dict[Crossing, str] = {
    "mixed-devices": "both devices",
    "to-cpu": "copy to the CPU",
    "scalar-read": "reads a value",
    "to-device": "CPU input",
}
_STYLES: dict[Crossing, Style] = {"mixed-devices": "bad", "to-device": ""}
_MOST_SHOWN = 12
# A place counts as one of the loop if it is passed in at least this many steps.
LOOP_STEPS = 2


def crossing_lines(
    report: ForecastReport, screen: Screen, *, verbose: bool
) -> list[Line]:
    """Return a table of the places, and what they mean for a loop.

    Places outside the loop are shown if they raise, or with `verbose`.
    """
    found = report.crossings
    loop = [one for one in found if is_in_loop(one)]
    shown = [
        one
        for one in found
        if verbose or one.kind == "mixed-devices" or is_in_loop(one)
    ]
    lines: list[Line] = []
    kept = shown if verbose else shown[:_MOST_SHOWN]
    if kept:
        lines += table(screen, _COLUMNS, [_row(one) for one in kept])
    left = len(found) - len(kept)
    if left:
        noun = "further place" if kept else "place"
        where = "" if kept else " outside the loop,"
        said = f"{text.plural(left, noun)}{where} not shown; -v shows all"
        lines += paragraph(screen, "" if kept else "crossings", said, style="dim")
    waits = sum(one.count for one in loop if one.kind in {"to-cpu", "scalar-read"})
    if waits and report.steps:
        said = (
            f"{waits / report.steps:.1f} times in a step the CPU waits for the device"
        )
        lines += paragraph(screen, "waits", said)
    return lines


def is_in_loop(one: ForecastCrossing) -> bool:
    """Tell whether a place is passed again and again."""
    return one.steps >= LOOP_STEPS


def _row(one: ForecastCrossing) -> Row:
    return (
        Span(_NAMES[one.kind], _STYLES.get(one.kind, "warn")),
        Span(one.certainty),
        Span(one.where or text.NOTHING),
        Span(text.count(one.count)),
        Span(f"{one.count / one.steps:.1f}" if is_in_loop(one) else "once"),
        Span(text.size(one.size_bytes)),
        Span(one.note, "dim"),
    )
