"""Curves that both runs wrote: the numeric columns of their tables, side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import islice
from typing import BinaryIO, NamedTuple

from reprobundle.errors import BundleError, UnreadableOutputError
from reprobundle.format.policy import Policy
from reprobundle.format.record import Output, Record
from reprobundle.outputs.tables import open_table
from reprobundle.verify.content import Content
from reprobundle.verify.rules import ignores

MOST_ROWS = 20_000
MOST_POINTS = 400
MOST_CURVES = 8
SHORTEST = 3
_WHOLE = ("here", "sealed")
# A column that counts the rows is what a curve is drawn over, not a curve.
_COUNTERS = frozenset({"epoch", "step", "iteration", "iter", "batch", "round"})


class Curve(NamedTuple):
    """One column of one table in both runs.

    Attributes:
        output: Name of the table.
        column: Name of the column.
        x_title: What the rows are counted by.
        x: Position of each point, the same on both sides.
        reference, replay: Values; NaN where there is none. `replay` is empty when the
            replay has no such column.
    """

    output: str
    column: str
    x_title: str
    x: tuple[float, ...]
    reference: tuple[float, ...]
    replay: tuple[float, ...]


def find_curves(
    reference: Record,
    replay: Record | None,
    reference_content: Content,
    replay_content: Content | None,
    *,
    policy: Policy,
) -> tuple[Curve, ...]:
    """Return the numeric columns of the tables of `reference`, thinned to be drawn.

    Args:
        reference: The run compared with.
        replay: The run compared; None when it could not be read.
        reference_content: Where the content of `reference` lies.
        replay_content: Where the content of `replay` lies.
        policy: Its ignored columns are no curves.
    """
    others = {one.name: one for one in replay.outputs} if replay else {}
    found: list[Curve] = []
    for output in reference.outputs:
        # Of a sample of rows no curve can be drawn: its rows do not follow each other.
        if output.kind != "table" or output.stored not in _WHOLE:
            continue
        ours = _numbers(output, reference_content.open)
        other = others.get(output.name)
        theirs: dict[str, list[float]] = {}
        if (
            other is not None
            and other.stored in _WHOLE
            and replay_content is not None
            and other.kind == "table"
        ):
            theirs = _numbers(other, replay_content.open)
        is_ignored = ignores(policy, output.name)
        found += _curves(output.name, ours, theirs, lambda key: is_ignored((key,)))  # noqa: B023
    return tuple(found[:MOST_CURVES])


def _numbers(
    output: Output, open_output: Callable[[Output], BinaryIO]
) -> dict[str, list[float]]:
    """Return the columns that hold numbers only; nothing if the table is unreadable."""
    try:
        with open_output(output) as stream, open_table(stream, output.format) as table:
            columns: list[list[float]] = [[] for _ in table.columns]
            for row in islice(table.rows, MOST_ROWS):
                for values, cell in zip(columns, row, strict=True):
                    values.append(_number(cell))
            named = dict(zip(table.columns, columns, strict=True))
    except (BundleError, UnreadableOutputError):
        return {}
    return {name: values for name, values in named.items() if _is_numeric(values)}


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return math.nan


def _is_numeric(values: list[float]) -> bool:
    finite = sum(math.isfinite(value) for value in values)
    return len(values) >= SHORTEST and finite * 2 > len(values)


def _curves(
    name: str,
    ours: dict[str, list[float]],
    theirs: dict[str, list[float]],
    is_ignored: Callable[[str], bool],
) -> Iterator[Curve]:
    counter = next((key for key in ours if key.lower() in _COUNTERS), "")
    for column, values in ours.items():
        if column == counter or is_ignored(column):
            continue
        x = ours[counter] if counter else [float(row) for row in range(len(values))]
        kept = _thinned(len(values))
        other = theirs.get(column, [])
        yield Curve(
            output=name,
            column=column,
            x_title=counter or "row",
            x=tuple(x[at] for at in kept),
            reference=tuple(values[at] for at in kept),
            replay=tuple(
                other[at] if at < len(other) else math.nan for at in kept if other
            ),
        )


def _thinned(count: int) -> list[int]:
    """Return which rows are drawn: all, or evenly spread ones with the last."""
    if count <= MOST_POINTS:
        return list(range(count))
    return [at * (count - 1) // (MOST_POINTS - 1) for at in range(MOST_POINTS)]
