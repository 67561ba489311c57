"""What an output's own rule takes as equal before the elements are compared.

Three rules, each stated by the author with a reason (spec.md, "Comparison"):

* ``rows``: only the first rows of an array count.
* ``ties``: indices into equal values may change places (`reprobundle.verify.ties`).
* ``signs``: an eigenvector or singular vector is determined up to its sign, or its
  phase if it is complex.

Each returns replay arrays in which the admitted freedom is undone; the comparison
after it knows nothing of the rules. A replay that needed one is never bit-identical.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np  # noqa: TID253 - this module is imported only to compare arrays

from reprobundle.errors import UnreadableOutputError
from reprobundle.format.policy import OutputRule, Tolerance
from reprobundle.outputs.arrays import Array, NamedArray
from reprobundle.verify.summaries import is_float, structure_problem
from reprobundle.verify.ties import MOST_HELD, without_ties

_BLOCK = 1 << 18


class Pair(NamedTuple):
    """One array of both sides, of equal structure, and what was taken as equal."""

    reference: NamedArray
    replay: NamedArray
    note: str = ""


ToleranceOf = Callable[[str], Tolerance | None]


def first_rows(pair: Pair, rows: int) -> Pair:
    """Return the pair with only the first `rows` rows of the first axis."""
    shape = pair.reference.shape
    if not shape or shape[0] <= rows:
        return pair
    cut = (rows, *shape[1:])
    note = f"rows {rows:,} to {shape[0] - 1:,} were not compared"
    return Pair(_cut(pair.reference, cut), _cut(pair.replay, cut), note)


def _cut(array: NamedArray, shape: tuple[int, ...]) -> NamedArray:
    def blocks(elements: int) -> Iterator[Array]:
        left = int(np.prod(shape))
        for block in array.blocks(elements):
            if not left:
                return
            part = block[:left]
            left -= part.size
            yield part

    return array._replace(shape=shape, blocks=blocks)


def without_signs(pair: Pair, axis: str) -> Pair:
    """Return the pair with each vector of the replay turned like the reference's.

    Args:
        pair: Float or complex arrays of at least two axes; others are returned as
            they are.
        axis: ``columns`` or ``rows`` of the last two axes.
    """
    reference, replay, _ = pair
    if len(reference.shape) < 2 or not is_float(reference.dtype) or not reference.size:
        return pair
    *_, height, width = reference.shape
    vectors = reference.size // (height if axis == "columns" else width)
    if vectors > MOST_HELD:
        return pair
    place = _vector_of(axis, height, width)
    products = np.zeros(vectors, "c16" if reference.dtype.startswith("c") else "f8")
    start = 0
    for b, a in _both(reference, replay):
        places = place(np.arange(start, start + b.size))
        terms = (np.conj(a.astype(products.dtype)) * b).astype(products.dtype)
        np.add.at(products, places, np.where(np.isfinite(terms), terms, 0))
        start += b.size
    turns = _turns(products)
    turned = int(np.count_nonzero(turns != 1))
    if not turned:
        return pair
    kind = "phase" if products.dtype.kind == "c" else "sign"
    note = f"{turned:,} of {vectors:,} {axis} have another {kind}, as the rule admits"
    return Pair(reference, _turned(replay, turns, place), _joined(pair.note, note))


def _vector_of(axis: str, height: int, width: int) -> Callable[[Array], Array]:
    def of(flat: Array) -> Array:
        if axis == "rows":
            return np.asarray(flat // width)
        return np.asarray(flat // (height * width) * width + flat % width)

    return of


def _turns(products: Array) -> Array:
    size = np.abs(products)
    known = size > 0
    if products.dtype.kind == "c":
        turns = np.where(known, products / np.where(known, size, 1), 1)
        # Rounding alone is no turn.
        return np.asarray(np.where(np.abs(turns - 1) < 1e-6, 1, turns))
    return np.asarray(np.where(products < 0, -1.0, 1.0))


def _turned(
    array: NamedArray, turns: Array, place: Callable[[Array], Array]
) -> NamedArray:
    def blocks(elements: int) -> Iterator[Array]:
        start = 0
        for block in array.blocks(elements):
            factors = turns[place(np.arange(start, start + block.size))]
            start += block.size
            yield (block * factors).astype(block.dtype)

    return array._replace(blocks=blocks)


def equivalent(
    rule: OutputRule,
    reference: Sequence[NamedArray],
    replay: Sequence[NamedArray],
    tolerance_of: ToleranceOf,
    elsewhere: tuple[NamedArray, Tolerance | None] | None = None,
) -> tuple[list[NamedArray], list[NamedArray], dict[str, str]]:
    """Return both sides with the freedom that `rule` admits undone, and the notes.

    Args:
        rule: The output's own rule.
        reference: Arrays of the reference.
        replay: Arrays of the replay.
        tolerance_of: The tolerance of a dtype.
        elsewhere: Values of another output that integer arrays point at, with their
            tolerance, if the rule names some.

    Raises:
        UnreadableOutputError: The rule names an array of values that is not there.
    """
    others = {array.name: array for array in replay}
    values = elsewhere or _values_beside(rule, reference, tolerance_of)
    left: list[NamedArray] = []
    notes: dict[str, str] = {}
    for array in reference:
        other = others.get(array.name)
        if other is None or _problem(array, other):
            left.append(array)
            continue
        pair = Pair(array, other)
        if values is not None and array is not values[0]:
            replayed, note = without_ties(*pair[:2], *values)
            pair = Pair(array, replayed, note)
        if rule.signs:
            pair = without_signs(pair, rule.signs)
        if rule.rows is not None:
            pair = first_rows(pair, rule.rows)
        left.append(pair.reference)
        others[array.name] = pair.replay
        if pair.note:
            notes[array.name] = pair.note
    return left, list(others.values()), notes


def _values_beside(
    rule: OutputRule, reference: Sequence[NamedArray], tolerance_of: ToleranceOf
) -> tuple[NamedArray, Tolerance | None] | None:
    """Return the values of the same file that the rule names, with their tolerance."""
    if not rule.ties:
        return None
    values = next((one for one in reference if one.name == rule.ties), None)
    if values is None:
        message = f"the rule's array of values {rule.ties!r} is not in the reference"
        raise UnreadableOutputError(message)
    return values, tolerance_of(values.dtype)


def _problem(reference: NamedArray, replay: NamedArray) -> str:
    return structure_problem(
        (reference.dtype, reference.shape), (replay.dtype, replay.shape)
    )


def _both(reference: NamedArray, replay: NamedArray) -> Iterator[tuple[Array, Array]]:
    pairs = zip(reference.blocks(_BLOCK), replay.blocks(_BLOCK), strict=True)
    yield from pairs


def _joined(*notes: str) -> str:
    return "; ".join(note for note in notes if note)
