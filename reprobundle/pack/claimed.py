"""Which numbers of the author's own claims the author's own run does not bear out.

A band or an end test that names a number the run does not hold can never be judged, and
nobody but the author can mend it. So it is told while the bundle is made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reprobundle.format.policy import Claim, Policy
from reprobundle.run.finished import Assembled
from reprobundle.verify.bands import Side, judge_bands, last_number
from reprobundle.verify.content import on_disk


def unmet_claims(policy: Policy, runs: Sequence[Assembled]) -> Iterator[str]:
    """Yield one sentence for each number of a claim that is not there or not met.

    Args:
        policy: What the author claims.
        runs: The author's runs; the first one of each claim is the measured one.
    """
    for claim in policy.claims:
        own = next((run for run in runs if run.record.claim == claim.name), None)
        if own is not None:
            yield from _of_claim(claim, (own.record, on_disk(own.record, own.content)))


def _of_claim(claim: Claim, side: Side) -> Iterator[str]:
    name = f"claim {claim.name!r}"
    for end in claim.ends:
        if last_number(end.metric, side) is None:
            yield f"{name}: the run holds no number {end.metric}: {_held(side)}"
    for band in judge_bands(claim, side, side):
        if band.result == "not-found" or band.replay is None:
            yield f"{name}: the run holds no number {band.metric}: {_held(side)}"
        elif band.result == "outside":
            got = f"{float(band.replay):.9g}"
            yield f"{name}: {band.metric} is {got} and lies outside its own band"


def _held(side: Side) -> str:
    names = [one.name for one in side[0].outputs if one.kind != "bytes"]
    return f"its outputs are {', '.join(names[:6]) or 'none'}"
