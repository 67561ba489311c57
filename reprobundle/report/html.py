"""Write a report as one HTML file that needs nothing else: no network, no script.

The page's own policy forbids it to load anything. Every text comes from a bundle that
a stranger may have made, so the template escapes all of it, and `safe` makes visible
what could deceive a reader.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from reprobundle import __version__
from reprobundle.format.findings import (
    ArrayComparison,
    CheckOutcome,
    Finding,
    Judgement,
    OutputComparison,
    Report,
)
from reprobundle.format.record import Record, as_float
from reprobundle.report import text
from reprobundle.report.accepted import (
    ACCEPTED_COLUMNS,
    GROUPS,
    OUTCOMES,
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
    EXPERIMENT_NOTE,
    experiment_cells,
    experiment_command,
)
from reprobundle.report.figures import figures
from reprobundle.report.page import Page
from reprobundle.report.screen import UNICODE
from reprobundle.report.text import safe
from reprobundle.report.truths import TRUTH_COLUMNS, truth_cells
from reprobundle.report.vouched import signed_rows
from reprobundle.verify.devices import platform_label

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

MOST_PARTS = 40
MOST_REASONS = 12
_SERIOUS_FIRST: tuple[CheckOutcome, ...] = (
    "fail",
    "warn",
    "not-checked",
    "not-applicable",
    "pass",
)

_TONES: dict[CheckOutcome, str] = {
    "pass": "good",
    "warn": "warn",
    "fail": "bad",
    "not-checked": "warn",
    "not-applicable": "soft",
}
_SIGNS: dict[CheckOutcome, str] = {
    "pass": UNICODE.passed,
    "warn": UNICODE.warned,
    "fail": UNICODE.failed,
    "not-checked": UNICODE.not_checked,
    "not-applicable": UNICODE.not_applicable,
}
_OUTCOME_OF_RESULT: dict[str, CheckOutcome] = {
    "bit-identical": "pass",
    "within-tolerance": "pass",
    "unexpected": "warn",
    "not-compared": "not-checked",
    "outside-tolerance": "fail",
    "missing": "fail",
}


def render_html(page: Page) -> str:
    """Return the whole page."""
    environment = _environment()
    return environment.get_template("report.html").render(
        page=page,
        report=page.report,
        version=__version__,
        findings_table=lambda findings, name: _findings(environment, findings, name),
    )


def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("reprobundle.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.globals.update(
        claim_cells=claim_cells,
        claim_columns=CLAIM_COLUMNS,
        accepted_cells=accepted_cells,
        accepted_columns=ACCEPTED_COLUMNS,
        advice_words=advice_words,
        because=because,
        counted=counted,
        device_columns=device_columns,
        evidence_words=evidence_words,
        held_lines=held_lines,
        of_group=of_group,
        point_columns=POINT_COLUMNS,
        point_groups=GROUPS,
        point_outcome=OUTCOMES.__getitem__,
        result_words=result_words,
        rule_cells=rule_cells,
        rule_columns=RULE_COLUMNS,
        drift_words=drift_words,
        experiment_cells=experiment_cells,
        experiment_columns=EXPERIMENT_COLUMNS,
        experiment_command=experiment_command,
        experiment_note=EXPERIMENT_NOTE,
        figures=figures,
        failure_words=failure_words,
        largest=_largest,
        most_reasons=MOST_REASONS,
        mark=lambda output: _SIGNS[_OUTCOME_OF_RESULT[output.result]],
        opinion_words=opinion_words,
        outcome_tone=_TONES.__getitem__,
        parted=_parted,
        platform=_platform,
        result_tone=lambda output: _TONES[_OUTCOME_OF_RESULT[output.result]],
        rule=_rule,
        sign=_SIGNS.__getitem__,
        signed_rows=signed_rows,
        citation_rows=citation_rows,
        size=text.size,
        tone=_tone,
        total=_total,
        told_claims=told_claims,
        truth_cells=truth_cells,
        truth_columns=TRUTH_COLUMNS,
        unsaid=_unsaid,
        worst_parts=_worst_parts,
    )
    return environment


def _shown(value: object) -> object:
    """Make visible what could deceive a reader; markup of our own stays as it is."""
    return safe(value) if type(value) is str else value


def _findings(
    environment: Environment, findings: Sequence[Finding], name: str
) -> Markup:
    from markupsafe import Markup

    template = environment.get_template("findings.html")
    # The template escaped it already.
    return Markup(template.render(findings=findings, name=name))  # noqa: S704


def _tone(exit_status: int) -> str:
    if exit_status == 0:
        return "good"
    return "warn" if exit_status in (11, 12) else "bad"


def _unsaid(judgement: Judgement, report: Report) -> list[str]:
    """Return the reasons of a replay that the page's head does not show."""
    shown = report.reasons[:MOST_REASONS]
    return [reason for reason in judgement.reasons if reason not in shown]


def _parted(findings: Sequence[Finding]) -> tuple[list[Finding], list[Finding]]:
    """Return the findings that tell something, the serious first, and the passes."""
    told = [found for found in findings if found.outcome != "pass"]
    told.sort(key=lambda found: _SERIOUS_FIRST.index(found.outcome))
    return told, [found for found in findings if found.outcome == "pass"]


def _platform(record: Record) -> str:
    facts = record.environment
    name = facts.get("os.name")
    system = f" ({name.value})" if name is not None and name.value else ""
    torch = facts.get("torch.version")
    version = f", torch {torch.value}" if torch is not None and torch.value else ""
    return f"{platform_label(record)}{system}{version}"


def _total(output: OutputComparison, field: str) -> str:
    counts = [getattr(part, field) for part in output.parts]
    return text.count(sum(counts)) if counts else text.NOTHING


def _largest(output: OutputComparison, field: str) -> str:
    """Return the largest figure of the parts; NaN counts as larger than all."""
    values = (getattr(part, field) for part in output.parts)
    known = [as_float(value) for value in values if value is not None]
    if not known:
        return text.NOTHING
    largest: float = max(known, key=lambda value: (math.isnan(value), value))
    return text.number(largest)


def _worst_parts(judgement: Judgement) -> list[tuple[str, ArrayComparison]]:
    return [
        (f"{output.name} {part.name}".strip(), part)
        for output in judgement.outputs
        for part in _differing(output.parts)
    ][:MOST_PARTS]


def _differing(parts: Iterable[ArrayComparison]) -> Iterable[ArrayComparison]:
    return (part for part in parts if not part.equal or part.problem)


def _rule(part: ArrayComparison) -> str:
    if part.rtol is None and part.atol is None:
        return "exact"
    return f"rtol {text.number(part.rtol)}, atol {text.number(part.atol)}"
