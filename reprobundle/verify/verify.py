"""Judge a bundle: is it whole, is it complete, and did its replays reproduce it?

Runs nothing, unpickles nothing, needs no torch and no network. Every rendering of the
answer is made from the one `Report` returned here.
"""

from __future__ import annotations

import datetime
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from reprobundle.errors import BundleError
from reprobundle.format.assessment import Assessment, AttachedAcceptance
from reprobundle.format.findings import (
    ExperimentRun,
    Finding,
    Judgement,
    Report,
    SecondOpinion,
    Verdict,
)
from reprobundle.format.judged import ClaimResult, EndResult
from reprobundle.format.reader import (
    Bundle,
    ReplayFile,
    open_bundle,
    open_replay_file,
)
from reprobundle.format.signed import Assurance, SignatureResult
from reprobundle.verify.acceptance import check_acceptance
from reprobundle.verify.acceptance_records import (
    ReadAcceptance,
    check_accepted,
    not_derived,
    read_acceptances,
)
from reprobundle.verify.assurance import assess, check_assurance, check_second_person
from reprobundle.verify.beside_linux import LinuxReference, find_linux_reference
from reprobundle.verify.checks import finding, unmade
from reprobundle.verify.chosen import named, records_before, traced_with
from reprobundle.verify.claims import Replay, check_claims, claim_results, deciding
from reprobundle.verify.completeness import check_completeness
from reprobundle.verify.content import attached
from reprobundle.verify.experiments import (
    check_experiments,
    experiment_runs,
    is_experiment,
)
from reprobundle.verify.float64 import check_float64
from reprobundle.verify.integrity import (
    check_identity,
    check_opened,
    check_sealed_digests,
    refusal,
    whole_id,
)
from reprobundle.verify.membership import check_run_members
from reprobundle.verify.own_run import check_sealed_copies
from reprobundle.verify.policy import check_policy
from reprobundle.verify.reference import (
    check_reference,
    check_repeat,
    check_traced,
)
from reprobundle.verify.replays import read_replay
from reprobundle.verify.restart import Restarted, check_restart
from reprobundle.verify.restarted import restarted_at_packing, restarted_replay
from reprobundle.verify.sealed import Sealed, read_sealed
from reprobundle.verify.second_opinion import OwnPolicy, laid_over, second_opinion
from reprobundle.verify.several_devices import check_references
from reprobundle.verify.signatures import check_signatures
from reprobundle.verify.truth import check_truth
from reprobundle.verify.verdict import (
    Decision,
    apply_allowances,
    check_allowances,
    consequence,
    decide,
    with_replays,
    worst,
)

if TYPE_CHECKING:
    from reprobundle.format.acceptance_record import Reports
    from reprobundle.sign.signers import Signers

Progress = Callable[[int], None] | None


class _State:
    """What is known so far.

    Attributes:
        findings: About the bundle itself.
        judgements: About each replay, oldest first.
        claims: Every claim of the work and what came of it.
        second_opinion: Under the verifier's own policy, if there is one.
        experiments: Runs that were to differ, and count for nothing.
        acceptances: The attached acceptance records, and whether they hold.
        assessment: What the evidence comes to, where somebody asked.
        signatures: What was found about each signature.
        assurance: Who vouches for the result.
    """

    def __init__(self) -> None:
        self.signatures: tuple[SignatureResult, ...] = ()
        self.assurance = Assurance(reason="no signature was looked at")
        self.second_opinion: SecondOpinion | None = None
        self.claims: tuple[ClaimResult, ...] = ()
        self.experiments: tuple[ExperimentRun, ...] = ()
        self.acceptances: tuple[AttachedAcceptance, ...] = ()
        self.assessment: Assessment | None = None
        self.findings: list[Finding] = []
        self.judgements: list[Judgement] = []


def verify_bundle(
    path: Path,
    *,
    integrity_only: bool = False,
    deep: bool = False,
    replay: str | None = None,
    only: Sequence[str] = (),
    replay_file: Path | None = None,
    expect_id: str | None = None,
    allow: tuple[str, ...] = (),
    own_policy: OwnPolicy | None = None,
    acceptance: bool = False,
    reports: Reports | None = None,
    signers: Signers | None = None,
    here: str = "",
    now: datetime.datetime | None = None,
    progress: Progress = None,
) -> Report:
    """Return everything that can be said about the bundle at `path`.

    Args:
        path: The bundle.
        integrity_only: Ask only for integrity and completeness, judge no replay.
        deep: Prove the chunk digests too.
        replay: Judge only the replay with this id, or the only one that starts so.
        only: Judge the replays of these ids alone, experiments too; all others that
            are no experiments if empty.
        replay_file: Judge the replays of this file instead of the attached ones.
        expect_id: The bundle id as obtained elsewhere.
        allow: Names of warnings that the caller accepts.
        own_policy: The verifier's own policy, to be judged beside the frozen one.
        acceptance: Whether to assess the evidence: points and a recommendation.
        reports: What other verbs said, for that; those of the newest attached
            acceptance record if None.
        signers: Whose keys are whose; the bundle must be signed by one of them then.
        here: Platform of this machine, such as ``linux-cpu``; only for the advice.
        now: The time that no replay can lie behind; that of this machine if None.
        progress: Called with the number of bytes just checked.

    Raises:
        BadCallError: `allow` names no warning, `replay` no replay, or `expect_id` is
            no whole id.
        EnvironmentUnusableError: A file cannot be read.
    """
    check_allowances(allow)
    if expect_id is not None:
        expect_id = whole_id(expect_id)
    state = _State()
    file = ""
    try:
        with ExitStack() as stack:
            bundle = stack.enter_context(open_bundle(path))
            source: ReplayFile = bundle
            if replay_file is not None:
                file = replay_file.name
                source = stack.enter_context(open_replay_file(replay_file))
                file = ""
            job = _Verification(bundle, source, state, allow, progress)
            job.own_policy = own_policy
            job.now = now or datetime.datetime.now(tz=datetime.timezone.utc)
            job.only = frozenset(only)
            job.assess = acceptance
            job.reports = reports
            job.signers = signers
            job.integrity(deep=deep, expect_id=expect_id)
            decision = job.conclude(
                integrity_only=integrity_only, wanted=replay, here=here
            )
            return _report(path, state, decision, bundle)
    except BundleError as error:
        state.findings.append(refusal(error, file))
        state.findings += unmade(state.findings, "the file could not be opened")
        return _report(path, state, decide(state.findings, Verdict.TAMPERED), None)


def _report(
    path: Path, state: _State, decision: Decision, bundle: Bundle | None
) -> Report:
    everything = [
        *state.findings,
        *(found for judgement in state.judgements for found in judgement.findings),
    ]
    unchecked = (found.id for found in everything if found.outcome == "not-checked")
    return Report(
        bundle=bundle.id if bundle is not None else "",
        file=path.name,
        format_version=bundle.manifest.version if bundle is not None else "",
        verdict=decision.verdict.value,
        exit_status=decision.exit_status,
        reasons=decision.reasons,
        not_checked=tuple(dict.fromkeys(unchecked)),
        findings=tuple(state.findings),
        judgements=tuple(state.judgements),
        claims=state.claims,
        second_opinion=state.second_opinion,
        experiments=state.experiments,
        acceptances=state.acceptances,
        assessment=state.assessment,
        signatures=state.signatures,
        assurance=state.assurance,
    )


class _Verification:
    """The state of one call of `verify_bundle` after the bundle was opened."""

    def __init__(
        self,
        bundle: Bundle,
        source: ReplayFile,
        state: _State,
        allow: Sequence[str],
        progress: Progress,
    ) -> None:
        self.bundle = bundle
        self.source = source
        self.state = state
        self.allow = allow
        self.progress = progress
        self.own_policy: OwnPolicy | None = None
        self.linux: LinuxReference | None = None
        self.now = datetime.datetime.now(tz=datetime.timezone.utc)
        self.only: frozenset[str] = frozenset()
        self.signers: Signers | None = None
        self.sealed: Sealed | None = None
        self.replays: list[Replay] = []
        self.restarts: list[Replay] = []
        self.experiments: list[Replay] = []
        self.runs: list[Replay] = []
        self.attached: list[Replay] = []
        self.accepted: list[ReadAcceptance] = []
        self.assess = False
        self.reports: Reports | None = None

    # --- integrity

    def integrity(self, *, deep: bool, expect_id: str | None) -> None:
        """Make the checks V1 to V7, and see whose signatures hold (V24)."""
        findings, bundle = self.state.findings, self.bundle
        findings += check_opened(bundle)
        findings += check_sealed_digests(bundle, deep=deep, progress=self.progress)
        findings.append(check_identity(bundle, expect_id))
        if self._is_broken():
            return
        self.sealed, about = read_sealed(bundle)
        findings += about
        if self.sealed is not None:
            findings += check_run_members(bundle, self.sealed.runs)
        self._read_replays(bundle)
        if self.source is not bundle:
            self._read_replays(self.source)
        self.accepted, about_accepted = read_acceptances(bundle)
        findings += about_accepted
        self._examine_signatures()

    def _examine_signatures(self) -> None:
        sources = list(dict.fromkeys((self.bundle, self.source)))
        if self.signers is not None or any(one.signatures for one in sources):
            from reprobundle.sign.examine import examine_signatures

            found = examine_signatures(sources, self.signers)
            self.state.signatures = tuple(found)
        self.state.findings += check_signatures(
            self.state.signatures, has_signers=self.signers is not None
        )

    def _vouched(self, judged: Sequence[Judgement]) -> None:
        """Say who vouches for what was judged."""
        self.state.assurance = assess(
            self.state.signatures, judged, has_signers=self.signers is not None
        )
        count = sum(one.source is self.source for one in self.replays)
        self.state.findings += check_assurance(self.state.assurance)
        self.state.findings.append(check_second_person(self.state.assurance, count))

    def _read_replays(self, source: ReplayFile) -> None:
        for replay_id in source.replay_ids:
            record, about = read_replay(self.bundle, source, replay_id)
            self.state.findings += about
            if record is None:
                continue
            self._keep(Replay(replay_id, record, source))

    def _keep(self, one: Replay) -> None:
        record = one.record
        self.attached.append(one)
        # A restart pass is no replay of its own: it is judged by V22 alone.
        is_restart = record.pass_name == "restart" and not record.outcome.stop
        if not is_restart:
            self.runs.append(one)
        if is_experiment(record) and one.id not in self.only:
            self.experiments.append(one)
        else:
            (self.restarts if is_restart else self.replays).append(one)

    def _is_broken(self) -> bool:
        broken = (Verdict.UNREADABLE, Verdict.TAMPERED)
        return any(consequence(found) in broken for found in self.state.findings)

    # --- the rest

    def conclude(
        self, *, integrity_only: bool, wanted: str | None, here: str
    ) -> Decision:
        """Make all other checks that still make sense, and decide."""
        findings = self.state.findings
        if self._is_broken():
            findings += unmade(findings, "the bundle is not what was sealed")
            return decide(findings, Verdict.TAMPERED)
        if self.sealed is None:
            findings += unmade(findings, "a document that it needs is not there")
            return decide(findings, Verdict.INCOMPLETE)
        chosen = self._chosen(wanted)
        self._about_bundle(self.sealed)
        self.linux = find_linux_reference(self.bundle, self.sealed, self.replays)
        if integrity_only:
            findings += self._not_asked_for()
            findings += not_derived(self.accepted)
            self._vouched(())
            return self._integrity_verdict()
        findings += check_repeat(self.bundle, self.sealed)
        findings += check_traced(self.bundle, self.sealed)
        findings += check_references(self.bundle, self.sealed)
        findings += check_float64(self.sealed)
        findings += check_restart(self.sealed, self._restarted(self.sealed))
        findings += check_truth(self.sealed)
        by_replay = {one.id: self._judge(self.sealed, one) for one in chosen}
        self.state.judgements += by_replay.values()
        advice = f"reprobundle replay {shlex.quote(self.bundle.path.name)}"
        findings += check_claims(
            self.sealed,
            chosen,
            by_replay,
            advice=f"{advice} on {here}" if here else advice,
        )
        left = [one for one in self.experiments if one not in chosen]
        findings += check_experiments(left)
        self.state.experiments = experiment_runs(left)
        counted = deciding(self.sealed, chosen)
        judged = [by_replay[one.id] for one in counted]
        ends = self._ends(self.sealed, counted)
        self._vouched(judged)
        if self.accepted or self.assess:
            findings += self._accepted(self.sealed)
        self.state.findings[:] = apply_allowances(findings, self.allow)
        if self.own_policy is not None:
            self.state.second_opinion = self._second_opinion(
                self.sealed, self.own_policy, chosen
            )
        self.state.claims = claim_results(self.sealed, counted, by_replay, ends)
        base = worst(map(_verdict, judged)) if judged else Verdict.NOT_YET_REPLAYED
        return with_replays(decide(self.state.findings, base), judged)

    def _accepted(self, sealed: Sealed) -> list[Finding]:
        """Check the attached acceptance records, and assess the evidence if asked."""
        from reprobundle.verify.assessment.evidence import Known, assess_now

        known = Known(
            self.bundle,
            sealed,
            [one for one in self.attached if one.source is self.bundle],
            tuple(self.state.findings),
            lambda one, among: self._judge_plainly(sealed, one, among),
        )
        self.state.acceptances, findings = check_accepted(known, self.accepted)
        if self.assess:
            own = [one for one in self.attached if one.source is self.source]
            last = self.accepted[-1].record.reports if self.accepted else None
            self.state.assessment = assess_now(
                known._replace(attached=own), self.reports or last
            )
        return findings

    def _judge_plainly(
        self, sealed: Sealed, one: Replay, among: Sequence[Replay]
    ) -> Judgement:
        """Return the judgement on a replay among others, no warning allowed away."""
        linux = find_linux_reference(self.bundle, sealed, among)
        known = (it for it in self.state.judgements if it.replay == one.id)
        found = None if self.allow or linux != self.linux else next(known, None)
        return found or self._judge(sealed, one, allow=(), linux=linux)

    def _ends(self, sealed: Sealed, counted: Sequence[Replay]) -> Sequence[EndResult]:
        """Judge the last numbers of repeated runs, where the policy asks for it."""
        if not any(claim.ends for claim in sealed.policy.claims):
            return ()
        from reprobundle.verify.ends import check_ends, judge_ends

        ends = judge_ends(self.bundle, sealed, counted)
        self.state.findings += check_ends(ends)
        return ends

    def _chosen(self, wanted: str | None) -> list[Replay]:
        """Return the replays to judge; an experiment only where it is asked for."""
        own = [one for one in self.replays if one.source is self.source]
        if self.only:
            return [one for one in own if one.id in self.only]
        if wanted is None:
            return own
        there = [one for one in self.experiments if one.source is self.source]
        return named([*own, *there], wanted)

    def _restarted(self, sealed: Sealed) -> list[Restarted]:
        mine = [one for one in self.restarts if one.source is self.source]
        replayed = [
            restarted_replay(self.bundle, sealed, one, self.replays)
            for one in mine[-1:]
        ]
        return [*restarted_at_packing(self.bundle, sealed), *replayed]

    def _about_bundle(self, sealed: Sealed) -> None:
        """Make the checks V8 to V11 that read no content."""
        records = [one.record for one in self.replays]
        members = self.bundle.members
        completeness = list(check_completeness(members, sealed, records))
        self.state.findings += check_policy(sealed.policy, sealed.reference)
        self.state.findings += completeness
        self.state.findings += check_acceptance(
            members,
            sealed,
            records,
            completeness,
            experiments=[one.record for one in self.experiments],
        )
        self.state.findings += check_reference(sealed)
        self.state.findings += check_sealed_copies(sealed.runs)

    def _not_asked_for(self) -> Iterator[Finding]:
        reason = "only integrity and completeness were asked for"
        yield finding("reference-not-repeatable", "not-checked", reason)
        yield finding("references-differ", "not-checked", reason)
        yield finding("restart-asked", "not-checked", reason)
        yield finding("truth-made", "not-checked", reason)
        yield finding("tracing-changed-reference", "not-checked", reason)
        for one in self.replays:
            yield finding("same-run", "not-checked", reason, where=f"replays/{one.id}")

    def _integrity_verdict(self) -> Decision:
        """Return INTACT unless something is broken or missing.

        Warnings concern what is reproduced, which was not asked for.
        """
        found = [one for one in self.state.findings if one.outcome != "warn"]
        return decide(found, Verdict.INTACT)

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
            traced=traced_with(self.runs, one),
            linux=self.linux if allow is None else linux,
            earlier=records_before(self.runs, one),
            now=self.now,
            allow=self.allow if allow is None else allow,
        )

    def _second_opinion(
        self, sealed: Sealed, own: OwnPolicy, chosen: Sequence[Replay]
    ) -> SecondOpinion:
        """Judge the same replays once more, under the verifier's own policy."""
        mine = sealed._replace(policy=laid_over(sealed.policy, own.policy))
        by_replay = {one.id: self._judge(mine, one) for one in chosen}
        stated = check_policy(mine.policy, sealed.reference)
        about_policy = apply_allowances(stated, self.allow)
        return second_opinion(
            own,
            sealed.policy,
            about_bundle=[*self.state.findings, *about_policy],
            judgements=tuple(by_replay.values()),
            deciding=[by_replay[one.id] for one in deciding(mine, chosen)],
        )


def _verdict(judgement: Judgement) -> Verdict:
    return Verdict(judgement.verdict)
