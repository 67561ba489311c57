"""How a bundle fits the destinations it is meant for, for a terminal."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from reprobundle.format.fit_report import (
    FitFinding,
    FitReport,
    FitResult,
    Offer,
)
from reprobundle.report import text
from reprobundle.report.layout import BLANK, Column, Row, paragraph, table, unbroken
from reprobundle.report.screen import Line, Screen, Span

_LIMITS = (
    Column(""),
    Column("asked"),
    Column("here", least=12),
    Column("at most", align="right"),
)


def render_fit(
    report: FitReport, screen: Screen | None = None, *, verbose: bool = False
) -> str:
    """Return for each destination what it asks, what is here, and what to leave out."""
    screen = screen or Screen()
    lines: list[Line] = []
    told = f"{report.file}  {report.size_bytes:,} bytes  {report.bundle}"
    lines += paragraph(screen, "bundle", told, whole=True)
    for one in report.destinations:
        lines += [BLANK, *_destination(screen, report.file, one, verbose=verbose)]
    lines += [BLANK, *_summary(screen, report)]
    return screen.text(lines)


def _destination(
    screen: Screen, file: str, one: FitResult, *, verbose: bool
) -> Iterator[Line]:
    yield from paragraph(screen, one.destination, one.title, style="strong")
    yield from table(screen, _LIMITS, [_finding(screen, item) for item in one.findings])
    for item in one.findings if verbose else ():
        words = f"{item.id}: {item.text} {item.source} (read {item.date})"
        yield from paragraph(screen, "", words, style="dim", whole=True)
    if one.fits:
        yield from paragraph(screen, "how", one.how)
        return
    for offer in one.offers:
        yield from _offer(screen, offer)
    yield from _together(screen, one)
    if one.can_be_split:
        command = f"reprobundle split {shlex.quote(file)} --for {one.destination}"
        yield from unbroken(screen, "or", command)


def _finding(screen: Screen, one: FitFinding) -> Row:
    mark = screen.mark(one.outcome)
    most = f"{one.most:,}" if one.most is not None else text.NOTHING
    return mark, Span(one.id), Span(one.got, mark.style), Span(most)


def _offer(screen: Screen, one: Offer) -> Iterator[Line]:
    """Yield an option in one line, to be copied, and what it does below it."""
    yield from unbroken(
        screen, "leave out *" if one.chosen else "leave out", one.option
    )
    saves = f"{one.saves_bytes:,} bytes"
    if one.saves_characters is not None:
        saves = f"about {one.saves_characters:,} characters"
    words = f"saves {saves}: {one.what}. Costs: {one.costs}."
    yield from paragraph(screen, "", words, style="dim")


def _together(screen: Screen, one: FitResult) -> Iterator[Line]:
    chosen = [item for item in one.offers if item.chosen]
    options = dict.fromkeys(
        item.option for item in chosen if item.option.startswith("-")
    )
    commands = dict.fromkeys(
        item.option for item in chosen if not item.option.startswith("-")
    )
    for command in commands:
        yield from unbroken(screen, "run", command)
    if options:
        yield from unbroken(screen, "pack with", " ".join(options))
    if one.offers and not one.enough:
        words = "even all of that is not enough"
        yield from paragraph(screen, "together", words, style="warn")


def _summary(screen: Screen, report: FitReport) -> list[Line]:
    words = [_sentence(one) for one in report.destinations]
    good = report.exit_status == 0
    style = "strong good" if good else "strong bad"
    label = "FITS" if good else "DOES NOT FIT"
    return paragraph(screen, label, "; ".join(words), style=style)  # type: ignore[arg-type]


def _sentence(one: FitResult) -> str:
    def named(outcome: str) -> str:
        return ", ".join(item.id for item in one.findings if item.outcome == outcome)

    parts = [f"{one.destination}: {'yes' if one.fits else 'no'}"]
    for outcome, words in (
        ("fail", "refused for"),
        ("warn", "but see"),
        ("not-checked", "not checked"),
    ):
        if names := named(outcome):
            parts.append(f"{words} {names}")
    return ", ".join(parts)
