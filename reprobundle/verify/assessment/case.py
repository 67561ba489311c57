"""What an assessment looks at, and how a point of it is stated.

Everything here is a function of the bundle, its replays and the reports of other verbs.
Nothing asks this machine, so another verifier comes to the same assessment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from reprobundle.format.acceptance_record import Reports
from reprobundle.format.assessment import Evidence, Point, PointGroup
from reprobundle.format.findings import Finding, Judgement
from reprobundle.format.manifest import Member
from reprobundle.format.record import Fact, Record
from reprobundle.verify.assessment.versions import same_versions
from reprobundle.verify.devices import platform_label
from reprobundle.verify.ending import is_finished
from reprobundle.verify.sealed import Sealed

MAC = "macos-mps"
GOOD_RESULTS = ("bit-identical", "within-tolerance")
GOOD_STATUS = (0, 12)


class JudgedRun(NamedTuple):
    """A replay that is no experiment, with the judgement on it."""

    id: str
    record: Record
    judgement: Judgement

    @property
    def name(self) -> str:
        """Where its record lies."""
        return f"replays/{self.id}"

    @property
    def is_reproduced(self) -> bool:
        """Whether it gave the result of the reference, with warnings or without."""
        return self.judgement.exit_status in GOOD_STATUS

    def found(self, name: str) -> Finding | None:
        """Return the most serious finding of this name about it, or None."""
        return worst_of(one for one in self.judgement.findings if one.id == name)

    def fact(self, name: str) -> Fact:
        """Return a fact of its environment, or why there is none."""
        nothing = Fact(unknown="the fact was not recorded")
        return self.record.environment.get(name, nothing)


class Case(NamedTuple):
    """Everything that an assessment rests on.

    Attributes:
        bundle: Bundle id.
        members: The sealed members by path.
        sealed: The decoded documents.
        runs: All replays that it is about, in the order of attaching.
        deciding: Ids of those that decide about the verdict.
        findings: About the bundle itself, no warning allowed away.
        verdict, exit_status: Over these replays.
        reports: What other verbs said about the bundle.
    """

    bundle: str
    members: Mapping[str, Member]
    sealed: Sealed
    runs: tuple[JudgedRun, ...]
    deciding: frozenset[str]
    findings: Sequence[Finding]
    verdict: str
    exit_status: int
    reports: Reports = Reports()

    @property
    def main(self) -> tuple[JudgedRun, ...]:
        """The deciding runs of the main command."""
        claim = self.sealed.reference.claim
        return tuple(
            one
            for one in self.runs
            if one.id in self.deciding and one.record.claim == claim
        )

    @property
    def finished(self) -> tuple[JudgedRun, ...]:
        """Those of them that came to their end."""
        return tuple(one for one in self.main if is_finished(one.record))

    @property
    def alike(self) -> tuple[JudgedRun, ...]:
        """Every finished run of the main command on the platform that decides.

        Runs with other versions are not among them: they show something else.
        """
        if not self.finished:
            return ()
        last = self.finished[-1].record
        return tuple(
            one
            for one in self.runs
            if one.record.claim == last.claim
            and is_finished(one.record)
            and platform_label(one.record) == platform_label(last)
            and same_versions(one.record, last)
        )

    @property
    def on_mac(self) -> tuple[JudgedRun, ...]:
        """The runs of the newest call of `replay` that used or asked for MPS on a Mac.

        One that stopped before it used a device tells why not.
        """
        there = [
            one
            for one in self.runs
            if one.record.platform == "darwin"
            and (
                platform_label(one.record) == MAC
                or one.record.devices.requested == "mps"
                or one.record.outcome.stop
            )
        ]
        if not there:
            return ()
        newest = there[-1].record.occasion or there[-1].id
        return tuple(one for one in there if (one.record.occasion or one.id) == newest)

    @property
    def counts_on_mac(self) -> bool:
        """Whether the author names a platform with MPS as one the result counts on."""
        return MAC in self.sealed.policy.intent.accepting_platforms

    def found(self, name: str) -> Finding | None:
        """Return the most serious finding of this name about the bundle, or None."""
        return worst_of(one for one in self.findings if one.id == name)


_WEIGHT = ("fail", "warn", "not-checked", "not-applicable", "pass")


def worst_of(findings: Iterable[Finding]) -> Finding | None:
    """Return the most serious of some findings, or None of none."""
    found = list(findings)
    return min(found, key=lambda one: _WEIGHT.index(one.outcome)) if found else None


def evidence_of(found: Finding, of: str = "") -> Evidence:
    """Return a finding as evidence.

    Args:
        found: The finding.
        of: Where the run lies that it is about; empty for the bundle.
    """
    place = found.where if not of or found.where.startswith(of) else of
    source = f"{found.check} {found.id}" + (f" ({place})" if place else "")
    return Evidence(source=source, says=found.reason or found.outcome)


def fact_evidence(run: JudgedRun, name: str) -> Evidence:
    """Return a fact of a run's environment as evidence."""
    value = run.fact(name).value
    shown = ", ".join(value) if isinstance(value, tuple) else str(value)
    return Evidence(source=f"{run.name}/record.json: environment.{name}", says=shown)


class Stated(NamedTuple):
    """How the points of one group are stated; each method returns a point."""

    id: str
    group: PointGroup
    title: str

    def met(self, *evidence: Evidence) -> Point:
        """Return the point with the evidence that it is met."""
        return Point(
            id=self.id,
            group=self.group,
            title=self.title,
            state="met",
            evidence=evidence,
        )

    def not_met(self, reason: str, *evidence: Evidence) -> Point:
        """Return the point with the evidence that it is not met."""
        return Point(
            id=self.id,
            group=self.group,
            title=self.title,
            state="not-met",
            reason=reason,
            evidence=evidence,
        )

    def not_checked(self, reason: str, *evidence: Evidence) -> Point:
        """Return the point with the reason why it is not known."""
        return Point(
            id=self.id,
            group=self.group,
            title=self.title,
            state="not-checked",
            reason=reason,
            evidence=evidence,
        )

    def not_applicable(self, reason: str) -> Point:
        """Return the point with the reason why it does not apply."""
        return Point(
            id=self.id,
            group=self.group,
            title=self.title,
            state="not-applicable",
            reason=reason,
        )


def first_bad(
    runs: Iterable[JudgedRun], names: Sequence[str]
) -> Iterator[tuple[JudgedRun, Finding]]:
    """Yield each finding of these names that is neither a pass nor not applicable."""
    for run in runs:
        for name in names:
            found = run.found(name)
            if found is not None and found.outcome not in ("pass", "not-applicable"):
                yield run, found
