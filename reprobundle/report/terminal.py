"""Show a report to a person: what was checked, what differs, and one verdict line.

Nothing here judges. Every word about the outcome is taken from the report; this
module only orders, aligns and shortens. What is left out to keep to one screen is
counted, and ``verbose`` shows it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from reprobundle.format.findings import (
    EnvironmentDifference,
    Judgement,
    Report,
    SecondOpinion,
)
from reprobundle.format.judged import Cause
from reprobundle.report import text
from reprobundle.report.checked import (
    advice_lines,
    check_lines,
    replay_check_lines,
)
from reprobundle.report.concluded import (
    claim_cells,
    failure_words,
    opinion_words,
    told_claims,
)
from reprobundle.report.early import heading_lines
from reprobundle.report.layout import (
    BLANK,
    Column,
    Row,
    flow,
    more,
    paragraph,
    table,
    unbroken,
)
from reprobundle.report.screen import Line, Screen, Span, Style
from reprobundle.report.truths import truth_lines
from reprobundle.report.vouched import signed_rows

# What one screen holds of each kind; all of it with ``verbose``.
MOST_REASONS = 6
MOST_OTHER_DIFFERENCES = 4


def render_report(
    report: Report, screen: Screen | None = None, *, verbose: bool = False
) -> str:
    """Return everything `verify` says about one bundle; the verdict is the last line.

    Args:
        report: What to show.
        screen: Where it will be shown; standard output if None.
        verbose: Show what is otherwise only counted.
    """
    screen = screen or Screen.of(sys.stdout)
    lines = heading_lines(report, screen)
    said = report.reasons[:MOST_REASONS]
    lines += check_lines(report.findings, said, screen, verbose=verbose)
    for judgement in report.judgements:
        lines += [BLANK, *_judgement(report, judgement, screen, verbose=verbose)]
    lines += _devices(report, screen)
    if report.acceptances or report.assessment is not None:
        lines += _accepted(report, screen, verbose=verbose)
    if report.experiments:
        from reprobundle.report.experimented import experiment_lines

        lines += [BLANK, *experiment_lines(report, screen, verbose=verbose)]
    return screen.text([*lines, BLANK, *_conclusion(report, screen, verbose=verbose)])


def _judgement(
    report: Report, judgement: Judgement, screen: Screen, *, verbose: bool
) -> list[Line]:
    lines = _replay_heading(report, judgement, screen)
    lines += replay_check_lines(
        judgement, report.reasons[:MOST_REASONS], screen, verbose=verbose
    )
    if judgement.environment:
        lines += [BLANK, *_environment(judgement.environment, screen, verbose=verbose)]
    if judgement.outputs:
        # Most bundles are only asked for their integrity, and quickly.
        from reprobundle.report.comparisons import comparison_lines

        lines += [BLANK, *comparison_lines(judgement.outputs, screen, verbose=verbose)]
    if judgement.truths:
        lines += [BLANK, *truth_lines(judgement.truths, screen, verbose=verbose)]
    own = [reason for reason in judgement.reasons if reason not in report.reasons]
    if own:
        lines += [BLANK, *_reasons(own, screen, verbose=verbose)]
    if judgement.causes:
        lines += [BLANK, *_causes(judgement.causes, screen, verbose=verbose)]
    return lines


def _accepted(report: Report, screen: Screen, *, verbose: bool) -> list[Line]:
    """Return the attached acceptance records, and the assessment where one was made."""
    from reprobundle.report.accepted import accepted_lines, assessment_lines

    lines = [BLANK, *accepted_lines(report.acceptances, screen)]
    if report.assessment is not None:
        shown = assessment_lines(report.assessment, screen, verbose=verbose)
        lines += [BLANK, *shown]
    return lines


def _devices(report: Report, screen: Screen) -> list[Line]:
    """Return the reference and every device of one replay side by side."""
    if len({judgement.device for judgement in report.judgements}) < 2:
        return []
    from reprobundle.report.device_columns import device_columns

    lines: list[Line] = []
    for one in device_columns(report):
        columns = (
            Column(f"claim {one.claim}", least=16),
            *(Column(reference, least=10) for reference in one.references),
            *(Column(device, least=16) for device in one.devices),
        )
        rows: list[Row] = [
            (Span(name), *map(Span, references), *map(Span, cells))
            for name, references, cells in one.rows
        ]
        lines += [BLANK, *table(screen, columns, rows)]
    return lines


def _causes(causes: Sequence[Cause], screen: Screen, *, verbose: bool) -> list[Line]:
    """Return the likely causes; without ``verbose`` only the first one."""
    lines: list[Line] = []
    for position, cause in enumerate(causes if verbose else causes[:1]):
        words = f"{cause.text} {cause.evidence} [{cause.source}]"
        label = "" if position else "likely"
        lines += paragraph(screen, label, words, whole=verbose)
    hidden = 0 if verbose else len(causes) - 1
    lines += more(screen, hidden, "likely cause")
    command = next((cause.command for cause in causes if cause.command), "")
    if command:
        lines += unbroken(screen, "try", command)
    return lines


def _replay_heading(report: Report, judgement: Judgement, screen: Screen) -> list[Line]:
    items: list[Line] = [(Span(text.digest(judgement.replay), "strong"),)]
    if judgement.pass_name:
        items.append((Span(f"{judgement.pass_name} pass of {judgement.claim}"),))
    if judgement.device:
        items.append((Span(f"on {judgement.device}"),))
    if judgement.against > 1:
        items.append((Span(f"against run {judgement.against}"),))
    if len(report.judgements) > 1 or judgement.verdict != report.verdict:
        style = _verdict_style(judgement.exit_status)
        items.append((Span(judgement.verdict, style),))
    return flow(screen, "replay", items)


def _environment(
    differences: Sequence[EnvironmentDifference], screen: Screen, *, verbose: bool
) -> list[Line]:
    numeric = [found for found in differences if found.grade == "numeric"]
    other = [found for found in differences if found.grade != "numeric"]
    shown = other if verbose else other[:MOST_OTHER_DIFFERENCES]
    columns = (
        Column("environment", least=16),
        Column("reference", least=12),
        Column("here", least=12),
        Column(""),
    )
    rows: list[Row] = [
        (
            Span(found.name),
            Span(found.reference),
            Span(found.replay),
            _grade(found, screen),
        )
        for found in (*numeric, *shown)
    ]
    hidden = len(other) - len(shown)
    return [
        *table(screen, columns, rows),
        *more(screen, hidden, "difference", "not known to change numbers"),
    ]


def _grade(found: EnvironmentDifference, screen: Screen) -> Span:
    if found.grade != "numeric":
        return Span("")
    why = found.why or "can change numbers"
    return Span(f"{screen.marks.warned} {why}", "warn")


def _reasons(reasons: Sequence[str], screen: Screen, *, verbose: bool) -> list[Line]:
    shown = reasons if verbose else reasons[:MOST_REASONS]
    lines: list[Line] = []
    for position, reason in enumerate(shown):
        label = "" if position else "why"
        lines += paragraph(screen, label, reason, whole=verbose)
    return [*lines, *more(screen, len(reasons) - len(shown), "reason")]


def _conclusion(report: Report, screen: Screen, *, verbose: bool) -> list[Line]:
    findings = [*report.findings]
    for judgement in report.judgements:
        findings += judgement.findings
    names: list[Line] = [(Span(name),) for name in report.not_checked]
    if names and not verbose:
        names.append((Span("(--verbose says why)", "dim"),))
    return [
        *flow(screen, "not checked", names),
        *_reasons(report.reasons, screen, verbose=verbose),
        *advice_lines(findings, report.reasons[:MOST_REASONS], screen),
        *_claims(report, screen),
        *_second_opinion(report.second_opinion, screen, verbose=verbose),
        *_signed(report, screen, verbose=verbose),
        *_failure_only(report, screen),
        _verdict(report),
    ]


def _claims(report: Report, screen: Screen) -> list[Line]:
    """Return what came of each claim that says something, with its numbers."""
    lines: list[Line] = []
    for one in told_claims(report):
        name, statement, result, numbers = claim_cells(one)
        words = f"{name}: {statement}: {result}"
        label = "" if lines else "claims"
        lines += paragraph(screen, label, f"{words}; {numbers}" if numbers else words)
    return lines


def _second_opinion(
    opinion: SecondOpinion | None, screen: Screen, *, verbose: bool
) -> list[Line]:
    """Return the verdict under the verifier's policy, never in the verdict's place."""
    if opinion is None:
        return []
    beside = "the verdict below is that of the author's policy"
    words = f"{opinion_words(opinion)}; {beside}"
    lines = paragraph(screen, "your policy", words, whole=True)
    for one in opinion.looser if verbose else opinion.looser[:MOST_REASONS]:
        lines += paragraph(screen, "", f"looser: {one}", whole=verbose)
    if not verbose:
        lines += more(screen, len(opinion.looser) - MOST_REASONS, "looser rule")
    return lines


def _signed(report: Report, screen: Screen, *, verbose: bool) -> list[Line]:
    lines: list[Line] = []
    for name, words in signed_rows(report):
        lines += paragraph(screen, name, words, whole=verbose)
    return lines


def _failure_only(report: Report, screen: Screen) -> list[Line]:
    said = failure_words(report)
    return paragraph(screen, "compared", said, whole=True) if said else []


def _verdict(report: Report) -> Line:
    style = _verdict_style(report.exit_status)
    return (
        Span("VERDICT  ", "strong"),
        Span(report.verdict, style),
        Span(f" (exit {report.exit_status})"),
    )


def _verdict_style(exit_status: int) -> Style:
    if exit_status == 0:
        return "strong good"
    return "strong warn" if exit_status in {11, 12} else "strong bad"
