"""The two decision tables about growing memory, answered from a pair of runs.

C21: constant shapes against changing ones. C30: everything kept against only what is
needed, the computation being the same. A side whose memory could not be classified
leaves the table undecided; nothing is guessed from the other one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from reprobundle.format.difference_report import (
    Axis,
    DecisionRow,
    DecisionTable,
)
from reprobundle.format.findings import OutputComparison
from reprobundle.format.record import Record
from reprobundle.verify.memory import GROWING, SETTLED

Course = Literal["grows", "does not grow", "unknown"]

_GOOD = ("bit-identical", "within-tolerance")
# Growth that falls to this share of what it was has fallen.
FALLEN = 0.5

_SHAPES: tuple[tuple[str, str, str], ...] = (
    (
        "does not grow",
        "grows",
        "the growth comes with the shapes: graph and allocator caches are the lead",
    ),
    ("grows", "grows", "references that are kept, or the workload itself"),
    ("does not grow", "does not grow", "neither grows: there is nothing to explain"),
    (
        "grows",
        "does not grow",
        "only constant shapes grow, which no cause explains: repeat both",
    ),
)
_KEEPING: tuple[tuple[str, str, str], ...] = (
    ("grows", "falls or stops", "Python references or the autograd graph keep memory"),
    ("grows", "unchanged", "caches, shapes, the size itself or fallbacks"),
    ("does not grow", "any", "the full run does not grow: there is nothing to explain"),
)


def find_tables(
    left: Record,
    right: Record,
    axes: Sequence[Axis],
    outputs: Sequence[OutputComparison],
) -> Iterator[DecisionTable]:
    """Yield the tables that a pair of runs belongs to."""
    asked = _asked(left, "shapes"), _asked(right, "shapes")
    if set(asked) == {"constant", "dynamic"}:
        pair = (left, right) if asked[0] == "constant" else (right, left)
        yield _shapes(*pair, axes)
    words = _asked(left, "round") or "full", _asked(right, "round") or "full"
    if set(words) == {"full", "minimal"}:
        pair = (left, right) if words[0] == "full" else (right, left)
        yield _keeping(*pair, axes, outputs)


def _shapes(constant: Record, dynamic: Record, axes: Sequence[Axis]) -> DecisionTable:
    sides = course_of(constant), course_of(dynamic)
    undecided = _not_one(axes, "shape") or _not_obeyed(constant, dynamic)
    return _table(
        "C21",
        "constant shapes against changing ones",
        _SHAPES,
        sides,
        undecided or _unknown(constant, dynamic),
        evidence=(
            *_evidence("constant", constant),
            *_evidence("dynamic", dynamic),
        ),
    )


def _keeping(
    full: Record,
    minimal: Record,
    axes: Sequence[Axis],
    outputs: Sequence[OutputComparison],
) -> DecisionTable:
    course = course_of(full)
    after = "any" if course != "grows" else _fall(full, minimal)
    return _table(
        "C30",
        "everything kept against only what is needed",
        _KEEPING,
        (course, after),
        _not_one(axes, "keeping")
        or _not_same(full, minimal, outputs)
        or _unknown(full, minimal),
        evidence=(*_evidence("full", full), *_evidence("minimal", minimal)),
    )


def _table(
    requirement: Literal["C21", "C30"],
    title: str,
    rows: Sequence[tuple[str, str, str]],
    sides: tuple[str, str],
    undecided: str,
    *,
    evidence: tuple[str, ...],
) -> DecisionTable:
    return DecisionTable(
        requirement=requirement,
        title=title,
        rows=tuple(
            DecisionRow(
                left=one,
                right=other,
                means=means,
                holds=not undecided and (one, other) == sides,
            )
            for one, other, means in rows
        ),
        undecided=undecided,
        evidence=evidence,
    )


def course_of(record: Record) -> Course:
    """Return whether the memory of a run grows over the rounds of its loop."""
    if record.memory.course in GROWING:
        return "grows"
    return "does not grow" if record.memory.course in SETTLED else "unknown"


def _fall(full: Record, minimal: Record) -> str:
    if course_of(minimal) == "does not grow":
        return "falls or stops"
    fallen = _slope(minimal) <= FALLEN * _slope(full)
    return "falls or stops" if fallen else "unchanged"


def _slope(record: Record) -> float:
    """Return the steepest growth of any counter, in bytes a round."""
    slopes = [
        float(one.bytes_per_round)
        for one in record.memory.growth
        if one.kind in GROWING
    ]
    return max(slopes, default=0.0)


def _not_one(axes: Sequence[Axis], axis: Axis) -> str:
    others = [one for one in axes if one != axis]
    return f"more than one thing was changed: {', '.join(axes)}" if others else ""


def _not_obeyed(constant: Record, dynamic: Record) -> str:
    """Return why the shapes did not go as asked; empty if they did."""
    counts = constant.memory.distinct_shapes, dynamic.memory.distinct_shapes
    if not all(counts):
        return "the shapes that the model was called with were not seen on both sides"
    if counts[1] <= counts[0]:
        return (
            f"the command did not change its shapes: {counts[0]} different ones when "
            f"constant, {counts[1]} when dynamic"
        )
    return ""


def _not_same(
    full: Record, minimal: Record, outputs: Sequence[OutputComparison]
) -> str:
    """Return why the computation was not the same; empty if it was."""
    there = [one for one in outputs if not one.excluded and one.result != "missing"]
    bad = [one.name for one in there if one.result not in _GOOD]
    if bad:
        return f"the computation was not the same: {bad[0]} differs"
    if not there:
        return "the runs share no output, so nothing shows the same computation"
    steps = _steps(full), _steps(minimal)
    if steps[0] != steps[1]:
        return f"the computation was not the same: {steps[0]} and {steps[1]} steps"
    return ""


def _steps(record: Record) -> int:
    return next((one.count for one in record.phases if one.name == "optimizer"), 0)


def _unknown(*records: Record) -> str:
    for record in records:
        if course_of(record) == "unknown":
            why = next((one.reason for one in record.memory.growth if one.reason), "")
            return (
                f"a side's memory is {record.memory.course}{f': {why}' if why else ''}"
            )
    return ""


def _evidence(side: str, record: Record) -> Iterator[str]:
    memory = record.memory
    yield (
        f"{side}: {memory.course}, {memory.distinct_shapes} input shapes, "
        f"{memory.samples} samples, {memory.with_pressure} with memory pressure"
    )
    for one in memory.growth:
        rate = f" by {float(one.bytes_per_round):,.0f} bytes a {memory.rounds}"
        yield f"{side}: {one.counter} {one.kind}{rate if one.kind in GROWING else ''}"
    if record.memory.peak_device_bytes.unknown:
        reason = record.memory.peak_device_bytes.unknown
        yield f"{side}: no device counters (current, driver): {reason}"


def _asked(record: Record, name: str) -> str:
    fact = record.environment.get(f"asked.{name}")
    return str(fact.value) if fact is not None and fact.value is not None else ""
