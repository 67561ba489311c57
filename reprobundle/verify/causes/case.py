"""What a rule about likely causes may look at, and what a rule is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from reprobundle.format.findings import (
    EnvironmentDifference,
    Finding,
    OutputComparison,
)
from reprobundle.format.record import Record


class Case(NamedTuple):
    """Everything a rule may look at.

    Attributes:
        bundle: Name of the bundle file, quoted for a shell.
        reference, replay: Both records.
        comparisons: Their outputs.
        differences: Their environments.
        findings: All findings about the replay.
    """

    bundle: str
    reference: Record
    replay: Record
    comparisons: Sequence[OutputComparison]
    differences: Sequence[EnvironmentDifference]
    findings: Sequence[Finding]

    def found(self, *names: str) -> Finding | None:
        """Return the first finding of one of these kinds that speaks against it."""
        bad = (one for one in self.findings if one.outcome in ("warn", "fail"))
        return next((one for one in bad if one.id in names), None)

    def differs(self, *names: str) -> EnvironmentDifference | None:
        """Return the first environment fact that differs and matches a pattern."""
        found = (
            one
            for pattern in names
            for one in self.differences
            if one.grade == "numeric"
            and fnmatchcase(one.name.removeprefix("end."), pattern)
        )
        return next(found, None)


Seen = tuple[str, str] | None
"""What a rule saw: evidence and command, or nothing."""


class Rule(NamedTuple):
    """One rule: its name, what it says, where that is known from, and its test."""

    id: str
    text: str
    source: str
    test: Callable[[Case], Seen]
