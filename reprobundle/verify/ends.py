"""Whether the last numbers of repeated runs come from one distribution (V20).

For chaotic runs no element-wise tolerance of the end says anything. What can be asked
is whether the replays' last numbers could be further runs of the author's: the sealed
reference and its repeats against all measured runs of one call of ``replay``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Literal

from reprobundle.format.findings import Finding
from reprobundle.format.judged import EndResult
from reprobundle.format.policy import EndTest
from reprobundle.format.reader import Bundle
from reprobundle.verify.bands import claim_of, last_number
from reprobundle.verify.checks import finding
from reprobundle.verify.claims import Replay
from reprobundle.verify.content import Content, attached, sealed
from reprobundle.verify.ending import is_finished
from reprobundle.verify.rank_test import rank_test
from reprobundle.verify.sealed import Sealed

_ADVICE = "pack with --repeat N and replay with --repeat N"


def judge_ends(
    bundle: Bundle, documents: Sealed, deciding: Sequence[Replay]
) -> tuple[EndResult, ...]:
    """Return what each end test of the policy says about the replays that decide.

    Args:
        bundle: The bundle.
        documents: Its decoded documents.
        deciding: The records of the newest occasion of each claim.
    """
    found = []
    for name in dict.fromkeys(one.record.claim for one in deciding):
        claim = claim_of(documents.policy, name)
        if claim is None or not claim.ends:
            continue
        runs = [
            one
            for one in deciding
            if one.record.claim == name and one.record.pass_name == "measured"
        ]
        for device in dict.fromkeys(one.record.devices.requested for one in runs):
            here = [one for one in runs if one.record.devices.requested == device]
            found += [
                _judged(bundle, documents, (name, device), end, here)
                for end in claim.ends
            ]
    return tuple(found)


def _judged(
    bundle: Bundle,
    documents: Sealed,
    of: tuple[str, str],
    end: EndTest,
    runs: Sequence[Replay],
) -> EndResult:
    expected = _sealed_ends(bundle, documents, of[0], end)
    got = [
        last_number(end.metric, (one.record, _content(bundle, one)))
        for one in runs
        if is_finished(one.record)
    ]
    result, reason, p = _compared(end, expected, got)
    return EndResult(
        claim=of[0],
        device=of[1],
        metric=end.metric,
        test=end.test,
        alpha=end.alpha,
        reference_runs=len(expected),
        replay_runs=len(got),
        p=p,
        result=result,
        reason=reason,
    )


def _content(bundle: Bundle, one: Replay) -> Content:
    return attached(bundle, one.source, one.id, one.record)


def _sealed_ends(
    bundle: Bundle, documents: Sealed, claim: str, end: EndTest
) -> list[float | None]:
    return [
        last_number(end.metric, (record, sealed(bundle, number, record)))
        for number, record in sorted(documents.runs.items())
        if record.claim == claim and record.role in ("reference", "repeat", "claim")
    ]


def _compared(
    end: EndTest, expected: Sequence[float | None], got: Sequence[float | None]
) -> tuple[Literal["same", "other", "not-judged"], str, float | None]:
    """Return the result, why, and the probability, if it was computed."""
    left = [value for value in expected if value is not None]
    right = [value for value in got if value is not None]
    if len(left) < len(expected) or len(right) < len(got) or not left or not right:
        return "not-judged", "a run holds no such number", None
    if not all(map(math.isfinite, left)):
        return "not-judged", "a number of the author's runs is not finite", None
    if not all(map(math.isfinite, right)):
        return "other", "a number of the replay is not finite", None
    if len({*left, *right}) == 1:
        return "same", "all numbers are equal", 1.0
    tested = rank_test(left, right)
    if tested.smallest > end.alpha:
        reason = (
            f"too few runs: {len(left)} and {len(right)} can have no p below "
            f"{tested.smallest:.3g}, so the test could not fail"
        )
        return "not-judged", reason, tested.p
    if tested.p <= end.alpha:
        return "other", "the replays end otherwise than the author's runs", tested.p
    return "same", "", tested.p


def check_ends(results: Sequence[EndResult]) -> Iterator[Finding]:
    """Yield the findings about the ends of repeated runs (V20)."""
    for one in results:
        said = end_words(one)
        where = f"{one.claim}, {one.metric}"
        if one.result == "same":
            yield finding("claim-ends", "pass", said, where=where)
        elif one.result == "other":
            yield finding("claim-ends", "fail", f"{one.reason}: {said}", where=where)
        else:
            yield finding(
                "claim-ends", "not-checked", one.reason, where=where, advice=_ADVICE
            )


def check_earlier_ends(
    bundle: Bundle,
    documents: Sealed,
    chosen: Sequence[Replay],
    deciding: Sequence[Replay],
    results: Sequence[EndResult],
) -> Iterator[Finding]:
    """Warn if another call of ``replay`` failed a test that the deciding one passed.

    Whoever repeats a test until it passes has to be seen: at a level of 0.05 one call
    in twenty passes or fails by chance.

    Args:
        bundle: The bundle.
        documents: Its decoded documents.
        chosen: All replays that are judged.
        deciding: Those of the newest occasion of each claim.
        results: What the end tests said about these.
    """
    passed = {(one.claim, one.metric) for one in results if one.result == "same"}
    decisive = {one.id for one in deciding}
    others: dict[tuple[str, str], list[Replay]] = {}
    for one in chosen:
        if one.id not in decisive:
            others.setdefault(one.group, []).append(one)
    for runs in others.values():
        for end in judge_ends(bundle, documents, runs):
            if end.result == "other" and (end.claim, end.metric) in passed:
                reason = f"another call of replay failed it: {end_words(end)}"
                where = f"{end.claim}, {end.metric}"
                yield finding("replays-disagree", "warn", reason, where=where)


def end_words(one: EndResult) -> str:
    """Return test, level, sizes and probability in words."""
    p = "" if one.p is None else f", p = {one.p:.3g}"
    return (
        f"two-sided rank-sum test of {one.reference_runs} and {one.replay_runs} runs "
        f"at level {one.alpha:g}{p}"
    )
