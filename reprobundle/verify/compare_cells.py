"""How the cells of a table or the leaves of a document stand to the reference.

Cells are gathered by column. Whole numbers, texts, truth values and empty places are
compared exactly; decimal numbers under the tolerance of `number`, with the same
statistics as an array. A change of type is a difference, with one exception: a whole
number written as a decimal of equal value (``1`` and ``1.0``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, zip_longest
from typing import BinaryIO, NamedTuple

import numpy as np  # noqa: TID253 - this module is imported only to compare numbers

from reprobundle.format.findings import ArrayComparison
from reprobundle.format.policy import Tolerance
from reprobundle.outputs.cells import Cell, read_cell
from reprobundle.outputs.documents import Leaf, read_leaves
from reprobundle.outputs.norms import Magnitude
from reprobundle.outputs.tables import Table, open_table
from reprobundle.outputs.text import printable
from reprobundle.verify.compare_arrays import describe
from reprobundle.verify.deviation import Deviation

BLOCK_ROWS = 4096

Place = tuple[int, ...]
Ignore = Callable[[Sequence[str]], bool]


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


class _Column:
    """Everything about one column so far."""

    def __init__(
        self, name: str, tolerance: Tolerance, *, scale: float, expected: int
    ) -> None:
        self.name = name
        self.cells = self.differing = self.unequal = 0
        self.first: tuple[int, str, str] | None = None
        self.kinds: set[str] = set()
        self.deviation = Deviation(tolerance, elements=expected, scale=scale)

    def add(self, pairs: Sequence[tuple[Cell, Cell]]) -> None:
        """Add cells as (reference, replay), in order."""
        floats: list[tuple[int, Cell, Cell]] = []
        for ordinal, (b, a) in enumerate(pairs, self.cells):
            self.kinds.add(b.kind)
            if b.kind == a.kind == "number":
                floats.append((ordinal, b, a))
                self.unequal += b.text != a.text
            elif not _same(b, a):
                self._differ(ordinal, b, a)
        self.cells += len(pairs)
        if floats:
            numbers, references, replays = zip(*floats, strict=True)
            self.deviation.add(
                np.array([cell.value for cell in references], dtype="float64"),
                np.array([cell.value for cell in replays], dtype="float64"),
                np.array(numbers),
            )

    def _differ(self, ordinal: int, b: Cell, a: Cell) -> None:
        self.differing += 1
        if self.first is None:
            self.first = ordinal, _shown(b), _shown(a)

    def result(self, places: Sequence[Place] | None = None) -> ArrayComparison:
        """Return the comparison of the whole column.

        Args:
            places: Place of each cell in the order in which they were added; by
                default the n-th cell stands in row n.
        """
        if "number" in self.kinds:
            return self._with_floats(places)
        ordinal, expected, got = self.first or (None, "", "")
        return ArrayComparison(
            name=self.name,
            dtype=self._dtype(),
            elements=self.cells,
            equal=not self.differing,
            outside=self.differing,
            worst_index=_place(ordinal, places),
            expected=expected,
            got=got,
            problem=self._exact_problem(),
        )

    def _dtype(self) -> str:
        return next(iter(self.kinds)) if len(self.kinds) == 1 else "mixed"

    def _exact_problem(self) -> str:
        if not self.differing:
            return ""
        kind = self._dtype()
        return f"{self.differing:,} of {self.cells:,} cells differ ({kind}, exact)"

    def _with_floats(self, places: Sequence[Place] | None) -> ArrayComparison:
        deviation = self.deviation
        equal = not (self.differing or self.unequal)
        measured = describe(deviation, self.name, "number", (), equal=True)
        ordinal, expected, got = self.first or (None, "", "")
        if ordinal is None and not equal and deviation.worst is not None:
            ordinal = deviation.worst
            expected, got = deviation.worst_reference, deviation.worst_replay
        return _replace(
            measured,
            elements=self.cells,
            equal=equal,
            outside=measured.outside + self.differing,
            worst_index=_place(ordinal, places),
            expected=expected,
            got=got,
            problem=self._exact_problem() or measured.problem,
        )


def _place(ordinal: int | None, places: Sequence[Place] | None) -> Place | None:
    if ordinal is None:
        return None
    return places[ordinal] if places is not None else (ordinal,)


def _replace(comparison: ArrayComparison, **changes: object) -> ArrayComparison:
    import msgspec

    return msgspec.structs.replace(comparison, **changes)


def _same(b: Cell, a: Cell) -> bool:
    if b.is_numeric and a.is_numeric:
        return b.value == a.value
    return (b.kind, b.text) == (a.kind, a.text)


def _shown(cell: Cell) -> str:
    """Return the cell as short text that tells a number from the same text."""
    return printable(f'"{cell.text}"' if cell.kind == "text" else cell.text)


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
        return _compare_opened(reference, replay, tolerance, scales, ignored, rows)


def _column_scales(table: Table) -> dict[str, float]:
    magnitudes = [Magnitude() for _ in table.columns]
    while rows := list(islice(table.rows, BLOCK_ROWS)):
        for place, magnitude in enumerate(magnitudes):
            cells = (read_cell(row[place]) for row in rows)
            magnitude.add(np.array([c.value for c in cells if c.kind == "number"]))
    roots = (magnitude.root_mean_square for magnitude in magnitudes)
    return dict(zip(table.columns, roots, strict=True))


def _compare_opened(
    reference: Table,
    replay: Table,
    tolerance: Tolerance,
    scales: dict[str, float],
    ignored: Ignore,
    rows: int,
) -> Cells:
    kept = [name for name in reference.columns if not ignored((name,))]
    extra = [
        name
        for name in replay.columns
        if name not in reference.columns and not ignored((name,))
    ]
    shared = [name for name in kept if name in replay.columns]
    columns = [
        _Column(name, tolerance, scale=scales.get(name, 0.0), expected=rows)
        for name in shared
    ]
    row_problem = _compare_rows(reference, replay, columns)
    parts = [column.result() for column in columns]
    parts += [
        _lonely(name, 1, "column missing in the replay")
        for name in kept
        if name not in replay.columns
    ]
    parts += [_lonely(name, 1, "column not in the reference") for name in extra]
    if [name for name in replay.columns if name in shared] != shared:
        parts.append(_lonely("", 1, "the columns stand in another order"))
    parts += row_problem
    names = set(reference.columns) | set(replay.columns)
    return Cells(
        tuple(parts),
        tuple(sorted(name for name in names if ignored((name,)))),
        sum(column.cells for column in columns),
    )


def _compare_rows(
    reference: Table, replay: Table, columns: list[_Column]
) -> list[ArrayComparison]:
    at = {name: place for place, name in enumerate(reference.columns)}
    other_at = {name: place for place, name in enumerate(replay.columns)}
    counts = [0, 0]
    for block in _row_blocks(reference, replay):
        pairs = [(b, a) for b, a in block if b is not None and a is not None]
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
    pairs = zip_longest(reference.rows, replay.rows)
    while block := list(islice(pairs, BLOCK_ROWS)):
        yield block


# --- documents -----------------------------------------------------------------------


def compare_documents(
    reference: BinaryIO,
    replay: BinaryIO,
    file_formats: tuple[str, str],
    *,
    tolerance: Tolerance,
    ignored: Ignore,
) -> Cells:
    """Return how a replayed document stands to its reference.

    Args:
        reference: The reference's content.
        replay: The replay's content.
        file_formats: ``json`` or ``jsonl``, reference and replay.
        tolerance: The rule for decimal numbers.
        ignored: Tells whether the leaf below these keys is left out.

    Raises:
        UnreadableOutputError: One of them is no such document.
    """
    left_out: set[str] = set()
    leaves = _kept(read_leaves(reference, file_formats[0]), ignored, left_out)
    replayed = _kept(read_leaves(replay, file_formats[1]), ignored, left_out)
    parts = list(_matched(leaves, replayed, tolerance))
    compared = sum(part.elements for part in parts)
    parts += _unmatched(leaves, replayed, "missing in the replay")
    parts += _unmatched(replayed, leaves, "not in the reference")
    return Cells(tuple(parts), tuple(sorted(left_out)), compared)


Leaves = dict[tuple[str, Place], Cell]


def _kept(leaves: Iterable[Leaf], ignored: Ignore, left_out: set[str]) -> Leaves:
    kept: Leaves = {}
    for leaf in leaves:
        if ignored(leaf.keys) or ignored((leaf.column,)):
            left_out.add(leaf.column)
        else:
            kept[leaf.column, leaf.place] = leaf.cell
    return kept


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
        column = _Column(name, tolerance, scale=scale, expected=len(triples))
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
