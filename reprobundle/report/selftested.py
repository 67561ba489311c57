"""The table of `selftest`, for a terminal."""

from __future__ import annotations

from reprobundle.format.findings import CheckOutcome
from reprobundle.format.selftest_report import (
    MutationResult,
    MutationRow,
    SelftestReport,
)
from reprobundle.report import text
from reprobundle.report.layout import BLANK, Column, Row, paragraph, table
from reprobundle.report.screen import Line, Screen, Span

_OUTCOMES: dict[MutationResult, CheckOutcome] = {
    "caught": "pass",
    "passed": "fail",
    "wrong-reason": "fail",
    "not-possible": "not-applicable",
}
_WORDS: dict[MutationResult, str] = {
    "caught": "caught",
    "passed": "NOT NOTICED",
    "wrong-reason": "OTHER REASON",
    "not-possible": "not possible here",
}
_COLUMNS = (
    Column(""),
    Column("what was altered", least=24),
    Column("copies", align="right"),
    Column("result"),
    Column("because of", least=12),
)


def render_selftest(report: SelftestReport, screen: Screen | None = None) -> str:
    """Return the table and the one line that sums it up."""
    screen = screen or Screen()
    lines: list[Line] = [
        *paragraph(screen, "bundle", f"{report.file}  {report.bundle}", whole=True),
        *paragraph(screen, "unaltered", report.control),
        BLANK,
        *table(screen, _COLUMNS, [_row(screen, row) for row in report.rows]),
        BLANK,
        *_summary(screen, report),
    ]
    return screen.text(lines)


def _row(screen: Screen, row: MutationRow) -> Row:
    mark = screen.mark(_OUTCOMES[row.result])
    because = ", ".join(row.reasons) if row.result == "caught" else row.detail
    return (
        mark,
        Span(row.title),
        Span(f"{row.copies}" if row.copies else text.NOTHING),
        Span(_WORDS[row.result], mark.style),
        Span(because, "dim"),
    )


def _summary(screen: Screen, report: SelftestReport) -> list[Line]:
    rows = report.rows
    made = [row for row in rows if row.result != "not-possible"]
    missed = [row for row in made if row.result != "caught"]
    copies = sum(row.copies for row in made)
    if missed:
        names = ", ".join(row.name for row in missed)
        words = f"{len(missed)} of {len(made)} mutations not caught: {names}"
        return paragraph(screen, "SELFTEST", words, style="strong bad")
    words = f"all {len(made)} mutations caught, {copies:,} altered copies verified"
    left = len(rows) - len(made)
    if left:
        words += f"; {left} not possible on this bundle were not tried"
    return paragraph(screen, "SELFTEST", words, style="strong good")
