"""Gather what an assessment rests on, for any set of the attached replays.

An attached acceptance record was made when fewer replays lay there. To derive it again,
everything that depends on replays is judged over just those that it names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

import msgspec

from reprobundle.format.acceptance_record import Reports
from reprobundle.format.assessment import Assessment
from reprobundle.format.findings import Finding, Judgement, Verdict
from reprobundle.format.reader import Bundle
from reprobundle.format.record import Record
from reprobundle.verify.acceptance import check_acceptance
from reprobundle.verify.assessment.assess import assess
from reprobundle.verify.assessment.case import Case, JudgedRun
from reprobundle.verify.claims import Replay, check_claims, deciding
from reprobundle.verify.completeness import check_completeness
from reprobundle.verify.experiments import is_experiment
from reprobundle.verify.restart import check_restart
from reprobundle.verify.restarted import restarted_at_packing, restarted_replay
from reprobundle.verify.sealed import Sealed
from reprobundle.verify.verdict import decide, with_replays, worst

# What depends on which replays there are; all other findings about the bundle do not.
_OF_REPLAYS = frozenset({"V6", "V7", "V9", "V12", "V10", "V20", "V22", "V24", "V25"})

Judge = Callable[[Replay, Sequence[Replay]], Judgement]


class Known(NamedTuple):
    """What one call of the verifier knows of a bundle.

    Attributes:
        bundle: The open bundle, whose integrity has been proven.
        sealed: Its decoded documents.
        attached: Every sound record outside its seal, in the order of attaching.
        findings: About the bundle itself.
        judge: Judges one replay where just some others are attached, no warning
            allowed away.
    """

    bundle: Bundle
    sealed: Sealed
    attached: Sequence[Replay]
    findings: Sequence[Finding]
    judge: Judge


def assessment_of(known: Known, ids: Collection[str], reports: Reports) -> Assessment:
    """Return the assessment over those of the attached records whose id is in `ids`."""
    there = [one for one in known.attached if one.id in ids]
    return assess(case_over(known, there, reports), [one.id for one in there])


def assess_now(known: Known, reports: Reports | None) -> Assessment:
    """Return the assessment over everything that is attached."""
    ids = frozenset(one.id for one in known.attached)
    return assessment_of(known, ids, reports or Reports())


def case_over(known: Known, there: Sequence[Replay], reports: Reports) -> Case:
    """Return the evidence that these attached records are."""
    replays = [one for one in there if not _is_aside(one.record)]
    judged = {one.id: known.judge(one, replays) for one in replays}
    findings = list(_findings(known, there, replays, judged))
    counted = deciding(known.sealed, replays)
    verdicts = [judged[one.id] for one in counted]
    base = Verdict.NOT_YET_REPLAYED
    if verdicts:
        base = worst(Verdict(one.verdict) for one in verdicts)
    decision = with_replays(decide(findings, base), verdicts)
    return Case(
        bundle=known.bundle.id,
        members=known.bundle.members,
        sealed=known.sealed,
        runs=tuple(JudgedRun(one.id, one.record, judged[one.id]) for one in replays),
        deciding=frozenset(one.id for one in counted),
        findings=findings,
        verdict=decision.verdict.value,
        exit_status=decision.exit_status,
        reports=reports.about(known.bundle.id),
    )


def _findings(
    known: Known,
    there: Sequence[Replay],
    replays: Sequence[Replay],
    judged: dict[str, Judgement],
) -> Iterator[Finding]:
    sealed, members = known.sealed, known.bundle.members
    for found in known.findings:
        if found.check not in _OF_REPLAYS:
            yield msgspec.structs.replace(found, allowed=False)
    records = [one.record for one in replays]
    completeness = list(check_completeness(members, sealed, records))
    yield from completeness
    asked = [one.record for one in there if is_experiment(one.record)]
    yield from check_acceptance(
        members, sealed, records, completeness, experiments=asked
    )
    restarts = [
        one
        for one in there
        if _is_restart(one.record) and not is_experiment(one.record)
    ]
    resumed = [
        restarted_replay(known.bundle, sealed, one, replays) for one in restarts[-1:]
    ]
    packed = restarted_at_packing(known.bundle, sealed)
    yield from check_restart(sealed, [*packed, *resumed])
    yield from check_claims(sealed, replays, judged, advice="")
    if any(claim.ends for claim in sealed.policy.claims):
        from reprobundle.verify.ends import check_ends, judge_ends

        counted = deciding(sealed, replays)
        yield from check_ends(judge_ends(known.bundle, sealed, counted))


def _is_aside(record: Record) -> bool:
    return _is_restart(record) or is_experiment(record)


def _is_restart(record: Record) -> bool:
    return record.pass_name == "restart" and not record.outcome.stop
