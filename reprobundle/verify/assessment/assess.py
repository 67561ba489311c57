"""Put an assessment together: points, recommendation, versions, one answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from reprobundle.format.assessment import (
    Acceptance,
    Assessment,
    Evidence,
    Point,
    PointState,
)
from reprobundle.format.findings import CheckOutcome, Finding
from reprobundle.verify.assessment.case import Case, evidence_of
from reprobundle.verify.assessment.objects import find_objects
from reprobundle.verify.assessment.path import find_path
from reprobundle.verify.assessment.rules import recommend
from reprobundle.verify.assessment.versions import held_for
from reprobundle.verify.items import ITEMS

LIST_CHECK = "V10"
_STATES: dict[CheckOutcome, PointState] = {
    "pass": "met",
    "fail": "not-met",
    "warn": "not-met",
    "not-checked": "not-checked",
    "not-applicable": "not-applicable",
}
# A signature over the record can only come after it.
_BY_SIGNATURE = ("lists-second-person",)
_FINE = ("met", "not-applicable")


def assess(case: Case, replays: Sequence[str]) -> Assessment:
    """Return what the evidence of a case comes to.

    Args:
        case: The evidence.
        replays: Ids of all that was attached then, restart passes and experiments
            among them.
    """
    points = (*find_objects(case), *find_path(case), *_listed(case))
    return Assessment(
        replays=tuple(replays),
        verdict=case.verdict,
        exit_status=case.exit_status,
        acceptance=_acceptance(case.exit_status, points),
        points=points,
        recommendation=recommend(case),
        holds_for=held_for(case),
    )


def _listed(case: Case) -> Iterator[Point]:
    """Yield the eleven points of the list, as V10 found them."""
    for found in case.findings:
        if found.id in ITEMS and found.id.startswith("lists-"):
            yield _point(found)


def _point(found: Finding) -> Point:
    state = _STATES[found.outcome]
    return Point(
        id=found.id,
        group="list",
        title=ITEMS[found.id].text,
        state=state,
        reason="" if state == "met" else found.reason,
        evidence=(evidence_of(found),) if state == "met" else (),
    )


def _acceptance(exit_status: int, points: Sequence[Point]) -> Acceptance:
    """Return the one answer; the list informs and does not decide.

    That a second person ran it is proven by a signature alone, which comes later.
    """
    counted = [one for one in points if one.group != "list"]
    if exit_status == 10 or any(one.state == "not-met" for one in counted):
        return "not-accepted"
    fine = all(one.state in _FINE for one in counted)
    return "accepted" if exit_status == 0 and fine else "not-decided"


def derived_part(assessment: Assessment) -> tuple[object, ...]:
    """Return what a verifier compares of two assessments.

    Reasons and texts are words: a later release may choose others for the same state.
    """
    advice = assessment.recommendation
    return (
        assessment.replays,
        assessment.verdict,
        assessment.exit_status,
        assessment.acceptance,
        tuple(
            (one.id, one.group, one.state, _sources(one))
            for one in _settled(assessment.points)
        ),
        (advice.choice, advice.rule),
        tuple((one.rule, one.choice, one.answer) for one in advice.answers),
        assessment.holds_for,
    )


def _settled(points: Iterable[Point]) -> list[Point]:
    """Return the points that nothing attached later can change."""
    return [one for one in points if one.id not in _BY_SIGNATURE]


def _sources(point: Point) -> tuple[str, ...]:
    evidence: Sequence[Evidence] = point.evidence
    return tuple(one.source for one in evidence)


def first_difference(stated: Assessment, derived: Assessment) -> str:
    """Return where two assessments differ, in words; empty where they do not."""
    names = (
        "the replays",
        "the verdict",
        "the exit status",
        "the acceptance",
        "the points",
        "the recommendation",
        "the rules' answers",
        "the versions",
    )
    pairs = zip(names, derived_part(stated), derived_part(derived), strict=True)
    for name, ours, theirs in pairs:
        if ours == theirs:
            continue
        if name == "the points":
            return _point_difference(stated.points, derived.points)
        if name == "the recommendation":
            got = derived.recommendation
            said = stated.recommendation
            return (
                f"the recommendation is {said.choice} by {said.rule}, the evidence "
                f"gives {got.choice} by {got.rule}"
            )
        if name in ("the verdict", "the acceptance"):
            return f"{name} is {ours}, the evidence gives {theirs}"
        return f"{name} are not those of the evidence"
    return ""


def _point_difference(stated: Sequence[Point], derived: Sequence[Point]) -> str:
    by_id = {one.id: one for one in derived}
    for one in _settled(stated):
        other = by_id.get(one.id)
        if other is None:
            return f"there is no point {one.id}"
        if one.state != other.state:
            return f"{one.id} is {one.state}, the evidence gives {other.state}"
        if _sources(one) != _sources(other):
            return f"{one.id} names other evidence than there is"
    return "points are missing"
