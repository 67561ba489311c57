"""How the cells of a table or the leaves of a document stand to the reference.

Cells are gathered by column. Whole numbers, texts, truth values and empty places are
compared exactly; decimal numbers under the tolerance of `number`, with the same
statistics as an array. A change of type is a difference, with one exception: a whole
number written as a decimal of equal value (``1`` and ``1.0``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import BinaryIO, NamedTuple, TypeVar

import numpy as np  # noqa: TID253 - this module is imported only to compare numbers

from reprobundle.format.findings import ArrayComparison
from reprobundle.format.policy import Tolerance
from reprobundle.outputs.cells import Cell, read_cell
from reprobundle.outputs.documents import Leaf, read_leaves
from reprobundle.outputs.norms import Magnitude
from reprobundle.outputs.tables import Table, open_table
from reprobundle.verify.columns import Column, Place

BLOCK_ROWS = 4096
BLOCK_CELLS = 1 << 18
"""Cells of a block at most, where rows are long."""

BLOCK_CHARACTERS = 8 << 20

Ignore = Callable[[Sequence[str]], bool]
Item = TypeVar("Item")


class Cells(NamedTuple):
    """The comparison of a table or document, column by column.

    Attributes:
        parts: One for each column, and one for each thing that only one side has.
        ignored: Columns left out by rule.
        compared: Number of compared cells.
    """

    parts: tuple[ArrayComparison, ...]
    ignored: tuple[str, ...]
    compared: int


def _lonely(name: str, count: int, problem: str) -> ArrayComparison:
    return ArrayComparison(
        name=name,
        dtype="cells",
        elements=0,
        equal=False,
        outside=max(1, count),
        problem=problem,
    )


# --- tables --------------------------------------------------------------------------


def compare_tables(
    open_reference: Callable[[], BinaryIO],
    open_replay: Callable[[], BinaryIO],
    file_formats: tuple[str, str],
    *,
    tolerance: Tolerance,
    ignored: Ignore,
    rows: int = 0,
    first_rows: int | None = None,
) -> Cells:
    """Return how a replayed table stands to its reference.

    Both are read row by row; the reference a second time first if the tolerance has
    a floor, whose scale is that of the column.

    Args:
        open_reference: Opens the reference's content anew.
        open_replay: Opens the replay's content.
        file_formats: ``csv`` or ``tsv``, reference and replay.
        tolerance: The rule for decimal numbers.
        ignored: Tells whether the column of that name is left out.
        rows: Number of rows as recorded; it only sets how quantiles are sampled.
        first_rows: Compare the cells of so many rows; of the others only the count.

    Raises:
        UnreadableOutputError: One of them is no table.
    """
    scales: dict[str, float] = {}
    if tolerance.floor:
        with open_reference() as stream, open_table(stream, file_formats[0]) as table:
            scales = _column_scales(table)
    with (
        open_reference() as reference_stream,
        open_replay() as replay_stream,
        open_table(reference_stream, file_formats[0]) as reference,
        open_table(replay_stream, file_formats[1]) as replay,
    ):
        columns = _shared_columns(reference, replay, tolerance, scales, ignored, rows)
        row_problem = _compare_rows(reference, replay, columns, first_rows)
        return _gathered(reference, replay, columns, row_problem, ignored)


def _column_scales(table: Table) -> dict[str, float]:
    magnitudes = [Magnitude() for _ in table.columns]
    for rows in _in_blocks(table.rows, len(table.columns), _characters):
        for place, magnitude in enumerate(magnitudes):
            cells = (read_cell(row[place]) for row in rows)
            magnitude.add(np.array([c.value for c in cells if c.kind == "number"]))
    roots = (magnitude.root_mean_square for magnitude in magnitudes)
    return dict(zip(table.columns, roots, strict=True))


def _shared_columns(
    reference: Table,
    replay: Table,
    tolerance: Tolerance,
    scales: dict[str, float],
    ignored: Ignore,
    rows: int,
) -> list[Column]:
    shared = set(replay.columns)
    return [
        Column(name, tolerance, scale=scales.get(name, 0.0), expected=rows)
        for name in reference.columns
        if name in shared and not ignored((name,))
    ]


def _gathered(
    reference: Table,
    replay: Table,
    columns: list[Column],
    row_problem: list[ArrayComparison],
    ignored: Ignore,
) -> Cells:
    known, replayed = set(reference.columns), set(replay.columns)
    kept = [name for name in reference.columns if not ignored((name,))]
    extra = [
        name for name in replay.columns if name not in known and not ignored((name,))
    ]
    shared = [column.name for column in columns]
    among = set(shared)
    parts = [column.result() for column in columns]
    parts += [
        _lonely(name, 1, "column missing in the replay")
        for name in kept
        if name not in replayed
    ]
    parts += [_lonely(name, 1, "column not in the reference") for name in extra]
    if [name for name in replay.columns if name in among] != shared:
        parts.append(_lonely("", 1, "the columns stand in another order"))
    parts += row_problem
    return Cells(
        tuple(parts),
        tuple(sorted(name for name in known | replayed if ignored((name,)))),
        sum(column.cells for column in columns),
    )


def _compare_rows(
    reference: Table, replay: Table, columns: list[Column], first_rows: int | None
) -> list[ArrayComparison]:
    at = {name: place for place, name in enumerate(reference.columns)}
    other_at = {name: place for place, name in enumerate(replay.columns)}
    counts = [0, 0]
    for block in _row_blocks(reference, replay):
        pairs = [(b, a) for b, a in block if b is not None and a is not None]
        if first_rows is not None:
            pairs = pairs[: max(0, first_rows - counts[0])]
        counts[0] += sum(b is not None for b, _ in block)
        counts[1] += sum(a is not None for _, a in block)
        for column in columns:
            left, right = at[column.name], other_at[column.name]
            column.add([(read_cell(b[left]), read_cell(a[right])) for b, a in pairs])
    if counts[0] == counts[1]:
        return []
    problem = f"{counts[1]:,} rows, expected {counts[0]:,}"
    return [_lonely("", abs(counts[0] - counts[1]), problem)]


Row = list[str] | None


def _row_blocks(reference: Table, replay: Table) -> Iterator[list[tuple[Row, Row]]]:
    return _in_blocks(
        zip_longest(reference.rows, replay.rows),
        len(reference.columns),
        lambda pair: sum(map(_characters, pair)),
    )


def _characters(row: Row) -> int:
    return sum(map(len, row or ()))


def _in_blocks(
    rows: Iterable[Item], columns: int, characters: Callable[[Item], int]
) -> Iterator[list[Item]]:
    """Yield rows in blocks of bounded size, however many and long their cells are."""
    most = max(1, min(BLOCK_ROWS, BLOCK_CELLS // max(1, columns)))
    block: list[Item] = []
    held = 0
    for row in rows:
        block.append(row)
        held += characters(row)
        if len(block) == most or held > BLOCK_CHARACTERS:
            yield block
            block, held = [], 0
    if block:
        yield block


# --- documents -----------------------------------------------------------------------


def compare_documents(
    reference: BinaryIO,
    replay: BinaryIO,
    file_formats: tuple[str, str],
    *,
    tolerance: Tolerance,
    ignored: Ignore,
    first_rows: int | None = None,
) -> Cells:
    """Return how a replayed document stands to its reference.

    Args:
        reference: The reference's content.
        replay: The replay's content.
        file_formats: ``json`` or ``jsonl``, reference and replay.
        tolerance: The rule for decimal numbers.
        ignored: Tells whether the leaf below these keys is left out.
        first_rows: Of leaves whose first list index is that or more compare only how
            many there are.

    Raises:
        UnreadableOutputError: One of them is no such document.
    """
    left_out: set[str] = set()
    later: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    sides = zip((reference, replay), file_formats, later, strict=True)
    leaves, replayed = (
        _kept(read_leaves(stream, file_format), ignored, left_out, first_rows, counts)
        for stream, file_format, counts in sides
    )
    parts = list(_matched(leaves, replayed, tolerance))
    compared = sum(part.elements for part in parts)
    parts += _unmatched(leaves, replayed, "missing in the replay")
    parts += _unmatched(replayed, leaves, "not in the reference")
    parts += _other_lengths(*later)
    return Cells(tuple(parts), tuple(sorted(left_out)), compared)


Leaves = dict[tuple[str, Place], Cell]


def _kept(
    leaves: Iterable[Leaf],
    ignored: Ignore,
    left_out: set[str],
    first_rows: int | None,
    later: Counter[str],
) -> Leaves:
    """Return the leaves to compare; of those of later rows only the number counts."""
    kept: Leaves = {}
    for leaf in leaves:
        if ignored(leaf.keys) or ignored((leaf.column,)):
            left_out.add(leaf.column)
        elif first_rows is not None and leaf.place and leaf.place[0] >= first_rows:
            later[leaf.column] += 1
        else:
            kept[leaf.column, leaf.place] = leaf.cell
    return kept


def _other_lengths(
    expected: Counter[str], got: Counter[str]
) -> Iterator[ArrayComparison]:
    for name in {**expected, **got}:
        if expected[name] != got[name]:
            problem = f"{got[name]:,} values in later rows, expected {expected[name]:,}"
            yield _lonely(name, abs(expected[name] - got[name]), problem)


def _matched(
    leaves: Leaves, replayed: Leaves, tolerance: Tolerance
) -> Iterator[ArrayComparison]:
    columns: dict[str, list[tuple[Place, Cell, Cell]]] = {}
    for (name, place), cell in leaves.items():
        other = replayed.get((name, place))
        if other is not None:
            columns.setdefault(name, []).append((place, cell, other))
    for name, triples in columns.items():
        magnitude = Magnitude()
        magnitude.add(np.array([b.value for _, b, _ in triples if b.kind == "number"]))
        scale = magnitude.root_mean_square
        column = Column(name, tolerance, scale=scale, expected=len(triples))
        column.add([(b, a) for _, b, a in triples])
        yield column.result([place for place, _, _ in triples])


def _unmatched(leaves: Leaves, other: Leaves, problem: str) -> list[ArrayComparison]:
    counts: dict[str, int] = {}
    for name, place in leaves:
        if (name, place) not in other:
            counts[name] = counts.get(name, 0) + 1
    return [
        _lonely(name, count, f"{count:,} values {problem}")
        for name, count in counts.items()
    ]
