"""What one cell of a table or one leaf of a document is: its type and its value.

A whole number is compared exactly, a decimal number under a tolerance, everything
else as text (spec.md, "Comparison"). The text decides: ``3`` is whole, ``3.0`` is
decimal.
"""

from __future__ import annotations

import math
import re
from typing import Literal, NamedTuple

CellKind = Literal["integer", "number", "text", "bool", "null", "empty", "unreachable"]

_INTEGER = re.compile(r"[+-]?[0-9]{1,400}", re.ASCII)
_DECIMAL = re.compile(
    r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,5})?", re.ASCII
)
_NOT_FINITE = {
    "nan": "nan",
    "+nan": "nan",
    "-nan": "nan",
    "inf": "inf",
    "+inf": "inf",
    "-inf": "-inf",
    "infinity": "inf",
    "+infinity": "inf",
    "-infinity": "-inf",
}
_LONGEST_NUMBER = 400


class Cell(NamedTuple):
    """One value.

    Attributes:
        kind: Its type; ``empty`` is an empty list or object of a document, and
            ``unreachable`` a decimal number of a document beyond float64.
        text: As written.
        value: The number for ``integer`` and ``number``, else 0.
    """

    kind: CellKind
    text: str
    value: int | float = 0

    @property
    def is_numeric(self) -> bool:
        """Whether the cell is a whole or decimal number."""
        return self.kind in ("integer", "number")


def read_cell(text: str) -> Cell:
    """Return the cell that a table writes as `text`."""
    bare = text.strip()
    if len(bare) > _LONGEST_NUMBER:
        return Cell("text", text)
    if _INTEGER.fullmatch(bare):
        return Cell("integer", text, int(bare))
    if _DECIMAL.fullmatch(bare):
        return decimal_cell(text)
    special = _NOT_FINITE.get(bare.lower())
    return Cell("number", text, float(special)) if special else Cell("text", text)


def decimal_cell(text: str) -> Cell:
    """Return the cell of a decimal number.

    One that no float64 reaches is text: read as infinity, 1e400 would equal 2e400.
    """
    value = float(text)
    return Cell("text", text) if math.isinf(value) else Cell("number", text, value)


class Unreachable(str):
    """A decimal number of a JSON document that no float64 reaches, as written."""

    __slots__ = ()


def json_decimal(text: str) -> float | Unreachable:
    """Return what a JSON reader makes of a decimal number."""
    value = float(text)
    return Unreachable(text) if math.isinf(value) else value


def json_cell(value: object) -> Cell:
    """Return the cell for a leaf of a parsed JSON document."""
    if value is None:
        return Cell("null", "null")
    if isinstance(value, bool):
        return Cell("bool", "true" if value else "false")
    if isinstance(value, int):
        return Cell("integer", str(value), value)
    if isinstance(value, float):
        return Cell("number", repr(value), value)
    if isinstance(value, (list, dict)):
        return Cell("empty", "[]" if isinstance(value, list) else "{}")
    if isinstance(value, Unreachable):
        # Of another kind than a string of the same letters.
        return Cell("unreachable", str(value))
    return Cell("text", str(value))
