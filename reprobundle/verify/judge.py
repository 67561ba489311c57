"""The judgement on one replay record: all its findings, and the verdict they give."""

from __future__ import annotations

import datetime
import shlex
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import BinaryIO

from reprobundle.format.findings import (
    EnvironmentDifference,
    Finding,
    Judgement,
    OutputComparison,
    Verdict,
)
from reprobundle.format.judged import BandResult, Cause, TruthComparison
from reprobundle.format.reader import Bundle
from reprobundle.format.record import Record
from reprobundle.verify.bands import check_bands, claim_of, judge_bands
from reprobundle.verify.beside_linux import LinuxReference, check_beside_linux
from reprobundle.verify.causes.case import Case
from reprobundle.verify.causes.likely import likely_causes
from reprobundle.verify.checks import OF_ONE_REPLAY, unmade
from reprobundle.verify.content import Content
from reprobundle.verify.content import sealed as sealed_content
from reprobundle.verify.counterpart import against
from reprobundle.verify.devices import check_devices, device_of, device_pair
from reprobundle.verify.ending import check_ending, is_finished
from reprobundle.verify.environment import (
    check_environment,
    check_tracked,
    compare_environments,
)
from reprobundle.verify.experiments import check_own
from reprobundle.verify.mapped import check_mapped
from reprobundle.verify.memory import check_memory
from reprobundle.verify.observation import check_observation
from reprobundle.verify.outcomes import check_outputs
from reprobundle.verify.own_run import check_own_run
from reprobundle.verify.protocol import check_protocol
from reprobundle.verify.sealed import Sealed
from reprobundle.verify.start import check_start
from reprobundle.verify.timing import check_timing
from reprobundle.verify.truth import check_nearer, compare_truth
from reprobundle.verify.verdict import apply_allowances, base_of, decide


def judge(
    bundle: Bundle,
    sealed: Sealed,
    replay_id: str,
    replay: Record,
    content: Content,
    *,
    traced: Record | None = None,
    linux: LinuxReference | None = None,
    earlier: Sequence[Record] = (),
    now: datetime.datetime,
    allow: Sequence[str] = (),
) -> Judgement:
    """Return the judgement on one replay.

    Args:
        bundle: The bundle, whose integrity has been proven.
        sealed: Its decoded documents.
        replay_id: Record id of the replay.
        replay: Its record.
        content: Where its content lies.
        traced: The evidence pass of the same occasion and claim, if one was made.
        linux: The Linux reference that somebody attached, if the origin is none.
        earlier: Records that were attached before it.
        now: The time of this machine.
        allow: Names of warnings that the caller accepts.

    Raises:
        BadCallError: `allow` names no warning.
    """
    number, reference, same_run = against(replay, sealed)
    if reference is None:
        skipped = unmade([same_run], same_run.reason, OF_ONE_REPLAY)
        return _judgement(replay_id, replay, [same_run, *skipped], allow=allow)
    findings = [same_run, *check_own(replay)]
    if is_finished(replay) or replay.processes:
        findings += check_own_run(replay, sealed.runs, earlier, now)
        findings += check_protocol(reference, replay)
    findings += check_ending(reference, replay)
    comparisons: tuple[OutputComparison, ...] = ()
    differences: tuple[EnvironmentDifference, ...] = ()
    bands: tuple[BandResult, ...] = ()
    truths: tuple[TruthComparison, ...] = ()
    if is_finished(replay):
        sides = (sealed_content(bundle, number, reference), content)
        comparisons = _compare(sealed, reference, replay, sides)
        findings += _about_outputs(
            bundle, sealed, (reference, replay), content, comparisons
        )
        findings += check_beside_linux(sealed, linux, replay_id, replay, content)
        claim = claim_of(sealed.policy, replay.claim)
        first = (reference, sides[0])
        bands = judge_bands(claim, first, (replay, content))
        findings += check_bands(claim, bands)
        truths = compare_truth(bundle, sealed, number, replay, content)
        findings += check_nearer(truths)
        differences = compare_environments(reference, replay)
        findings += _about_run(
            sealed, reference, replay, comparisons, differences, traced
        )
        findings += check_memory(reference, replay, sides)
    else:
        reason = "the replay did not come to its end"
        findings += check_start(reference, replay, identical=False)
        findings += unmade(findings, reason, OF_ONE_REPLAY)
    name = shlex.quote(bundle.path.name)
    return _judgement(
        replay_id,
        replay,
        findings,
        number=number,
        comparisons=comparisons,
        differences=differences,
        base=base_of(comparisons, same_error=_same_error(reference, replay)),
        bands=bands,
        truths=truths,
        causes=lambda found: likely_causes(
            Case(name, reference, replay, comparisons, differences, found)
        ),
        allow=allow,
    )


def _about_outputs(
    bundle: Bundle,
    sealed: Sealed,
    sides: tuple[Record, Record],
    content: Content,
    comparisons: tuple[OutputComparison, ...],
) -> list[Finding]:
    """Return the findings about the outputs, and where two runs that differ part."""
    reference, replay = sides
    findings = list(check_outputs(reference, comparisons, sealed.policy))
    differs = any(
        (one.id, one.outcome) == ("output-differs", "fail") for one in findings
    )
    if differs or replay.pass_name == "evidence":
        findings.append(_where_they_part(bundle, sealed, sides, content, differs))
    return findings


def _compare(
    sealed: Sealed,
    reference: Record,
    replay: Record,
    sides: tuple[Content, Content],
) -> tuple[OutputComparison, ...]:
    from reprobundle.verify.compare import compare_outputs

    return compare_outputs(
        reference,
        replay,
        *sides,
        policy=sealed.policy,
    )


def _where_they_part(
    bundle: Bundle,
    sealed: Sealed,
    pair: tuple[Record, Record],
    content: Content,
    differs: bool,
) -> Finding:
    """Return the finding about the first divergence of two traced runs."""
    from reprobundle.verify import divergence

    reference, replay = pair
    with ExitStack() as stack:
        streams: list[BinaryIO | None] = [None, None]
        for number, record in sealed.fellows(reference, "evidence"):
            if device_of(record) == device_of(reference):
                traced = sealed_content(bundle, number, record)
                if divergence.MEMBER in traced.names:
                    opened = traced.open_own(divergence.MEMBER)
                    streams[0] = stack.enter_context(opened)
        if divergence.MEMBER in content.names:
            streams[1] = stack.enter_context(content.open_own(divergence.MEMBER))
        return divergence.check_divergence(
            *streams,
            policy=sealed.policy,
            devices=device_pair(reference, replay),
            differs=differs,
        )


def _about_run(
    sealed: Sealed,
    reference: Record,
    replay: Record,
    comparisons: tuple[OutputComparison, ...],
    differences: tuple[EnvironmentDifference, ...],
    traced: Record | None,
) -> list[Finding]:
    """Return the findings about how a finished replay ran."""
    something = bool(comparisons) or reference.outcome.expected_failure
    identical = something and all(
        item.excluded or item.result == "bit-identical" for item in comparisons
    )
    return [
        *check_start(reference, replay, identical=identical),
        *check_observation(replay, reference),
        *check_devices(replay, sealed.policy, traced),
        check_mapped(reference, replay),
        check_tracked(replay),
        *check_environment(
            reference,
            replay,
            differences,
            devices=device_pair(reference, replay),
            identical=identical,
        ),
        *check_timing(replay),
    ]


def _device(replay: Record) -> str:
    """Return the device the replay ran on; empty if it stopped before it used one."""
    if replay.outcome.stop and not replay.devices.observed:
        return ""
    return device_of(replay)


def _same_error(reference: Record, replay: Record) -> bool:
    expected, got = reference.outcome.error, replay.outcome.error
    if expected is None or got is None:
        return True
    return expected.message == got.message


def _judgement(
    replay_id: str,
    replay: Record,
    findings: list[Finding],
    *,
    number: int = 0,
    comparisons: tuple[OutputComparison, ...] = (),
    differences: tuple[EnvironmentDifference, ...] = (),
    bands: tuple[BandResult, ...] = (),
    truths: tuple[TruthComparison, ...] = (),
    base: Verdict = Verdict.WITHIN_TOLERANCE,
    causes: Callable[[Sequence[Finding]], tuple[Cause, ...]] = lambda _: (),
    allow: Sequence[str],
) -> Judgement:
    marked = apply_allowances(findings, allow)
    decision = decide(marked, base)
    return Judgement(
        replay=replay_id,
        verdict=decision.verdict.value,
        exit_status=decision.exit_status,
        reasons=decision.reasons,
        device=_device(replay),
        outputs=comparisons,
        environment=differences,
        findings=marked,
        pass_name=replay.pass_name,
        claim=replay.claim,
        occasion=replay.occasion,
        requested=replay.devices.requested.removeprefix("as-is"),
        against=number,
        causes=causes(marked),
        bands=bands,
        truths=truths,
    )
