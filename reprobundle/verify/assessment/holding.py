"""Whether an acceptance follows from its evidence, and for the newest runs too."""

from __future__ import annotations

from reprobundle import __version__
from reprobundle.format.acceptance_record import (
    RULES_VERSION,
    AcceptanceRecord,
    Reports,
)
from reprobundle.format.assessment import (
    AcceptanceState,
    Assessment,
    AttachedAcceptance,
)
from reprobundle.format.findings import Finding
from reprobundle.format.pairing import acceptance_name
from reprobundle.verify.assessment.assess import first_difference
from reprobundle.verify.assessment.evidence import Known, assessment_of, case_over
from reprobundle.verify.assessment.versions import changed_since
from reprobundle.verify.checks import finding

TOOL = f"reprobundle {__version__}"
MOST_REASONS = 20


def hold(
    known: Known, identifier: str, record: AcceptanceRecord
) -> tuple[AttachedAcceptance, list[Finding]]:
    """Return what became of an acceptance, and the findings about it.

    Args:
        known: What is known of the bundle.
        identifier: Id of the record.
        record: The record; it is about this bundle.
    """
    where = acceptance_name(identifier)
    derived = _derived(known, record, where)
    if derived.outcome != "pass":
        contradicted = derived.outcome == "fail"
        state: AcceptanceState = "contradicted" if contradicted else "not-confirmed"
        reason = "it does not follow from the evidence"
        current = finding("acceptance-current", "not-checked", reason, where=where)
        shown = _shown(identifier, record, state, (derived.reason,))
        return shown, [derived, current]
    changes = tuple(dict.fromkeys(_changes(known, record.assessment)))[:MOST_REASONS]
    if not changes:
        current = finding("acceptance-current", "pass", where=where)
        return _shown(identifier, record, "holds", ()), [derived, current]
    current = finding(
        "acceptance-current",
        "not-checked",
        f"it is stale: {'; '.join(changes[:3])}",
        where=where,
        advice="assess it again: reprobundle accept BUNDLE",
    )
    return _shown(identifier, record, "stale", changes), [derived, current]


def _derived(known: Known, record: AcceptanceRecord, where: str) -> Finding:
    """Return whether the record's assessment is that of its evidence.

    Another release may judge the same evidence otherwise, and then nothing is known.
    One of the same name that does is no honest record.
    """
    name = "acceptance-derived"
    there = {one.id for one in known.attached}
    gone = [one for one in record.assessment.replays if one not in there]
    if gone:
        reason = f"a replay that it is about is not attached: {gone[0][:12]}"
        return finding(name, "not-checked", reason, where=where)
    if record.rules != RULES_VERSION:
        return finding(
            name,
            "not-checked",
            f"it was derived by rules {record.rules}, this verifier has "
            f"{RULES_VERSION}",
            where=where,
            advice=f"verify it with {record.tool}",
        )
    derived = assessment_of(known, frozenset(record.assessment.replays), record.reports)
    difference = first_difference(record.assessment, derived)
    if not difference:
        return finding(name, "pass", where=where)
    if record.tool != TOOL:
        return finding(
            name,
            "not-checked",
            f"{TOOL} derives it otherwise than {record.tool}: {difference}",
            where=where,
            advice=f"verify it with {record.tool}",
        )
    return finding(name, "fail", difference, where=where)


def _changes(known: Known, assessment: Assessment) -> list[str]:
    every = case_over(known, known.attached, Reports()).runs
    mine = {run.name: run for run in every if run.id in assessment.replays}
    return list(changed_since(assessment, every, mine))


def _shown(
    identifier: str,
    record: AcceptanceRecord,
    state: AcceptanceState,
    reasons: tuple[str, ...],
) -> AttachedAcceptance:
    said = record.assessment
    return AttachedAcceptance(
        id=identifier,
        by=record.by,
        where=record.where,
        when=record.when,
        role=record.role,
        second_person=record.second_person,
        state=state,
        reasons=reasons,
        verdict=said.verdict,
        acceptance=said.acceptance,
        choice=said.recommendation.choice,
        rule=said.recommendation.rule,
        holds_for=said.holds_for,
    )
