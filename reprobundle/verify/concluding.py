"""What follows for a bundle whose integrity was checked: all other checks, in order."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from reprobundle.format.findings import Finding, Judgement, SecondOpinion, Verdict
from reprobundle.format.judged import EndResult
from reprobundle.verify.acceptance import check_acceptance
from reprobundle.verify.acceptance_records import check_accepted, not_derived
from reprobundle.verify.asked import Asked
from reprobundle.verify.assurance import (
    assess,
    check_assurance,
    check_second_person,
    occasions_of,
)
from reprobundle.verify.beside_linux import LinuxReference, find_linux_reference
from reprobundle.verify.checks import finding, unmade
from reprobundle.verify.chosen import records_before, traced_with
from reprobundle.verify.claims import (
    POSITIVE,
    Replay,
    check_claims,
    claim_results,
    counting,
    deciding,
    required,
)
from reprobundle.verify.completeness import check_completeness
from reprobundle.verify.content import attached
from reprobundle.verify.experiments import check_experiments, experiment_runs
from reprobundle.verify.float64 import check_float64
from reprobundle.verify.found import Found
from reprobundle.verify.opened import Opened, is_broken
from reprobundle.verify.own_run import check_sealed_copies
from reprobundle.verify.policy import check_policy
from reprobundle.verify.reference import check_reference, check_repeat, check_traced
from reprobundle.verify.restart import check_restart
from reprobundle.verify.sealed import Sealed
from reprobundle.verify.second_opinion import OwnPolicy, laid_over, second_opinion
from reprobundle.verify.several_devices import check_references
from reprobundle.verify.signatures import signed_by
from reprobundle.verify.truth import check_truth
from reprobundle.verify.verdict import (
    Decision,
    apply_allowances,
    decide,
    with_replays,
    worst,
)


def conclude(opened: Opened, asked: Asked, found: Found) -> Decision:
    """Make all other checks that still make sense, and decide.

    Raises:
        BadCallError: `asked.replay` is no replay.
    """
    if is_broken(found):
        found.findings += unmade(found.findings, "the bundle is not what was sealed")
        return decide(found.findings, Verdict.TAMPERED)
    if opened.sealed is None:
        reason = "a document that it needs is not there"
        found.findings += unmade(found.findings, reason)
        return decide(found.findings, Verdict.INCOMPLETE)
    chosen = opened.chosen(asked)
    job = _Conclusion(opened, opened.sealed, asked, found)
    job.about_bundle()
    if asked.integrity_only:
        return job.of_integrity()
    return job.of_replays(chosen)


class _Conclusion:
    """The checks of one whole bundle."""

    def __init__(
        self, opened: Opened, sealed: Sealed, asked: Asked, found: Found
    ) -> None:
        self.opened = opened
        self.bundle = opened.bundle
        self.sealed = sealed
        self.asked = asked
        self.found = found
        self.linux = find_linux_reference(self.bundle, sealed, opened.replays)

    def about_bundle(self) -> None:
        """Make the checks V8 to V11 that read no content."""
        findings, sealed = self.found.findings, self.sealed
        records = [one.record for one in self.opened.replays]
        members = self.bundle.members
        completeness = list(check_completeness(members, sealed, records))
        findings += check_policy(sealed.policy, sealed.reference)
        findings += completeness
        findings += check_acceptance(
            members,
            sealed,
            records,
            completeness,
            experiments=[one.record for one in self.opened.experiments],
        )
        findings += check_reference(sealed)
        findings += check_sealed_copies(sealed.runs)

    def of_integrity(self) -> Decision:
        """Return INTACT unless something is broken or missing.

        Warnings concern what is reproduced, which was not asked for.
        """
        findings = self.found.findings
        findings += self._not_asked_for()
        findings += not_derived(self.opened.accepted)
        self._vouched((), {}, ())
        return decide(
            (one for one in findings if one.outcome != "warn"), Verdict.INTACT
        )

    def _not_asked_for(self) -> Iterator[Finding]:
        reason = "only integrity and completeness were asked for"
        yield finding("reference-not-repeatable", "not-checked", reason)
        yield finding("references-differ", "not-checked", reason)
        yield finding("restart-asked", "not-checked", reason)
        yield finding("truth-made", "not-checked", reason)
        yield finding("tracing-changed-reference", "not-checked", reason)
        for one in self.opened.replays:
            yield finding("same-run", "not-checked", reason, where=f"replays/{one.id}")

    def of_replays(self, chosen: Sequence[Replay]) -> Decision:
        """Judge each replay, and return what they come to together."""
        findings = self.found.findings
        self._about_content()
        by_replay = {one.id: self._judge(self.sealed, one) for one in chosen}
        self.found.judgements += by_replay.values()
        findings += check_claims(
            self.sealed, chosen, by_replay, advice=self._how_to_replay()
        )
        left = [one for one in self.opened.experiments if one not in chosen]
        findings += check_experiments(left)
        self.found.experiments = experiment_runs(left)
        counted = deciding(self.sealed, chosen)
        judged = [by_replay[one.id] for one in counted]
        ends = self._ends(chosen, counted)
        self._vouched(chosen, by_replay, judged)
        if self.opened.accepted or self.asked.acceptance:
            findings += self._accepted()
        findings[:] = apply_allowances(findings, self.asked.allow)
        if self.asked.own_policy is not None:
            self.found.second_opinion = self._second_opinion(
                self.asked.own_policy, chosen
            )
        self.found.claims = claim_results(self.sealed, counted, by_replay, ends)
        base = worst(map(_verdict, judged)) if judged else Verdict.NOT_YET_REPLAYED
        return with_replays(decide(findings, base), judged)

    def _about_content(self) -> None:
        """Make the checks of the sealed runs that read their content."""
        findings, bundle, sealed = self.found.findings, self.bundle, self.sealed
        findings += check_repeat(bundle, sealed)
        findings += check_traced(bundle, sealed)
        findings += check_references(bundle, sealed)
        findings += check_float64(sealed)
        findings += check_restart(sealed, self.opened.restarted(sealed))
        findings += check_truth(sealed)

    def _how_to_replay(self) -> str:
        advice = f"reprobundle replay {shlex.quote(self.bundle.path.name)}"
        return f"{advice} on {self.asked.here}" if self.asked.here else advice

    def _vouched(
        self,
        chosen: Sequence[Replay],
        by_replay: Mapping[str, Judgement],
        judged: Sequence[Judgement],
    ) -> None:
        """Say who vouches for what was judged."""
        found, opened = self.found, self.opened
        found.assurance = assess(
            found.signatures,
            occasions_of(counting(self.sealed, chosen), by_replay),
            claims=required(self.sealed),
            decided=all(one.verdict in POSITIVE for one in judged),
            has_signers=self.asked.signers is not None,
        )
        count = sum(one.source is opened.source for one in opened.replays)
        found.findings += check_assurance(found.assurance)
        found.findings.append(check_second_person(found.assurance, count))

    def _accepted(self) -> list[Finding]:
        """Check the attached acceptance records, and assess the evidence if asked."""
        from reprobundle.verify.assessment.evidence import Known, assess_now

        opened, accepted = self.opened, self.opened.accepted
        known = Known(
            self.bundle,
            self.sealed,
            [one for one in opened.attached if one.source is self.bundle],
            tuple(self.found.findings),
            self._judge_plainly,
        )
        shown, findings = check_accepted(known, accepted)
        self.found.acceptances = tuple(
            msgspec.structs.replace(
                one, signed_by=signed_by(self.found.signatures, one.id)
            )
            for one in shown
        )
        if self.asked.acceptance:
            own = [one for one in opened.attached if one.source is opened.source]
            last = accepted[-1].record.reports if accepted else None
            self.found.assessment = assess_now(
                known._replace(attached=own), self.asked.reports or last
            )
        return findings

    def _judge_plainly(self, one: Replay, among: Sequence[Replay]) -> Judgement:
        """Return the judgement on a replay among others, no warning allowed away."""
        linux = find_linux_reference(self.bundle, self.sealed, among)
        known = (it for it in self.found.judgements if it.replay == one.id)
        found = None if self.asked.allow or linux != self.linux else next(known, None)
        return found or self._judge(self.sealed, one, allow=(), linux=linux)

    def _ends(
        self, chosen: Sequence[Replay], counted: Sequence[Replay]
    ) -> Sequence[EndResult]:
        """Judge the last numbers of repeated runs, where the policy asks for it."""
        if not any(claim.ends for claim in self.sealed.policy.claims):
            return ()
        from reprobundle.verify.ends import (
            check_earlier_ends,
            check_ends,
            judge_ends,
        )

        ends = judge_ends(self.bundle, self.sealed, counted)
        self.found.findings += check_ends(ends)
        self.found.findings += check_earlier_ends(
            self.bundle, self.sealed, chosen, counted, ends
        )
        return ends

    def _judge(
        self,
        sealed: Sealed,
        one: Replay,
        *,
        allow: Sequence[str] | None = None,
        linux: LinuxReference | None = None,
    ) -> Judgement:
        from reprobundle.verify.judge import judge

        return judge(
            self.bundle,
            sealed,
            one.id,
            one.record,
            attached(self.bundle, one.source, one.id, one.record),
            traced=traced_with(self.opened.runs, one),
            linux=self.linux if allow is None else linux,
            earlier=records_before(self.opened.runs, one),
            now=self.asked.now,
            allow=self.asked.allow if allow is None else allow,
        )

    def _second_opinion(
        self, own: OwnPolicy, chosen: Sequence[Replay]
    ) -> SecondOpinion:
        """Judge the same replays once more, under the verifier's own policy."""
        mine = self.sealed._replace(policy=laid_over(self.sealed.policy, own.policy))
        by_replay = {one.id: self._judge(mine, one) for one in chosen}
        stated = check_policy(mine.policy, self.sealed.reference)
        about_policy = apply_allowances(stated, self.asked.allow)
        return second_opinion(
            own,
            self.sealed.policy,
            about_bundle=[*self.found.findings, *about_policy],
            judgements=tuple(by_replay.values()),
            deciding=[by_replay[one.id] for one in deciding(mine, chosen)],
        )


def _verdict(judgement: Judgement) -> Verdict:
    return Verdict(judgement.verdict)
