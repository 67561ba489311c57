"""Show an assessment and the attached acceptance records, the same in every format."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from reprobundle.format.assessment import (
    Assessment,
    AttachedAcceptance,
    Evidence,
    HeldFor,
    Point,
    PointGroup,
    PointState,
)
from reprobundle.format.findings import CheckOutcome
from reprobundle.report import text
from reprobundle.report.layout import BLANK, flow, more, paragraph
from reprobundle.report.screen import Line, Screen, Span, Style

GROUPS: dict[PointGroup, str] = {
    "object": "Acceptance objects",
    "path": "Path on macOS",
    "list": "Acceptance list",
}
OUTCOMES: dict[PointState, CheckOutcome] = {
    "met": "pass",
    "not-met": "fail",
    "not-checked": "not-checked",
    "not-applicable": "not-applicable",
}
CHOICES = {
    "choose-mac": "choose a Mac",
    "keep-linux": "keep the Linux GPU",
    "refactor": "refactor for portability",
    "dual-track": "run two tracks",
    "stop": "stop the migration",
    "undecided": "undecided",
}
STATES = {
    "holds": "HOLDS",
    "stale": "STALE",
    "not-confirmed": "NOT CONFIRMED",
    "contradicted": "CONTRADICTED",
}
POINT_COLUMNS = ("point", "state", "evidence, or why not")
RULE_COLUMNS = ("rule", "would say", "answer", "why")
ACCEPTED_COLUMNS = ("acceptance", "by", "state", "result", "why")
MOST_MISSING = 4
_ID = re.compile(r"[0-9a-f]{64}")


def of_group(assessment: Assessment, group: PointGroup) -> list[Point]:
    """Return the points of one group, in their order."""
    return [one for one in assessment.points if one.group == group]


def because(point: Point) -> str:
    """Return the source of a tick, or why there is none."""
    if point.state != "met":
        return point.reason
    shown = "; ".join(map(evidence_words, point.evidence[:2]))
    hidden = len(point.evidence) - 2
    return f"{shown}; and {hidden} more" if hidden > 0 else shown


def evidence_words(one: Evidence) -> str:
    """Return a source with what it says; ids of replays shortened."""
    source = _ID.sub(lambda match: text.digest(match[0]), one.source)
    return f"{source}: {one.says}" if one.says else source


def counted(assessment: Assessment, group: PointGroup) -> str:
    """Return how many points of a group are met, and that nothing else is hidden."""
    points = of_group(assessment, group)
    states = [one.state for one in points]
    parts = [f"{states.count('met')} of {len(points)} met"]
    for state in ("not-met", "not-checked", "not-applicable"):
        if states.count(state):
            words = state.replace("-", " ")
            parts.append(f"{states.count(state)} {words}")
    return ", ".join(parts)


def result_words(assessment: Assessment) -> str:
    """Return the one answer of an assessment, with the verdict it rests on."""
    words = assessment.acceptance.replace("-", " ").upper()
    return f"{words}, verdict {assessment.verdict} (exit {assessment.exit_status})"


def advice_words(assessment: Assessment) -> str:
    """Return the recommendation with the rule that fired."""
    advice = assessment.recommendation
    return f"{CHOICES[advice.choice]} (rule {advice.rule}): {advice.text}"


def rule_cells(assessment: Assessment) -> Iterator[tuple[str, str, str, str]]:
    """Yield one row for each rule of the recommendation."""
    for one in assessment.recommendation.answers:
        missing = f"; missing: {one.missing[0]}" if one.missing else ""
        yield one.rule, CHOICES[one.choice], one.answer, f"{one.text}{missing}"


def held_lines(assessment: Assessment) -> tuple[str, ...]:
    """Return the versions that an assessment holds for, each set once."""
    lines = tuple(dict.fromkeys(map(_held_words, assessment.holds_for)))
    return lines or ("no version: no deciding run finished",)


def _held_words(held: HeldFor) -> str:
    shown = ", ".join(f"{name} {value}" for name, value in held.versions.items())
    return f"{held.platform}: {shown}"


def accepted_cells(one: AttachedAcceptance) -> tuple[str, str, str, str, str]:
    """Return what a table says about an attached record."""
    who = f"{one.by}{f' ({one.role})' if one.role else ''}, {one.where}, {one.when}"
    if one.second_person:
        who += f"; second person {one.second_person}"
    result = (
        f"{one.acceptance.replace('-', ' ')}, {one.verdict}; {CHOICES[one.choice]} "
        f"(rule {one.rule})"
    )
    signed = "; ".join(one.signed_by) or "not signed"
    why = "; ".join((*one.reasons[:MOST_MISSING], signed))
    return text.digest(one.id), who, STATES[one.state], result, why


def accepted_lines(
    attached: Sequence[AttachedAcceptance], screen: Screen
) -> list[Line]:
    """Return the attached records for a terminal, one paragraph each."""
    lines: list[Line] = []
    for one in attached:
        name, who, state, result, why = accepted_cells(one)
        words = f"{name} {state}: {result}; by {who}; {why}"
        style: Style = "" if one.state == "holds" else "warn"
        if one.state == "contradicted":
            style = "bad"
        label = "" if lines else "accepted"
        lines += paragraph(screen, label, words, style=style)
    return lines


def assessment_lines(
    assessment: Assessment, screen: Screen, *, verbose: bool
) -> list[Line]:
    """Return the whole assessment for a terminal."""
    lines: list[Line] = []
    for group, title in GROUPS.items():
        heading = f"{title}: {counted(assessment, group)}"
        lines += [*flow(screen, group, [(Span(heading, "strong"),)])]
        for point in of_group(assessment, group):
            lines += _point(point, screen, verbose=verbose)
        lines.append(BLANK)
    lines += _advice(assessment, screen, verbose=verbose)
    lines += _held(assessment, screen)
    lines += paragraph(screen, "acceptance", result_words(assessment), style="strong")
    return lines


def _point(point: Point, screen: Screen, *, verbose: bool) -> list[Line]:
    mark = screen.mark(OUTCOMES[point.state])
    state = "" if point.state == "met" else f"{point.state.replace('-', ' ')}: "
    words = f"{point.title} {state}{because(point)}"
    body = paragraph(screen, "", words, whole=verbose)
    margin = body[0][0].text[: -text.cells(mark.text) - 1]
    return [(Span(margin), mark, Span(" "), *body[0][1:]), *body[1:]]


def _advice(assessment: Assessment, screen: Screen, *, verbose: bool) -> list[Line]:
    advice = assessment.recommendation
    lines = paragraph(screen, "recommended", advice_words(assessment), style="strong")
    for one in advice.evidence[: None if verbose else MOST_MISSING]:
        lines += paragraph(screen, "", evidence_words(one))
    if verbose:
        for rule, choice, answer, why in rule_cells(assessment):
            lines += paragraph(screen, "", f"{rule} ({choice}): {answer}: {why}")
    missing = advice.missing if verbose else advice.missing[:MOST_MISSING]
    for number, words in enumerate(missing):
        lines += paragraph(screen, "" if number else "missing", words)
    return [*lines, *more(screen, len(advice.missing) - len(missing), "missing item")]


def _held(assessment: Assessment, screen: Screen) -> list[Line]:
    lines: list[Line] = []
    for words in held_lines(assessment):
        lines += paragraph(screen, "" if lines else "holds for", words)
    return lines
