"""How far two versions of one output lie from a third, number by number.

numpy is imported with this module, so import it only where content is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

import numpy as np  # noqa: TID253 - this module is imported only to compare arrays

from reprobundle.format.record import Output
from reprobundle.outputs.arrays import Array, NamedArray, read_arrays
from reprobundle.outputs.cells import Cell, read_cell
from reprobundle.outputs.documents import read_leaves
from reprobundle.outputs.tables import open_table
from reprobundle.verify.content import Content

BLOCK_ELEMENTS = 1 << 18
_TRUE = ("float64", "complex128")
_FLOATS = ("float", "bfloat", "complex")

Held = tuple[Output, Content]
Ignored = Callable[[tuple[str, ...]], bool]


class Distances:
    """The errors of two sides against a truth, added up block by block.

    Attributes:
        elements: Numbers that are finite on all sides.
        largest: Largest absolute error of either side.
        problem: Why nothing can be said; empty otherwise.
        has_decimals: Whether there is any number that rounding could have touched.
    """

    def __init__(self) -> None:
        self.elements = 0
        self.largest = [0.0, 0.0]
        self.problem = ""
        self.has_decimals = False
        self._errors = [0.0, 0.0]
        self._norm = 0.0

    def add(self, truth: Array, *sides: Array) -> None:
        """Take in one block of each."""
        self.has_decimals = self.has_decimals or truth.size > 0
        kept = np.isfinite(truth) & np.isfinite(sides[0]) & np.isfinite(sides[1])
        exact = truth[kept]
        self.elements += exact.size
        self._norm = math.hypot(self._norm, float(np.linalg.norm(exact)))
        for place, side in enumerate(sides):
            error = np.abs(side[kept].astype(exact.dtype) - exact)
            if error.size:
                self.largest[place] = max(self.largest[place], float(error.max()))
                length = float(np.linalg.norm(error))
                self._errors[place] = math.hypot(self._errors[place], length)

    @property
    def relative(self) -> tuple[float, float]:
        """Error of either side over the norm of the truth, the error itself if 0."""
        first, second = (error / (self._norm or 1.0) for error in self._errors)
        return first, second


def measure(held: Sequence[Held], ignored: Ignored) -> Distances:
    """Return how far the second and third output lie from the first.

    Args:
        held: The truth, the reference and the replay, of one kind and format.
        ignored: Tells by the keys of a number whether a rule leaves it out.

    Raises:
        UnreadableOutputError: One of them is damaged.
    """
    kind = held[0][0].kind
    found = _of_arrays(held, ignored) if kind == "arrays" else _of_cells(held, ignored)
    if not found.problem and found.has_decimals and not found.elements:
        found.problem = "no decimal number in it is finite on every side"
    return found


def _of_arrays(held: Sequence[Held], ignored: Ignored) -> Distances:
    found = Distances()
    with ExitStack() as stack:
        sides = [_arrays(stack, *one) for one in held]
        for name, truth in sides[0].items():
            if ignored((name,)):
                continue
            others = [side.get(name) for side in sides[1:]]
            if any(one is None or one.shape != truth.shape for one in others):
                found.problem = f"the arrays {name!r} have other shapes or are missing"
                return found
            both = [one for one in others if one is not None]
            if not both[0].dtype.startswith(_FLOATS):
                continue
            if truth.dtype not in _TRUE:
                found.problem = (
                    f"the float64 run wrote {name or 'it'!r} as {truth.dtype}: it was "
                    "not promoted, or was cast back outside torch"
                )
                return found
            _add_blocks(found, truth, both)
    return found


def _add_blocks(found: Distances, truth: NamedArray, others: list[NamedArray]) -> None:
    blocks = [one.blocks(BLOCK_ELEMENTS) for one in (truth, *others)]
    for exact, left, right in zip(*blocks, strict=True):
        wide = exact.dtype
        found.add(exact, left.astype(wide), right.astype(wide))


def _arrays(
    stack: ExitStack, output: Output, content: Content
) -> dict[str, NamedArray]:
    is_checkpoint = output.format == "checkpoint"
    opened = (
        content.open_member(output.arrays_member)
        if is_checkpoint
        else content.open(output)
    )
    stream = stack.enter_context(opened)
    file_format = "safetensors" if is_checkpoint else output.format
    return {array.name: array for array in read_arrays(stream, file_format)}


def _of_cells(held: Sequence[Held], ignored: Ignored) -> Distances:
    found = Distances()
    numbers = [[*_numbers(*one, ignored)] for one in held]
    if len({tuple(place for place, _ in side) for side in numbers}) > 1:
        found.problem = "the sides do not hold numbers at the same places"
        return found
    columns = ([value for _, value in side] for side in numbers)
    found.add(*(np.array(column, dtype=np.float64) for column in columns))
    return found


def _numbers(
    output: Output, content: Content, ignored: Ignored
) -> Iterator[tuple[object, float]]:
    """Yield place and value of every decimal number that no rule leaves out."""
    with content.open(output) as stream:
        if output.kind == "document":
            for leaf in read_leaves(stream, output.format):
                if _counts(leaf.cell) and not ignored(leaf.keys):
                    yield (leaf.column, leaf.place), float(leaf.cell.value)
            return
        with open_table(stream, output.format) as table:
            kept = [not ignored((name,)) for name in table.columns]
            for row, texts in enumerate(table.rows):
                for column, text in enumerate(texts):
                    cell = read_cell(text)
                    if kept[column] and _counts(cell):
                        yield (row, column), float(cell.value)


def _counts(cell: Cell) -> bool:
    return cell.kind == "number"
