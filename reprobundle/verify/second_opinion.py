"""The verifier's own policy: judged, and shown beside the author's.

It is laid over the frozen policy: what the verifier's file does not state stays as the
author froze it. It never takes the place of the author's, whatever it says: the
verdict of the bundle and the exit status follow the frozen policy (spec.md, "Policy").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from reprobundle.format.findings import Finding, Judgement, SecondOpinion, Verdict
from reprobundle.format.policy import OutputRule, Policy, Tolerance
from reprobundle.verify.verdict import decide, worst

_FIELDS = ("rtol", "atol", "floor", "share")


class OwnPolicy(NamedTuple):
    """What the verifier states, and the name of the file it was read from."""

    file: str
    policy: Policy


def laid_over(frozen: Policy, own: Policy) -> Policy:
    """Return `frozen` with what the verifier states in front of it."""
    stated = {(row.dtype, row.devices) for row in own.tolerances}
    kept = (row for row in frozen.tolerances if (row.dtype, row.devices) not in stated)
    return msgspec.structs.replace(
        frozen,
        profile=own.profile if own.profile == "compat" else frozen.profile,
        author=own.author,
        reason=own.reason,
        tolerances=(*own.tolerances, *kept),
        outputs=(*own.outputs, *frozen.outputs),
        ignore_keys=tuple(sorted({*frozen.ignore_keys, *own.ignore_keys})),
    )


def looser(frozen: Policy, own: Policy) -> tuple[str, ...]:
    """Return where `own` admits more than `frozen`, in words."""
    return tuple(_looser(frozen, own))


def _looser(frozen: Policy, own: Policy) -> Iterator[str]:
    if own.profile == "compat" and frozen.profile != "compat":
        yield "profile compat compares no values"
    # The first row of a dtype is the one that applies.
    rows = {
        (row.dtype, row.devices): row.tolerance for row in reversed(frozen.tolerances)
    }
    for row in own.tolerances:
        before = rows.get((row.dtype, row.devices), Tolerance(rtol=0.0, atol=0.0))
        more = _wider(before, row.tolerance)
        if more:
            yield f"{row.dtype}, {row.devices} devices: {more}"
    for rule in own.outputs:
        yield from _rule(rule)
    new = sorted({*own.ignore_keys} - {*frozen.ignore_keys})
    if new:
        yield f"ignores the keys {', '.join(new)}"


def _wider(before: Tolerance, after: Tolerance) -> str:
    changes = [
        f"{name} {getattr(after, name):g} instead of {getattr(before, name):g}"
        for name in _FIELDS
        if getattr(after, name) > getattr(before, name)
    ]
    return ", ".join(changes)


def _rule(rule: OutputRule) -> Iterator[str]:
    """Yield what a rule of an output may admit; it is never known to be stricter."""
    if not rule.compare:
        yield f"{rule.match}: not compared"
    elif rule.tolerance or rule.dtypes:
        yield f"{rule.match}: a tolerance of its own"
    elif rule.rows or rule.ties or rule.signs or rule.ignore:
        yield f"{rule.match}: compares less"


def second_opinion(
    own: OwnPolicy,
    frozen: Policy,
    *,
    about_bundle: Sequence[Finding],
    judgements: Sequence[Judgement],
    deciding: Sequence[Judgement],
) -> SecondOpinion:
    """Return what the verifier's policy leads to.

    Args:
        own: What the verifier states.
        frozen: The author's policy.
        about_bundle: Findings about the bundle itself, allowances applied.
        judgements: Every judged replay under the verifier's policy.
        deciding: Those that decide about the bundle.
    """
    verdicts = [Verdict(one.verdict) for one in deciding]
    base = worst(verdicts) if verdicts else Verdict.NOT_YET_REPLAYED
    decision = decide(about_bundle, base)
    reasons = [*decision.reasons, *(why for one in deciding for why in one.reasons)]
    return SecondOpinion(
        file=own.file,
        author=own.policy.author,
        reason=own.policy.reason,
        looser=looser(frozen, own.policy),
        verdict=decision.verdict.value,
        exit_status=decision.exit_status,
        reasons=tuple(dict.fromkeys(reasons)),
        judgements=tuple(judgements),
    )
