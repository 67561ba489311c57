"""What `scan` found, for a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from reprobundle.format.scan_report import (
    LEVELS,
    Action,
    Level,
    ScanFinding,
    ScanReport,
    Standing,
)
from reprobundle.report import text
from reprobundle.report.layout import BLANK, Column, Row, more, paragraph, table
from reprobundle.report.screen import Line, Screen, Span, Style

MOST_SHOWN = 12
_LEVELS: dict[Level, str] = {
    "standard-api": "1 standard PyTorch",
    "third-party": "2 third-party",
    "own-kernels": "3 own kernels",
    "distributed": "4 distributed",
}
_ACTIONS: dict[Action, str] = {
    "nothing-found": "NOTHING FOUND THAT BLOCKS",
    "not-decided": "NOT DECIDED",
    "refactor": "REFACTOR",
    "dual-track": "DUAL TRACK",
    "keep-linux-gpu": "KEEP LINUX GPU",
}
_STYLES: dict[Standing, Style] = {"blocker": "bad", "late": "warn", "check": "warn"}
_SUMMARY = (
    Column("level"),
    Column("places", align="right"),
    Column("blockers", align="right"),
    Column("other", least=20),
)
_PLACES = (
    Column("stands"),
    Column("place", least=16),
    Column("found", least=10),
    Column("why", least=16, wraps=True),
)
WARNING = (
    "MPS cannot replace CUDA: another word for the device removes no binding to it. "
    "Nothing was run; whether operators, dtypes and memory fit shows on the device."
)
OF_A_BUNDLE = (
    "Of a bundle the program is read, and whether its records and locks are whole; "
    "inputs, outputs and logs were not looked at: reprobundle verify --integrity does."
)


def render_scan(
    report: ScanReport, screen: Screen | None = None, *, verbose: bool = False
) -> str:
    """Return the levels, the places, what was not read, and the action."""
    screen = screen or Screen()
    told = ("blocker", "late", "check", "setting")
    shown = [one for one in report.findings if verbose or one.standing in told]
    few = shown if verbose else shown[:MOST_SHOWN]
    quiet = len(report.findings) - len(few)
    files = text.plural(report.files, "file")
    lines: list[Line] = [
        *paragraph(screen, "scanned", f"{report.target}: {files}"),
        BLANK,
        *table(screen, _SUMMARY, [_level(report, level) for level in LEVELS]),
        BLANK,
    ]
    if few:
        lines += table(screen, _PLACES, [_place(one) for one in few])
        lines += more(screen, quiet, "place")
        lines += [BLANK, *_remedies(screen, few), BLANK]
    lines += _aside(report, screen, verbose=verbose)
    lines += paragraph(screen, "note", WARNING, style="dim")
    if report.bundle:
        lines += paragraph(screen, "", OF_A_BUNDLE, style="dim")
    said = f"{_ACTIONS[report.action]}: {report.reason} [{report.rule}]"
    lines += paragraph(screen, "ACTION", said, style="strong")
    return screen.text(lines)


def _level(report: ScanReport, level: Level) -> Row:
    mine = [one for one in report.findings if one.level == level]
    blockers = sum(one.standing == "blocker" for one in mine)
    counts: dict[str, int] = {}
    for one in mine:
        if one.standing != "blocker":
            counts[one.standing] = counts.get(one.standing, 0) + 1
    other = ", ".join(f"{number} {name}" for name, number in counts.items())
    return (
        Span(_LEVELS[level]),
        Span(f"{len(mine)}" if mine else text.NOTHING),
        Span(f"{blockers}" if blockers else text.NOTHING, "bad" if blockers else ""),
        Span(other or text.NOTHING, "dim"),
    )


def _place(one: ScanFinding) -> Row:
    style = _STYLES.get(one.standing, "dim")
    because = Span(one.because, "dim")
    return (Span(one.standing, style), Span(one.place), Span(one.term), because)


def _remedies(screen: Screen, findings: Iterable[ScanFinding]) -> list[Line]:
    """Return each remedy once, with what it is for."""
    terms: dict[str, list[str]] = {}
    for one in findings:
        if one.standing in {"blocker", "check", "late"}:
            named = terms.setdefault(one.remedy, [])
            if one.term not in named:
                named.append(one.term)
    lines: list[Line] = []
    for number, (remedy, names) in enumerate(terms.items()):
        label = "remedies" if not number else ""
        few = ", ".join(names[:4]) + (", …" if len(names) > 4 else "")
        lines += paragraph(screen, label, f"{few}: {remedy}")
    return lines


def _aside(report: ScanReport, screen: Screen, *, verbose: bool) -> list[Line]:
    lines: list[Line] = []
    counted = text.plural(len(report.mentions), "line")
    if report.mentions:
        mention = "mentions" if len(report.mentions) == 1 else "mention"
        said = f"{counted} only {mention} such words, which counts for nothing"
        lines += paragraph(screen, "mentions", said, style="dim")
    if verbose:
        for one in report.mentions:
            said = f"{one.path}:{one.line} {one.term}"
            lines += paragraph(screen, "", said, style="dim")
    matters = [one for one in report.not_read if one.matters]
    for number, unread in enumerate(report.not_read if verbose else matters):
        label = "NOT READ" if not number else ""
        style: Style = "warn" if unread.matters else "dim"
        said = f"{unread.path}: {unread.reason}"
        lines += paragraph(screen, label, said, style=style)
    rest = len(report.not_read) - len(matters)
    if rest and not verbose:
        holds = "holds" if rest == 1 else "hold"
        said = f"{text.plural(rest, 'file')} that {holds} no text of a program"
        lines += paragraph(screen, "not read", said, style="dim")
    return lines
