"""Two runs side by side, for a terminal."""

from __future__ import annotations

from reprobundle.format.difference_report import (
    Change,
    Conclusion,
    DecisionTable,
    DifferenceReport,
    Effect,
)
from reprobundle.report import text
from reprobundle.report.comparisons import comparison_lines
from reprobundle.report.layout import BLANK, Column, Row, more, paragraph, table
from reprobundle.report.screen import Line, Screen, Span

MOST_CHANGES = 24

_SIDES = {"C21": ("constant", "dynamic"), "C30": ("full", "minimal")}

_CHANGES = (
    Column("change of"),
    Column("what", least=16),
    Column("left", least=12),
    Column("right", least=12),
)
_EFFECTS = (
    Column("result", least=16),
    Column("left", align="right", least=10),
    Column("right", align="right", least=10),
    Column("right / left", align="right"),
    Column("", least=12),
)


def render_differences(
    report: DifferenceReport, screen: Screen | None = None, *, verbose: bool = False
) -> str:
    """Return what was changed, what came of it, and what the pair shows."""
    screen = screen or Screen()
    lines: list[Line] = [
        *paragraph(screen, "left", report.left),
        *paragraph(screen, "right", report.right),
        BLANK,
        *_changes(report, screen, verbose=verbose),
        BLANK,
    ]
    if report.outputs:
        lines += [*comparison_lines(report.outputs, screen, verbose=verbose), BLANK]
    lines += [*table(screen, _EFFECTS, [_effect(one) for one in report.effects]), BLANK]
    for place, conclusion in enumerate(report.conclusions):
        lines += _conclusion(conclusion, screen, label="" if place else "shows")
    for decision in report.tables:
        lines += [BLANK, *_decision(decision, screen)]
    return screen.text(lines)


def _changes(report: DifferenceReport, screen: Screen, *, verbose: bool) -> list[Line]:
    if not report.changes:
        return paragraph(screen, "changes", "none that is recorded")
    # What counts comes first: the rest is only shown.
    ordered = sorted(report.changes, key=lambda one: one.axis not in report.axes)
    shown = ordered if verbose else ordered[:MOST_CHANGES]
    return [
        *table(screen, _CHANGES, [_change(report, one) for one in shown]),
        *more(screen, len(ordered) - len(shown), "change"),
    ]


def _change(report: DifferenceReport, one: Change) -> Row:
    counted = one.axis in report.axes
    return (
        Span(one.axis, "warn" if counted else "dim"),
        Span(one.name),
        Span(one.left),
        Span(one.right),
    )


def _effect(one: Effect) -> Row:
    ratio = text.NOTHING if one.ratio is None else f"{one.ratio:.3g}"
    return (
        Span(one.name),
        Span(one.left),
        Span(one.right),
        Span(ratio),
        Span(one.not_comparable, "warn"),
    )


def _decision(decision: DecisionTable, screen: Screen) -> list[Line]:
    """Return a decision table, the row that holds marked, and its evidence."""
    rows: list[Row] = [
        (
            screen.mark("pass") if row.holds else Span(" "),
            Span(row.left),
            Span(row.right),
            Span(row.means, "strong" if row.holds else "dim"),
        )
        for row in decision.rows
    ]
    left, right = _SIDES[decision.requirement]
    columns = (Column(""), Column(left), Column(right), Column("means", least=30))
    lines = [
        *paragraph(screen, decision.requirement, decision.title, style="strong"),
        *table(screen, columns, rows),
    ]
    if decision.undecided:
        words = f"not decided: {decision.undecided}"
        lines += paragraph(screen, "", words, style="warn")
    for one in decision.evidence:
        lines += paragraph(screen, "", one, style="dim")
    return lines


def _conclusion(one: Conclusion, screen: Screen, *, label: str) -> list[Line]:
    return paragraph(screen, label, one.text, style="strong")
