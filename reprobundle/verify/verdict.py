"""The verdict: the most serious consequence of all findings, and why.

Precedence (spec.md, "Verdict"): a bundle that cannot be read or was altered says
nothing else; what was not run cannot be judged; a clear no comes before a gap, a gap
before a warning. Without any consequence the result is reproduced, and the outputs
tell how exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from reprobundle.errors import BadCallError
from reprobundle.format.findings import (
    EXIT_STATUS,
    Finding,
    Judgement,
    OutputComparison,
    Verdict,
)
from reprobundle.verify.items import ITEMS

PRECEDENCE: tuple[Verdict, ...] = (
    Verdict.UNREADABLE,
    Verdict.TAMPERED,
    Verdict.NOT_RUN_HERE,
    Verdict.DIFFERENT_FAILURE,
    Verdict.NOT_REPRODUCED,
    Verdict.INCOMPLETE,
    Verdict.NOT_DECIDABLE_HERE,
    Verdict.PARTIAL,
    Verdict.NOT_YET_REPLAYED,
    Verdict.WITH_WARNINGS,
    Verdict.WITHIN_TOLERANCE,
    Verdict.BIT_IDENTICAL,
    Verdict.INTACT,
)
_RANK = {verdict: rank for rank, verdict in enumerate(PRECEDENCE)}

# What an outcome leads to where the table of checks names nothing: nothing but a pass
# or a stated gap may go unnoticed.
_OTHERWISE = {"fail": Verdict.INCOMPLETE, "warn": Verdict.WITH_WARNINGS}
_GOOD = ("bit-identical", "within-tolerance")


class Decision(NamedTuple):
    """A verdict with its exit status and its reasons, most important first."""

    verdict: Verdict
    reasons: tuple[str, ...]

    @property
    def exit_status(self) -> int:
        """The status that belongs to the verdict."""
        return EXIT_STATUS[self.verdict]


def consequence(found: Finding) -> Verdict | None:
    """Return the verdict a finding leads to, or None if it takes nothing away."""
    if found.allowed:
        return None
    item = ITEMS[found.id]
    return item.consequence.get(found.outcome, _OTHERWISE.get(found.outcome))


def apply_allowances(
    findings: Iterable[Finding], allow: Sequence[str]
) -> tuple[Finding, ...]:
    """Mark the warnings that the caller accepts by name.

    CPU fallback, stand-in devices and reduced input are never marked: no option turns
    them into a plain success.

    Args:
        findings: All findings.
        allow: Ids of findings.

    Raises:
        BadCallError: A name is no finding that can warn.
    """
    check_allowances(allow)
    return tuple(_allowed(found, allow) for found in findings)


def _allowed(found: Finding, allow: Sequence[str]) -> Finding:
    if found.outcome != "warn" or found.id not in allow:
        return found
    if not ITEMS[found.id].allowable:
        advice = f"{found.id} can never be allowed"
        return msgspec.structs.replace(found, advice=advice)
    return msgspec.structs.replace(found, allowed=True)


def check_allowances(allow: Sequence[str]) -> None:
    """Refuse names that no warning has.

    Raises:
        BadCallError: A name is no finding that can warn.
    """
    names = sorted(
        name
        for name, item in ITEMS.items()
        if "warn" in item.consequence and item.allowable
    )
    for name in allow:
        if name not in ITEMS or "warn" not in ITEMS[name].consequence:
            raise BadCallError(
                f"there is no warning {name!r} to allow",
                advice=f"choose from {', '.join(names)}",
            )


def decide(findings: Iterable[Finding], base: Verdict) -> Decision:
    """Return the verdict over `findings`.

    Args:
        findings: All that count, allowances applied.
        base: The verdict if no finding takes anything away.
    """
    led = [(found, consequence(found)) for found in findings]
    verdicts = [verdict for _, verdict in led if verdict is not None]
    verdict = worst([base, *verdicts])
    ranked = sorted(
        ((found, lead) for found, lead in led if lead is not None),
        key=lambda pair: _RANK[pair[1]],
    )
    reasons = [_sentence(found) for found, _ in ranked]
    reasons += [f"allowed: {_sentence(found)}" for found, _ in led if found.allowed]
    return Decision(verdict=verdict, reasons=tuple(dict.fromkeys(reasons)))


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict of highest precedence."""
    return min(verdicts, key=_RANK.__getitem__)


def base_of(comparisons: Sequence[OutputComparison], *, same_error: bool) -> Verdict:
    """Return how exactly a result is reproduced if nothing speaks against it.

    Args:
        comparisons: All outputs of one replay.
        same_error: Whether an expected failure, if there was one, has the very same
            message.
    """
    results = {item.result for item in comparisons if item.result in _GOOD}
    if results <= {"bit-identical"} and same_error:
        return Verdict.BIT_IDENTICAL
    return Verdict.WITHIN_TOLERANCE


def _sentence(found: Finding) -> str:
    place = f" ({found.where})" if found.where else ""
    return f"{found.id}{place}: {found.reason}"


def with_replays(own: Decision, judged: Sequence[Judgement]) -> Decision:
    """Return the decision about a bundle with the reasons of its replays.

    Every reason stands once; where a replay has the bundle's verdict, its reasons come
    first.

    Args:
        own: From the findings about the bundle, and the worst verdict of `judged`.
        judged: The replays that decide.
    """
    decisive = [
        reason
        for one in judged
        if one.verdict == own.verdict.value
        for reason in one.reasons
    ]
    others = [reason for one in judged for reason in one.reasons]
    reasons = dict.fromkeys([*decisive, *own.reasons, *others])
    return Decision(own.verdict, tuple(reasons))
