"""Show how far both sides of a comparison lie from the float64 run."""

from __future__ import annotations

from collections.abc import Sequence

from reprobundle.format.judged import TruthComparison
from reprobundle.format.record import Number
from reprobundle.report import text
from reprobundle.report.layout import Column, Row, more, table
from reprobundle.report.screen import Line, Screen, Span

MOST_TRUTHS = 12
TRUTH_COLUMNS = (
    "against float64",
    "compared",
    "reference error",
    "replay error",
    "which side is worse",
)
_ORDER = ("replay", "reference", "neither", "not-checked")


def truth_cells(one: TruthComparison) -> tuple[str, ...]:
    """Return the cells of one output, in the order of `TRUTH_COLUMNS`."""
    if one.worse == "not-checked":
        nothing = (text.NOTHING,) * 3
        return (one.name, *nothing, f"not checked: {one.reason}")
    errors = (_error(one.reference_error), _error(one.replay_error))
    return (one.name, text.count(one.elements), *errors, one.worse)


def _error(value: Number | None) -> str:
    return text.NOTHING if value is None else text.number(value)


def truth_lines(
    truths: Sequence[TruthComparison], screen: Screen, *, verbose: bool
) -> list[Line]:
    """Return the table for a terminal, outputs where the replay is worse first."""
    ordered = sorted(truths, key=lambda one: _ORDER.index(one.worse))
    shown = ordered if verbose else ordered[:MOST_TRUTHS]
    columns = (
        Column(TRUTH_COLUMNS[0], least=16),
        *(Column(name, align="right") for name in TRUTH_COLUMNS[1:-1]),
        Column(TRUTH_COLUMNS[-1], least=12),
    )
    rows: list[Row] = [tuple(map(Span, truth_cells(one))) for one in shown]
    return [
        *table(screen, columns, rows),
        *more(screen, len(ordered) - len(shown), "output"),
    ]
