"""What is known about every cell of one column: a digest, counts and moments.

The digest covers what is compared exactly: kinds, whole numbers, texts, and where the
decimal numbers stand, but not which ones. Those are counted and summed up as the
elements of an array are (spec.md, "Sampled rows").
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np  # noqa: TID253 - this module is imported only to read numbers
from blake3 import blake3

from reprobundle.format.record import ColumnSummary
from reprobundle.outputs.cells import Cell, read_cell
from reprobundle.outputs.moments import Moments
from reprobundle.outputs.text import printable

_BLOCK = 4096
# Subsets of what `read_cell` takes for numbers, without choices that a match that fails
# would have to try in turn.
_DECIMAL = re.compile(
    r"[+-]?(?:(?:0|[1-9][0-9]{0,99})\.[0-9]{0,100}|\.[0-9]{1,100})(?:[eE][+-]?[0-9]{1,5})?",
    re.ASCII,
)
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,99}", re.ASCII)
_FINITE = "n;"


class ColumnSums:
    """Everything about one column so far."""

    def __init__(self) -> None:
        self._exact = blake3()
        self._moments = Moments()
        self._waiting: list[float] = []
        self._numbers = 0

    def add_texts(self, texts: Sequence[str]) -> None:
        """Add cells of a table as they are written, in order."""
        if all(map(_DECIMAL.fullmatch, texts)):
            values = np.array([*map(float, texts)])
            if np.isfinite(values).all():
                self._exact.update(_FINITE.encode() * len(texts))
                self._add(values)
                return
        elif all(map(_WHOLE.fullmatch, texts)):
            self._exact.update("".join(f"i{text};" for text in texts).encode())
            return
        self.add_cells(map(read_cell, texts))

    def add_cells(self, cells: Iterable[Cell], place: str = "") -> None:
        """Add cells in order.

        Args:
            cells: The cells.
            place: What tells where they stand, if their number in order does not.
        """
        for cell in cells:
            self._exact.update((place + _token(cell)).encode("utf-8", "surrogatepass"))
            if cell.kind == "number":
                self._waiting.append(float(cell.value))
        if len(self._waiting) >= _BLOCK:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            self._add(np.array(self._waiting))
            self._waiting = []

    def _add(self, values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> None:
        self._numbers += values.size
        self._moments.add(values)

    def summary(self, name: str) -> ColumnSummary:
        """Return what was seen, as the column called `name`."""
        self._flush()
        return ColumnSummary(
            name=printable(name),
            exact=self._exact.hexdigest(),
            numbers=self._moments.summary(name, "float64", (self._numbers,)),
        )


def _token(cell: Cell) -> str:
    """Return what stands for a cell in the digest."""
    if cell.kind == "number":
        return _FINITE if np.isfinite(cell.value) else f"{cell.value};"
    if cell.kind == "integer":
        return f"i{cell.value};"
    return f"{cell.kind}:{len(cell.text)}:{cell.text};"
