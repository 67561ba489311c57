"""Write an assessment and the attached acceptance records as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from reprobundle.format.assessment import Assessment, Point
from reprobundle.format.findings import Report
from reprobundle.report.accepted import (
    ACCEPTED_COLUMNS,
    GROUPS,
    POINT_COLUMNS,
    RULE_COLUMNS,
    accepted_cells,
    advice_words,
    because,
    counted,
    evidence_words,
    held_lines,
    of_group,
    result_words,
    rule_cells,
)
from reprobundle.report.markdown_text import code, folded, table, words


def accepted_block(report: Report) -> str:
    """Return the attached acceptance records as a table; empty without one."""
    rows = [
        (code(name), words(who), f"**{state}**", words(result), words(why))
        for name, who, state, result, why in map(accepted_cells, report.acceptances)
    ]
    return table(ACCEPTED_COLUMNS, rows)


def assessment_block(assessment: Assessment | None) -> str:
    """Return the assessment: its answer, the recommendation, all points folded."""
    if assessment is None:
        return ""
    lines = [
        f"- acceptance: {words(result_words(assessment))}",
        f"- recommended: {words(advice_words(assessment))}",
    ]
    lines += [
        f"- {title.lower()}: {counted(assessment, group)}"
        for group, title in GROUPS.items()
    ]
    body = "\n\n".join(_details(assessment))
    return "\n".join(lines) + "\n\n" + folded("Acceptance, point by point", body)


def _details(assessment: Assessment) -> Iterator[str]:
    for group, title in GROUPS.items():
        rows = [
            (words(one.title), one.state, words(because(one)))
            for one in of_group(assessment, group)
        ]
        yield f"**{title}**\n\n{table(POINT_COLUMNS, rows)}"
    ruled = [
        (code(rule), choice, answer, words(why))
        for rule, choice, answer, why in rule_cells(assessment)
    ]
    yield f"**Rules of the recommendation**\n\n{table(RULE_COLUMNS, ruled)}"
    evidence = [
        f"- {words(evidence_words(one))}" for one in assessment.recommendation.evidence
    ]
    if evidence:
        yield "**Evidence of the rule that fired**\n\n" + "\n".join(evidence)
    held = "\n".join(f"- {words(one)}" for one in held_lines(assessment))
    yield f"**Holds for**\n\n{held}"


def checklist_blocks(assessment: Assessment) -> Iterator[str]:
    """Yield one list of boxes for each group but V10's; a box is a tick."""
    for group, title in GROUPS.items():
        if group != "list":
            boxes = "\n".join(map(_box, of_group(assessment, group)))
            yield f"## {title}\n\n{boxes}"
    yield f"## Recommendation\n\n{words(advice_words(assessment))}"


def _box(point: Point) -> str:
    box = "[x]" if point.state == "met" else "[ ]"
    state = "" if point.state == "met" else f" **{point.state}**"
    return f"- {box} {words(point.title)}{state} {words(because(point))}"
