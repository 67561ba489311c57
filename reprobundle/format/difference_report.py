"""What `diff` says about two runs: what was done differently, and what came of it."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from reprobundle.format.findings import OutputComparison

DIFFERENCE_SCHEMA: Final = "reprobundle/difference/1"

Axis = Literal[
    "code",
    "command",
    "data",
    "seed",
    "batch",
    "shape",
    "precision",
    "device",
    "fallback",
    "threads",
    "version",
    "architecture",
    "allocator",
    "keeping",
    "other",
]


class Change(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing that was not the same in both runs.

    Attributes:
        axis: What kind of change it is; the one-change rule counts these.
        name: Fact, argument or file concerned.
        left, right: Both sides in one line each.
    """

    axis: Axis
    name: str
    left: str
    right: str


class Effect(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One result of a run beside the other's, outputs aside.

    Attributes:
        name: ``ending``, ``peak memory``, ``median forward`` and so on.
        left, right: Both sides in one line each.
        ratio: Right by left where both are amounts; None elsewhere.
        not_comparable: Why the two sides cannot be compared; empty if they can.
    """

    name: str
    left: str
    right: str
    ratio: float | None = None
    not_comparable: str = ""


class Conclusion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the pair of runs shows, by a stated rule.

    Attributes:
        rule: Stable name of the rule.
        text: The conclusion, one sentence.
        evidence: What it rests on.
    """

    rule: str
    text: str
    evidence: tuple[str, ...] = ()


class DecisionRow(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """One row of a decision table: what each side does, and what that means."""

    left: str
    right: str
    means: str
    holds: bool = False


class DecisionTable(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """A table of what a pair of runs can show, and the row that this pair is in.

    Attributes:
        requirement: ``C21`` (shapes) or ``C30`` (what is kept), see docs/diff.md.
        title: What it decides.
        rows: All rows; at most one holds.
        undecided: Why none holds; empty if one does.
        evidence: What it rests on, each side's memory log first.
    """

    requirement: Literal["C21", "C30"]
    title: str
    rows: tuple[DecisionRow, ...]
    undecided: str = ""
    evidence: tuple[str, ...] = ()


class DifferenceReport(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """Two runs side by side.

    Attributes:
        left, right: Names of the runs, as given.
        changes: What was done differently.
        axes: The kinds of change, each once; more than one breaks the one-change rule.
        outputs: How the outputs of the right run stand to those of the left one.
        effects: How the runs went.
        conclusions: What the pair shows.
        tables: Decision tables that the pair belongs to.
        exit_status: 0 when neither changes nor results differ, else 10.
    """

    schema: Literal["reprobundle/difference/1"] = DIFFERENCE_SCHEMA
    left: str
    right: str
    changes: tuple[Change, ...]
    axes: tuple[Axis, ...]
    outputs: tuple[OutputComparison, ...]
    effects: tuple[Effect, ...]
    conclusions: tuple[Conclusion, ...]
    tables: tuple[DecisionTable, ...] = ()
    exit_status: int
