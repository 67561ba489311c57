"""The acceptance record: who accepted which result, on what evidence, and for what.

It lies outside the seal as ``acceptance/<id>.json``, where the id is the digest of its
bytes, or travels alone. All of its `assessment` follows from the bundle, the named
replays and the reports it holds, so a verifier derives it anew and compares; who, where
and when are statements of the person who made it. A signature over its bytes lies
elsewhere (spec.md, "Acceptance record").
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

import msgspec

from reprobundle.format.doctor_report import DoctorReport
from reprobundle.format.forecast_report import ForecastReport
from reprobundle.format.record import Digest
from reprobundle.format.scan_report import ScanReport

ACCEPTANCE_SCHEMA: Final = "reprobundle/acceptance/1"
RULES_VERSION: Final = 1
"""Raised whenever a point or a rule may come out otherwise on the same evidence."""

PointState = Literal["met", "not-met", "not-checked", "not-applicable"]
PointGroup = Literal["object", "path", "list"]
Choice = Literal[
    "choose-mac", "keep-linux", "refactor", "dual-track", "stop", "undecided"
]
Acceptance = Literal["accepted", "not-accepted", "not-decided"]
# For how long a stranger's statement may be about oneself.
LONGEST_STATEMENT = 500


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
        replays: Ids of the replays that it is about, in the order of attaching.
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


class Reports(NamedTuple):
    """What other verbs said about the bundle; each None where it was not given."""

    scan: ScanReport | None = None
    doctor: DoctorReport | None = None
    forecast: ForecastReport | None = None


class AcceptanceRecord(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """One acceptance.

    Attributes:
        schema: Always ``reprobundle/acceptance/1``.
        bundle: Id of the bundle it is about.
        rules: Version of the rules that the assessment was derived by.
        tool: Name and version of the writer.
        when: RFC 3339, UTC.
        by: Who states it.
        where: At which place or organisation, in that person's words.
        role: In which role: ``author``, ``second person``, or any other.
        second_person: Who, other than the author, ran it again; empty for nobody. It
            is stated, not proven.
        note: In that person's words.
        scan, doctor, forecast: The reports that were taken into account, whole.
        assessment: What the evidence came to.
    """

    schema: Literal["reprobundle/acceptance/1"] = ACCEPTANCE_SCHEMA
    bundle: Digest
    rules: int = RULES_VERSION
    tool: str
    when: str
    by: str
    where: str
    role: str = ""
    second_person: str = ""
    note: str = ""
    scan: ScanReport | None = None
    doctor: DoctorReport | None = None
    forecast: ForecastReport | None = None
    assessment: Assessment

    @property
    def reports(self) -> Reports:
        """The reports it holds."""
        return Reports(self.scan, self.doctor, self.forecast)
