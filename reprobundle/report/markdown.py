"""Write a report as Markdown for an issue or an appendix: the answer first.

What is longer than one screen is folded. Everything that comes out of the bundle
stands in code spans or is escaped, so that it can be neither markup nor a mention.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence

from reprobundle.format.findings import Finding, Judgement, OutputComparison, Report
from reprobundle.format.record import Record, as_float
from reprobundle.report import text
from reprobundle.report.accepted_markdown import accepted_block, assessment_block
from reprobundle.report.cited import citation_rows
from reprobundle.report.concluded import (
    CLAIM_COLUMNS,
    claim_cells,
    failure_words,
    opinion_words,
    told_claims,
)
from reprobundle.report.device_columns import device_columns
from reprobundle.report.drifting import drift_words
from reprobundle.report.experimented import (
    EXPERIMENT_COLUMNS,
    experiment_cells,
    experiment_command,
)
from reprobundle.report.markdown_text import address, code, folded, table, words
from reprobundle.report.page import Page, ReplayPage
from reprobundle.report.truths import TRUTH_COLUMNS, truth_cells
from reprobundle.report.vouched import signed_rows
from reprobundle.verify.devices import platform_label

# GitHub takes 65,536 characters in an issue or a comment.
MOST_CHARACTERS = 65_536
MOST_REASONS = 8
MOST_OUTPUTS = 20
_CUT = "\n\n*cut here: the report is longer than an issue may be*\n"


def render_markdown(page: Page) -> str:
    """Return the report, at most as long as an issue may be."""
    report = page.report
    blocks = [
        _heading(report),
        _bullets(report.reasons, MOST_REASONS),
        _facts(page),
        _claims(report),
        _second_opinion(report),
        *_devices(report),
        *(block for one in page.replays for block in _replay(one)),
        accepted_block(report),
        assessment_block(report.assessment),
        _experiments(report),
        folded("Checks of the bundle", _findings(report.findings)),
    ]
    return limited("\n\n".join(block for block in blocks if block) + "\n")


def limited(document: str) -> str:
    """Return a document cut to what an issue takes, between lines, saying so."""
    if len(document) <= MOST_CHARACTERS:
        return document
    closing = "\n\n</details>\n"
    room = MOST_CHARACTERS - len(_CUT) - len(closing)
    kept = document[: document.rfind("\n", 0, room)]
    is_open = kept.count("<details>") > kept.count("</details>")
    return kept + _CUT + (closing if is_open else "")


def _heading(report: Report) -> str:
    return f"**{report.verdict}** (exit {report.exit_status}) · {code(report.file)}"


def _bullets(reasons: Sequence[str], most: int) -> str:
    lines = [f"- {words(reason)}" for reason in reasons[:most]]
    if len(reasons) > most:
        lines.append(f"- and {len(reasons) - most} more, in the findings below")
    return "\n".join(lines)


def _facts(page: Page) -> str:
    report = page.report
    rows = [("bundle id", code(report.bundle) if report.bundle else "unknown")]
    if page.reference is not None:
        record = page.reference.record
        rows.append(("command", code(" ".join(record.command.argv))))
        rows.append(("reference", code(machine(record))))
    sides = [one.replay for one in page.replays if one.replay is not None]
    rows += [("replay", code(machine(side.record))) for side in sides]
    if failure_words(report):
        rows.append(("compared", failure_words(report)))
    unchecked = ", ".join(map(code, report.not_checked))
    rows += [(name, address(said)) for name, said in citation_rows(page.citation)]
    rows += [(name, words(said)) for name, said in signed_rows(report)]
    rows.append(("not checked", unchecked or "nothing was left out"))
    rows.append(("check it", code(f"reprobundle verify {shlex.quote(report.file)}")))
    return table(("", ""), rows)


def _claims(report: Report) -> str:
    """Return what came of each claim that says more than the verdict."""
    rows = [
        (code(name), words(statement), result, words(numbers))
        for name, statement, result, numbers in map(claim_cells, told_claims(report))
    ]
    return table(CLAIM_COLUMNS, rows[:MOST_OUTPUTS])


def _second_opinion(report: Report) -> str:
    """Return the verdict under the verifier's own policy, which replaces nothing."""
    opinion = report.second_opinion
    if opinion is None:
        return ""
    looser = "".join(f"\n  - looser: {words(one)}" for one in opinion.looser)
    return (
        f"- Beside the author's policy, {words(opinion_words(opinion))}. The verdict "
        f"and the exit status are those of the author's policy.{looser}"
    )


def machine(record: Record) -> str:
    """Return where a run was made, in one line."""
    facts = record.environment
    known = [
        f"{word} {fact.value}"
        for word, name in (
            ("torch", "torch.version"),
            ("Python", "python.version"),
            ("on", "os.name"),
        )
        if (fact := facts.get(name)) is not None and fact.value is not None
    ]
    return ", ".join([platform_label(record), *known])


def _devices(report: Report) -> Iterator[str]:
    for one in device_columns(report):
        heads = (*map(words, one.references), *map(code, one.devices))
        columns = (f"claim {code(one.claim)}", *heads)
        rows = [
            (code(name.strip()), *map(code, references), *map(code, cells))
            for name, references, cells in one.rows
        ]
        yield table(columns, rows)


def _replay(one: ReplayPage) -> Iterator[str]:
    judgement = one.judgement
    where = f" on {words(judgement.device)}" if judgement.device else ""
    made = f", {judgement.pass_name} pass" if judgement.pass_name else ""
    name = code(judgement.replay[:12])
    yield f"### Replay {name}{where}{made}: {judgement.verdict}"
    yield _causes(judgement)
    yield _outputs(judgement)
    yield _drifts(judgement)
    if judgement.truths:
        yield _truths(judgement)
    rows = [
        (
            code(found.name),
            code(found.reference),
            code(found.replay),
            words(f"yes: {found.why}") if found.grade == "numeric" else "",
        )
        for found in judgement.environment
    ]
    columns = ("fact", "reference", "replay", "can change numbers")
    yield folded("Environment differences", table(columns, rows))
    yield folded("Checks of this replay", _findings(judgement.findings))


def _experiments(report: Report) -> str:
    """Return the attached runs that were to differ from the reference."""
    if not report.experiments:
        return ""
    rows = [
        tuple(map(code, experiment_cells(one)))
        for one in report.experiments[-MOST_OUTPUTS:]
    ]
    title = f"Experiments ({len(report.experiments)}, none counts for the verdict)"
    command = code(experiment_command(report))
    return folded(title, f"{table(EXPERIMENT_COLUMNS, rows)}\n\n{command}")


def _causes(judgement: Judgement) -> str:
    """Return the likely causes, and the one change to try next with each."""
    return "\n".join(
        f"- likely cause {code(one.id)}: {words(one.text)} {words(one.evidence)}"
        + (f"; try {code(one.command)}" if one.command else "")
        for one in judgement.causes
    )


def _outputs(judgement: Judgement) -> str:
    columns = ("output", "compared", "outside", "max abs", "max rel", "result")
    rows = [_output(output) for output in judgement.outputs[:MOST_OUTPUTS]]
    hidden = len(judgement.outputs) - len(rows)
    more = f"\n\nand {text.plural(hidden, 'more output')}" if hidden > 0 else ""
    return table(columns, rows) + more


def _drifts(judgement: Judgement) -> str:
    """Return how the errors of series grow."""
    return "\n".join(
        f"- {code(output.name)} {code(part.name) if part.name else ''}: {words(said)}"
        for output in judgement.outputs
        for part in output.parts
        if part.drift and (said := drift_words(part))
    )


def _truths(judgement: Judgement) -> str:
    """Return both sides against the float64 run."""
    rows = [tuple(map(words, truth_cells(one))) for one in judgement.truths]
    hidden = len(rows) - MOST_OUTPUTS
    more = f"\n\nand {text.plural(hidden, 'more output')}" if hidden > 0 else ""
    return table(TRUTH_COLUMNS, rows[:MOST_OUTPUTS]) + more


def _output(output: OutputComparison) -> tuple[str, ...]:
    parts = output.parts
    why = f": {words(output.reason)}" if output.reason else ""
    return (
        code(output.name),
        text.count(sum(part.elements for part in parts)) if parts else text.NOTHING,
        text.count(sum(part.outside for part in parts)) if parts else text.NOTHING,
        _largest(part.max_abs for part in parts),
        _largest(part.max_rel for part in parts),
        f"{output.result}{why}",
    )


def _largest(values: Iterable[float | str | None]) -> str:
    known = [as_float(value) for value in values if value is not None]  # type: ignore[arg-type]
    return text.number(max(known)) if known else text.NOTHING


def _findings(findings: Sequence[Finding]) -> str:
    rows = [
        (
            found.check,
            code(found.id),
            f"{found.outcome}{' (allowed)' if found.allowed else ''}",
            code(found.where),
            words(found.reason),
        )
        for found in findings
    ]
    return table(("check", "finding", "outcome", "where", "why"), rows)
