"""What `doctor` found, for a terminal."""

from __future__ import annotations

from reprobundle.format.doctor_report import (
    CauseAnswer,
    CheckState,
    DoctorCheck,
    DoctorReport,
    MpsCause,
)
from reprobundle.format.findings import CheckOutcome
from reprobundle.report import text
from reprobundle.report.layout import BLANK, Column, Row, paragraph, table
from reprobundle.report.screen import Line, Screen, Span, Style

_OUTCOMES: dict[CheckState, CheckOutcome] = {
    "ok": "pass",
    "warn": "warn",
    "problem": "fail",
    "unknown": "not-checked",
    "not-applicable": "not-applicable",
}
_ANSWERS: dict[CauseAnswer, Style] = {"yes": "bad", "unknown": "warn"}
_CHECKS = (Column(""), Column("check", least=14), Column("here", least=20, wraps=True))
_CAUSES = (
    Column("cause", least=20),
    Column("holds"),
    Column("because", least=16, wraps=True),
)


def render_doctor(
    report: DoctorReport, screen: Screen | None = None, *, verbose: bool = False
) -> str:
    """Return the answer about MPS, the causes, the checks, and what to do."""
    screen = screen or Screen()
    lines: list[Line] = [
        *paragraph(screen, "machine", report.machine),
        *paragraph(screen, "python", report.python),
        BLANK,
    ]
    if verbose or report.mps == "not-usable":
        lines += table(screen, _CAUSES, [_cause(one) for one in report.causes])
        lines += [BLANK]
    rows = [_check(screen, one, verbose=verbose) for one in report.checks]
    lines += table(screen, _CHECKS, rows)
    lines += [BLANK]
    told = [one for one in report.checks if one.remedy]
    remedies = [f"{one.name}: {one.remedy}" for one in told]
    remedies += [
        f"{one.title}: {one.remedy}" for one in report.causes if one.answer == "yes"
    ]
    for number, words in enumerate(remedies):
        lines += paragraph(screen, "" if number else "to do", words)
    unknown = [one.name for one in report.checks if one.state == "unknown"]
    if unknown:
        lines += paragraph(screen, "not known", ", ".join(unknown), style="warn")
    usable: Style = "strong good" if report.mps == "usable" else "strong warn"
    style = "strong bad" if report.mps == "not-usable" else usable
    lines += paragraph(screen, "MPS", report.answer, style=style)
    return screen.text(lines)


def _check(screen: Screen, one: DoctorCheck, *, verbose: bool) -> Row:
    mark = screen.mark(_OUTCOMES[one.state])
    told = one.wanted and (verbose or one.state == "problem")
    wanted = f" (wanted: {one.wanted})" if told else ""
    return (mark, Span(f"{one.group} {one.name}"), Span(f"{one.got}{wanted}"))


def _cause(one: MpsCause) -> Row:
    words = text.NOTHING if one.answer == "not-applicable" else one.answer
    return (
        Span(one.title),
        Span(words, _ANSWERS.get(one.answer, "")),
        Span(one.because, "dim"),
    )
