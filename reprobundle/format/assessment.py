"""What the evidence of a bundle comes to: points, a recommendation, versions.

Data only, no judgement (`reprobundle.verify.assessment`). Points and rules have their
meaning in docs/acceptance.md and spec.md, section 7.5.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from reprobundle.format.record import Digest

PointState = Literal["met", "not-met", "not-checked", "not-applicable"]
PointGroup = Literal["object", "path", "list"]
Choice = Literal[
    "choose-mac", "keep-linux", "refactor", "dual-track", "stop", "undecided"
]
AcceptanceState = Literal["holds", "stale", "not-confirmed", "contradicted"]
Acceptance = Literal["accepted", "not-accepted", "not-decided"]


class Evidence(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a tick or a rule rests on.

    Attributes:
        source: Where it stands: a member and its field, a finding of a replay, or the
            command whose report says it.
        says: What it says there.
    """

    source: str
    says: str = ""


class Point(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing that has to be shown before a result is accepted.

    Attributes:
        id: Stable name.
        group: ``object`` (the five acceptance objects), ``path`` (the nine points of
            the path on macOS), ``list`` (the eleven points of the list, V10).
        title: What it is about.
        state: ``met`` only where evidence shows it.
        reason: Why, one sentence; empty only where it is met.
        evidence: What the state rests on; never empty where it is met.
    """

    id: str
    group: PointGroup
    title: str
    state: PointState
    reason: str = ""
    evidence: tuple[Evidence, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a tick without evidence, and anything else without a reason."""
        if self.state == "met" and not self.evidence:
            message = f"point {self.id} is met, and states no evidence"
            raise ValueError(message)
        if self.state != "met" and not self.reason:
            message = f"point {self.id} is {self.state}, and states no reason"
            raise ValueError(message)


class RuleAnswer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one rule of the recommendation answered.

    Attributes:
        rule: Its stable name.
        choice: What it recommends where it fires.
        answer: ``yes``: it fires; ``no``: evidence says that it does not; ``unknown``:
            evidence is missing.
        text: Why, one sentence.
        evidence: What that rests on.
        missing: What would decide it, as a command where there is one.
    """

    rule: str
    choice: Choice
    answer: Literal["yes", "no", "unknown"]
    text: str
    evidence: tuple[Evidence, ...] = ()
    missing: tuple[str, ...] = ()


class Recommendation(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """What to do, by the first rule that fired.

    Attributes:
        choice: What to do; ``undecided`` where no rule fired.
        rule: The rule that fired; ``evidence-missing`` where none did.
        text: That rule applied here, one sentence.
        evidence: What it rests on.
        missing: What would have decided more, each once.
        answers: Every rule with its answer, in their order.
    """

    choice: Choice
    rule: str
    text: str
    evidence: tuple[Evidence, ...] = ()
    missing: tuple[str, ...] = ()
    answers: tuple[RuleAnswer, ...] = ()


class HeldFor(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The versions of one run for which an acceptance holds.

    Attributes:
        run: ``runs/1`` or ``replays/ID``.
        platform: As a policy names it, such as ``macos-mps``.
        versions: Fact → value, of those that are known to change results.
    """

    run: str
    platform: str
    versions: dict[str, str]


class Assessment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the evidence comes to. No field of it is a person's statement.

    Attributes:
        replays: Ids of the replays that were attached then, in that order, restart
            passes and experiments among them.
        verdict, exit_status: The verdict of `verify` over these replays, no warning
            allowed away.
        acceptance: ``accepted``: status 0, and every object and every point of the
            path met or not applicable; ``not-accepted``: one of them not met, or not
            reproduced; else ``not-decided``.
        points: The five objects, the nine points, the eleven points.
        recommendation: What to do.
        holds_for: The versions of the reference and of each deciding replay.
    """

    replays: tuple[Digest, ...]
    verdict: str
    exit_status: int
    acceptance: Acceptance
    points: tuple[Point, ...]
    recommendation: Recommendation
    holds_for: tuple[HeldFor, ...]


class AttachedAcceptance(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """An acceptance record outside the seal, and what became of it.

    Attributes:
        id: Digest of the record.
        by, where, when, role, second_person: As the record states them.
        state: ``holds``; ``stale``: the versions it holds for are no longer those of
            the newest runs; ``not-confirmed``: it could not be derived again;
            ``contradicted``: the evidence says otherwise than the record.
        reasons: Why, where it does not hold: what changed, one phrase each.
        verdict, acceptance, choice, rule: What the record came to.
        holds_for: The versions that it names.
        signed_by: Who signed it, each with what is known of the signature.
    """

    id: str
    by: str
    where: str
    when: str
    role: str = ""
    second_person: str = ""
    state: AcceptanceState
    reasons: tuple[str, ...] = ()
    verdict: str
    acceptance: Acceptance
    choice: Choice
    rule: str
    holds_for: tuple[HeldFor, ...] = ()
    signed_by: tuple[str, ...] = ()
