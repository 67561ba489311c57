"""What is known about every cell of one column: a digest, counts and moments.

The digest covers what is compared exactly: kinds, whole numbers, texts, and where the
decimal numbers stand, but not which ones. Those are counted and summed up as the
elements of an array are (spec.md, "Sampled rows").
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

import numpy as np  # noqa: TID253 - this module is imported only to read numbers
from blake3 import blake3

from reprobundle.format.record import ColumnSummary
from reprobundle.outputs.cells import Cell, read_cell
from reprobundle.outputs.moments import Moments
from reprobundle.outputs.text import printable

_BLOCK = 4096
_FINITE = "n;"
# A longer cell is no usual number, and what follows need not count its digits.
_LONGEST_PLAIN = 100
Floats = np.ndarray[tuple[int], np.dtype[np.float64]]

_DIGITS = dict.fromkeys(map(ord, "0123456789"))
# A decimal number of `read_cell` without its digits; which digits it may have is asked
# of all cells at once, each between two line feeds.
_DECIMAL = re.compile(r"[+-]?\.(?:[eE][+-]?)?")
_STARTS_WITH_ZERO = re.compile(r"\n[+-]?0[0-9]")
_LONG_EXPONENT = re.compile(r"[eE][+-]?[0-9]{6}")
_NO_WHOLE_NUMBER = re.compile(r"\n(?:-?0[0-9]|-0\n|-?\n)")
_PERHAPS_A_NUMBER = re.compile(r"\n\s*[-+.0-9nNiI]")


class ColumnSums:
    """Everything about one column so far."""

    def __init__(self) -> None:
        self._exact = blake3()
        self._moments = Moments()
        self._tokens: list[str] = []
        self._waiting: list[float] = []
        self._numbers = 0

    def add_texts(self, texts: Sequence[str]) -> None:
        """Add cells of a table as they are written, in order.

        A block of one usual kind is taken as a whole; the rest is read cell by cell.
        """
        joined = "\n" + "\n".join(texts) + "\n"
        if (
            texts
            and joined.count("\n") == len(texts) + 1
            and self._takes(texts, joined)
        ):
            return
        known = {text: read_cell(text) for text in set(texts)}
        self.add_cells(map(known.__getitem__, texts))

    def _takes(self, texts: Sequence[str], joined: str) -> bool:
        """Add the cells if they are all whole numbers, all decimal, or all text.

        Args:
            texts: The cells, none with a line feed.
            joined: The same, a line feed before and after each.
        """
        if not _PERHAPS_A_NUMBER.search(joined):
            self._hash("".join([f"text:{len(text)}:{text};" for text in texts]))
            return True
        if not joined.isascii() or max(map(len, texts)) > _LONGEST_PLAIN:
            return False
        bare = joined.translate(_DIGITS)
        if _are_whole(joined, bare):
            self._hash("i" + joined[1:-1].replace("\n", ";i") + ";")
            return True
        values = _decimals(texts, joined, bare)
        if values is None:
            return False
        self._hash(_FINITE * len(texts))
        self._add(values)
        return True

    def add_cells(self, cells: Iterable[Cell], place: str = "") -> None:
        """Add cells in order.

        Args:
            cells: The cells.
            place: What tells where they stand, if their number in order does not.
        """
        for cell in cells:
            self._tokens.append(place + _token(cell))
            if cell.kind == "number":
                self._waiting.append(float(cell.value))
        if len(self._tokens) >= _BLOCK:
            self._hash("")
        if len(self._waiting) >= _BLOCK:
            self._flush()

    def _hash(self, text: str) -> None:
        """Add tokens to the digest, behind those that wait."""
        waiting, self._tokens = self._tokens, []
        text = "".join(waiting) + text
        self._exact.update(text.encode("utf-8", "surrogatepass"))

    def _flush(self) -> None:
        if self._waiting:
            self._add(np.array(self._waiting))
            self._waiting = []

    def _add(self, values: Floats) -> None:
        self._numbers += values.size
        self._moments.add(values)

    def summary(self, name: str) -> ColumnSummary:
        """Return what was seen, as the column called `name`."""
        self._flush()
        self._hash("")
        return ColumnSummary(
            name=printable(name),
            exact=self._exact.hexdigest(),
            numbers=self._moments.summary(name, "float64", (self._numbers,)),
        )


def _are_whole(joined: str, bare: str) -> bool:
    """Whether all cells are whole numbers, as `read_cell` has it, of usual length.

    Args:
        joined: The cells, a line feed before and after each.
        bare: The same without digits.
    """
    signs = bare.count("-")
    only_signs = len(bare) == bare.count("\n") + signs
    return (
        only_signs
        and (not signs or joined.count("\n-") == signs)
        and not _NO_WHOLE_NUMBER.search(joined)
    )


def _decimals(texts: Sequence[str], joined: str, bare: str) -> Floats | None:
    """Return the values if all cells are finite decimal numbers of usual length."""
    forms = set(bare[1:-1].split("\n"))
    if not all(map(_DECIMAL.fullmatch, forms)) or _STARTS_WITH_ZERO.search(joined):
        return None
    if ("e" in bare or "E" in bare) and _LONG_EXPONENT.search(joined):
        return None
    try:
        values = np.array([*map(float, texts)])
    except ValueError:
        return None
    return values if np.isfinite(values).all() else None


def _token(cell: Cell) -> str:
    """Return what stands for a cell in the digest."""
    if cell.kind == "number":
        return _FINITE if math.isfinite(cell.value) else f"{cell.value};"
    if cell.kind == "integer":
        return f"i{cell.value};"
    return f"{cell.kind}:{len(cell.text)}:{cell.text};"
