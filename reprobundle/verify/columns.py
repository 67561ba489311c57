"""How the cells of one column stand to the reference."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np  # noqa: TID253 - this module is imported only to compare numbers

from reprobundle.format.findings import ArrayComparison
from reprobundle.format.policy import Tolerance
from reprobundle.outputs.cells import Cell, same_cells
from reprobundle.outputs.text import printable
from reprobundle.verify.compare_arrays import describe
from reprobundle.verify.deviation import Deviation
from reprobundle.verify.drift import Series

Place = tuple[int, ...]


class Column:
    """Everything about one column so far."""

    def __init__(
        self, name: str, tolerance: Tolerance, *, scale: float, expected: int
    ) -> None:
        self.name = name
        self.cells = self.differing = self.unequal = 0
        self.first: tuple[int, str, str] | None = None
        self.kinds: set[str] = set()
        self.deviation = Deviation(tolerance, elements=expected, scale=scale)
        self.series = Series(tolerance, scale)

    def add(self, pairs: Sequence[tuple[Cell, Cell]]) -> None:
        """Add cells as (reference, replay), in order."""
        floats: list[tuple[int, Cell, Cell]] = []
        for ordinal, (b, a) in enumerate(pairs, self.cells):
            self.kinds.add(b.kind)
            if b.kind == a.kind == "number":
                floats.append((ordinal, b, a))
                self.unequal += b.text != a.text
            elif not same_cells(b, a):
                self._differ(ordinal, b, a)
        self.cells += len(pairs)
        if floats:
            numbers, references, replays = zip(*floats, strict=True)
            b_values, a_values = (
                np.array([cell.value for cell in cells], dtype="float64")
                for cells in (references, replays)
            )
            self.deviation.add(b_values, a_values, np.array(numbers))
            self.series.add(b_values, a_values)

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
            drift=() if equal else self.series.segments(),
            problem=self._exact_problem() or measured.problem,
        )


def _place(ordinal: int | None, places: Sequence[Place] | None) -> Place | None:
    if ordinal is None:
        return None
    return places[ordinal] if places is not None else (ordinal,)


def _replace(comparison: ArrayComparison, **changes: object) -> ArrayComparison:
    return msgspec.structs.replace(comparison, **changes)


def _shown(cell: Cell) -> str:
    """Return the cell as short text that tells a number from the same text."""
    return printable(f'"{cell.text}"' if cell.kind == "text" else cell.text)
