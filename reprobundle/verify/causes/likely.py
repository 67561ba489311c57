"""Why a replay probably differs, and the one change to try next.

Each rule looks for one thing in the two records, states what it saw as evidence, and
cites where it is known that this changes results. A rule explains, it never judges:
causes are no findings and change no verdict.
"""

from __future__ import annotations

from collections.abc import Iterable

from reprobundle.format.judged import Cause
from reprobundle.verify.causes.case import Case
from reprobundle.verify.causes.rules import RULES

MOST_CAUSES = 4


def likely_causes(case: Case) -> tuple[Cause, ...]:
    """Return the likely causes of what differs, the one to try first in front.

    Nothing differs if every output is bit for bit equal, no check failed, and the
    replay did not stop.
    """
    if not _something_differs(case):
        return ()
    seen = ((rule, rule.test(case)) for rule in RULES)
    causes = [
        Cause(
            id=rule.id,
            text=rule.text,
            evidence=result[0],
            source=rule.source,
            command=result[1],
        )
        for rule, result in seen
        if result is not None
    ]
    return tuple(causes[:MOST_CAUSES])


def _something_differs(case: Case) -> bool:
    if case.replay.outcome.stop or any(one.outcome == "fail" for one in case.findings):
        return True
    return any(
        not item.excluded and item.result != "bit-identical"
        for item in case.comparisons
    )


def next_change(causes: Iterable[Cause]) -> str:
    """Return the command of the first cause that has one, or an empty string."""
    return next((cause.command for cause in causes if cause.command), "")
