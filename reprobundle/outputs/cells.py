"""What one cell of a table or one leaf of a document is: its type and its value.

A whole number is compared exactly, a decimal number under a tolerance, everything
else as text (spec.md, "Comparison"). The text decides: ``3`` is whole, ``3.0`` is
decimal. What may be an identifier is text: ``007`` is not ``7``, ``+49`` not ``49``,
and ``12e5``, which can be the start of a digest, is no number, for whoever writes
numbers without a point gives their exponent a sign (Python, C, R, JavaScript).
"""

from __future__ import annotations

import math
import re
from typing import Literal, NamedTuple

CellKind = Literal["integer", "number", "text", "bool", "null", "empty", "unreachable"]

_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,399})", re.ASCII)
_DECIMAL = re.compile(
    r"[+-]?("
    r"((0|[1-9][0-9]*)\.[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,5})?"
    r"|(0|[1-9][0-9]*)[eE][+-][0-9]{1,5}"
    r")",
    re.ASCII,
)
_NOT_FINITE = re.compile(
    r"(?P<sign>[+-]?)((?P<nan>nan|NaN|NAN)|inf|Inf|INF|infinity|Infinity|INFINITY)"
)
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
    if special := _NOT_FINITE.fullmatch(bare):
        infinity = -math.inf if special["sign"] == "-" else math.inf
        return Cell("number", text, math.nan if special["nan"] else infinity)
    return Cell("text", text)


def same_cells(b: Cell, a: Cell) -> bool:
    """Whether two cells that are not both decimal numbers are the same.

    A whole number equals a decimal one of its value; otherwise type and text decide.
    """
    if b.is_numeric and a.is_numeric:
        return b.value == a.value
    return (b.kind, b.text) == (a.kind, a.text)


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
