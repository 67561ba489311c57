"""Which indices a topk, sort or argsort could as well have given.

An index may stand at another place of its run of the last axis if the reference's
values at both places are equal within their tolerance. Each move is judged by itself:
a chain of neighbours that are each nearly equal does not make its ends equal. Where
the end of the axis cuts off a run of equal values (the last places of a topk), indices
that the reference does not hold are admitted too, for nobody can say which of the tied
elements had to be taken; not so if the last value stands alone. No index may come
twice.

The values lie in the same file, or in another output of the reference. They are
compared by themselves like any other output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import numpy as np  # noqa: TID253 - this module is imported only to compare arrays

from reprobundle.errors import UnreadableOutputError
from reprobundle.format.policy import Tolerance
from reprobundle.outputs.arrays import Array, NamedArray, read_arrays
from reprobundle.verify.rules import rule_for, tolerance_for
from reprobundle.verify.sides import Sides

# What may be held in memory at once; larger arrays are compared without the rule.
MOST_HELD = 1 << 24
_BLOCK = 1 << 18
_EXACT = Tolerance(rtol=0.0, atol=0.0)


def values_elsewhere(
    sides: Sides, stack: ExitStack
) -> tuple[NamedArray, Tolerance | None] | None:
    """Return the values that lie in another output, and their tolerance there.

    Args:
        sides: The output of indices.
        stack: What the values are read from stays open as long as it does.

    Returns:
        None if the rule names no other output.

    Raises:
        UnreadableOutputError: It names one that is not there, not compared, or not
            kept whole.
    """
    named = sides.rule.ties if sides.rule is not None else ""
    name, separator, array = named.rpartition("#")
    if not separator:
        return None
    output = sides.others.get(name)
    rule = rule_for(sides.policy, name)
    if output is None or (rule is not None and not rule.compare):
        message = f"the rule's output of values {name!r} is not there or not compared"
        raise UnreadableOutputError(message)
    is_checkpoint = output.format == "checkpoint"
    if output.kind != "arrays" or output.stored not in ("here", "sealed"):
        message = f"the rule's output of values {name!r} is not kept as arrays"
        raise UnreadableOutputError(message)
    opened = (
        sides.reference_content.open_member(output.arrays_member)
        if is_checkpoint
        else sides.reference_content.open(output)
    )
    arrays = read_arrays(
        stack.enter_context(opened), "safetensors" if is_checkpoint else output.format
    )
    values = next((one for one in arrays if one.name == array), None)
    if values is None:
        raise UnreadableOutputError(
            f"the rule's array of values {named!r} is not there"
        )
    return values, tolerance_for(sides.policy, name, values.dtype, sides.devices)


def without_ties(
    reference: NamedArray,
    replay: NamedArray,
    values: NamedArray,
    tolerance: Tolerance | None,
) -> tuple[NamedArray, str]:
    """Return the replay with admitted indices put in the reference's order.

    Args:
        reference: Indices; other dtypes are returned as they are.
        replay: Indices of the same dtype and shape.
        values: The reference's values at these indices, of the same shape.
        tolerance: The rule that says which of them are equal; None for bit equality.

    Returns:
        The replay and what was taken as equal, in words.
    """
    is_index = reference.dtype.startswith(("int", "uint"))
    if not is_index or not reference.shape or values.shape != reference.shape:
        return replay, ""
    if reference.size > MOST_HELD or not reference.size:
        return replay, ""
    b, a, v = (
        np.concatenate([block.copy() for block in array.blocks(_BLOCK)]).reshape(
            -1, reference.shape[-1]
        )
        for array in (reference, replay, values)
    )
    moved = 0
    for row in np.flatnonzero((b != a).any(axis=1)):
        admitted = _admitted(b[row], a[row], v[row].astype("f8"), tolerance or _EXACT)
        moved += int(np.count_nonzero(admitted))
        a[row] = np.where(admitted, b[row], a[row])
    if not moved:
        return replay, ""
    note = f"{moved:,} indices changed places among tied values, as the rule admits"
    return replay._replace(blocks=_held(a.reshape(-1))), note


def _admitted(b: Array, a: Array, values: Array, rule: Tolerance) -> Array:
    """Return which places hold another index that could stand there as well."""
    if np.unique(a).size != a.size or np.unique(b).size != b.size:
        return np.zeros(a.size, np.bool_)
    order = np.argsort(b)
    found = np.minimum(np.searchsorted(b[order], a), b.size - 1)
    origin = order[found]
    is_known = b[origin] == a
    with np.errstate(all="ignore"):
        bound = rule.atol + rule.rtol * np.abs(values)
        is_tied = np.abs(values[origin] - values) <= bound
        # Infinity less infinity is NaN, which is no tie.
        at_end = np.abs(values[-1] - values) <= bound
    if np.count_nonzero(at_end) < 2:
        at_end[:] = False
    return np.asarray((a != b) & np.where(is_known, is_tied, at_end))


def _held(flat: Array) -> Callable[[int], Iterator[Array]]:
    def blocks(elements: int) -> Iterator[Array]:
        for start in range(0, flat.size, elements):
            yield flat[start : start + elements]

    return blocks
