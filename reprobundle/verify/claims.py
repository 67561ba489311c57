"""Which replays decide about a bundle, claim by claim (V20)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from reprobundle.format.findings import Finding, Judgement, Verdict
from reprobundle.format.judged import ClaimResult, EndResult
from reprobundle.format.policy import Claim
from reprobundle.format.reader import ReplayFile
from reprobundle.format.record import STAND_IN, Record
from reprobundle.verify.checks import finding
from reprobundle.verify.devices import platform_label
from reprobundle.verify.ending import is_finished
from reprobundle.verify.sealed import Sealed
from reprobundle.verify.verdict import worst

SMOKE = "smoke"
NOT_RUN = "NOT RUN"

_NEGATIVE = (Verdict.NOT_REPRODUCED.value, Verdict.DIFFERENT_FAILURE.value)
POSITIVE = (
    Verdict.BIT_IDENTICAL.value,
    Verdict.WITHIN_TOLERANCE.value,
    Verdict.WITH_WARNINGS.value,
)


class Replay(NamedTuple):
    """A replay whose integrity holds: its id, its record, and where it lies."""

    id: str
    record: Record
    source: ReplayFile

    @property
    def group(self) -> tuple[str, str]:
        """Records of one occasion and one claim are judged together."""
        return self.record.occasion or self.id, self.record.claim


def counting(sealed: Sealed, chosen: Sequence[Replay]) -> dict[str, list[Replay]]:
    """Return, for each claim, the replays of it that count, newest last.

    Where the policy names platforms, a replay made on one of them counts before any
    newer one made elsewhere.

    Args:
        sealed: The decoded documents of the bundle.
        chosen: The replays to judge, newest last.
    """
    wanted = sealed.policy.intent.accepting_platforms
    found: dict[str, list[Replay]] = {}
    for one in chosen:
        found.setdefault(one.record.claim, []).append(one)
    if any(claim not in (SMOKE, STAND_IN) for claim in found):
        # Where the data themselves were used, a run on samples adds nothing.
        found.pop(STAND_IN, None)
    for claim, replays in found.items():
        accepted = [one for one in replays if platform_label(one.record) in wanted]
        found[claim] = accepted or replays
    return found


def deciding(sealed: Sealed, chosen: Sequence[Replay]) -> list[Replay]:
    """Return, for each claim, all records of the newest occasion that counts.

    Args:
        sealed: The decoded documents of the bundle.
        chosen: The replays to judge, newest last.
    """
    found: list[Replay] = []
    for claim, counted in counting(sealed, chosen).items():
        newest = counted[-1]
        of_claim = [one for one in chosen if one.record.claim == claim]
        found += [one for one in of_claim if one.group == newest.group]
    return found


def required(sealed: Sealed) -> frozenset[str]:
    """Return the claims that have to be replayed: all but the small ones."""
    # A claim that the author states is none that only serves as a stand-in.
    stated = {claim.name for claim in sealed.policy.claims}
    return frozenset(sealed.claims) - {SMOKE, *({STAND_IN} - stated)}


def claim_results(
    sealed: Sealed,
    deciding_replays: Sequence[Replay],
    judgements: Mapping[str, Judgement],
    ends: Sequence[EndResult] = (),
) -> tuple[ClaimResult, ...]:
    """Return what came of every claim; one that nobody ran is NOT RUN.

    Args:
        sealed: The decoded documents of the bundle.
        deciding_replays: From `deciding`.
        judgements: Record id → judgement.
        ends: What the end tests said.
    """
    stated = {claim.name: claim for claim in sealed.policy.claims}
    names = dict.fromkeys([*sealed.claims, *stated])
    results = []
    for name in names:
        claim = stated.get(name, Claim(name=name))
        judged = [
            judgements[one.id] for one in deciding_replays if one.record.claim == name
        ]
        bands = next((one.bands for one in judged if one.bands), ())
        tested = tuple(one for one in ends if one.claim == name)
        verdicts = [Verdict(one.verdict) for one in judged]
        if any(one.result == "other" for one in tested):
            verdicts.append(Verdict.NOT_REPRODUCED)
        elif any(one.result == "not-judged" for one in tested):
            verdicts.append(Verdict.INCOMPLETE)
        results.append(
            ClaimResult(
                name=name,
                statement=claim.statement,
                result=worst(verdicts).value if verdicts else NOT_RUN,
                judged=any(band.result in ("within", "outside") for band in bands)
                or any(one.result != "not-judged" for one in tested),
                bands=bands,
                ends=tested,
                minutes=claim.minutes,
                disk_bytes=claim.disk_bytes,
            )
        )
    return tuple(results)


def check_claims(
    sealed: Sealed,
    chosen: Sequence[Replay],
    judgements: Mapping[str, Judgement],
    *,
    advice: str,
) -> Iterator[Finding]:
    """Yield whether anybody replayed the bundle, and every claim of it.

    Args:
        sealed: The decoded documents of the bundle.
        chosen: The judged replays, newest last.
        judgements: Record id → judgement.
        advice: How to replay the bundle.
    """
    if not chosen:
        reason = "nobody has replayed it"
        yield finding("replayed", "not-checked", reason, advice=advice)
        return
    yield _replayed(chosen)
    counted = deciding(sealed, chosen)
    yield from _each_claim(sealed, counted)
    yield from _disagreement(chosen, judgements, counted)


def _replayed(chosen: Sequence[Replay]) -> Finding:
    """Return whether any record is of a run that came to its end."""
    finished = sum(is_finished(one.record) for one in chosen)
    if not finished:
        reason = "no replay came to its end, so nothing was run again"
        return finding("replayed", "not-checked", reason, where=chosen[-1].id)
    others = len(chosen) - finished
    note = f"; {others} more came to no end" if others else ""
    return finding("replayed", "pass", f"{finished} replay records{note}")


def _each_claim(sealed: Sealed, counted: Sequence[Replay]) -> Iterator[Finding]:
    """Yield for each claim whether a measured pass of it came to its end."""
    done = {one.record.claim for one in counted}
    measured = [one.record for one in counted if one.record.pass_name == "measured"]
    started = {record.claim for record in measured}
    finished = {record.claim for record in measured if is_finished(record)}
    needed = required(sealed)
    for claim in sealed.claims:
        if claim in finished:
            yield finding("claim-replayed", "pass", where=claim)
        elif claim in started:
            reason = f"the replay of the claim {claim!r} did not come to its end"
            yield finding("claim-replayed", "not-checked", reason, where=claim)
        elif claim in done:
            reason = f"of the claim {claim!r} no measured pass was replayed"
            yield finding("claim-replayed", "not-checked", reason, where=claim)
        elif claim in needed:
            reason = f"the claim {claim!r} was not replayed"
            yield finding("claim-replayed", "not-checked", reason, where=claim)


def _disagreement(
    chosen: Sequence[Replay],
    judgements: Mapping[str, Judgement],
    counted: Sequence[Replay],
) -> Iterator[Finding]:
    """Warn if an older or other replay of a reproduced claim says no."""
    decisive = {one.id for one in counted}
    for claim in dict.fromkeys(one.record.claim for one in counted):
        verdicts = [
            judgements[one.id].verdict for one in counted if one.record.claim == claim
        ]
        if not all(verdict in POSITIVE for verdict in verdicts):
            continue
        others = [
            one
            for one in chosen
            if one.record.claim in (claim, STAND_IN)
            and one.id not in decisive
            and judgements[one.id].verdict in _NEGATIVE
        ]
        if not others:
            yield finding("replays-disagree", "pass", where=claim)
        for one in others:
            yield finding(
                "replays-disagree",
                "warn",
                f"this other replay of claim {claim!r} is {judgements[one.id].verdict}",
                where=one.id,
            )
