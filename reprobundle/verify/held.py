"""What an output holds whose bytes are those of the reference: NaN, zeros, nothing.

Equal bytes are equal values, and still they may show nothing: a training that ended in
NaN repeats to the last bit. So what is held is looked at, and not only what the records
state about it. Nothing is compared here; a look at a large array costs one reading.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import BinaryIO

from reprobundle.errors import MissingMemberError, UnreadableOutputError
from reprobundle.format.findings import ArrayComparison
from reprobundle.format.policy import Tolerance
from reprobundle.format.record import Output
from reprobundle.verify.content import Content
from reprobundle.verify.sides import Sides
from reprobundle.verify.summaries import is_float

# Reading cells takes 1 s for some MiB; longer texts are searched for a sign first.
_READ_AT_ONCE_BYTES = 1 << 18
_CHUNK_BYTES = 1 << 20
_LONGEST_SIGN_BYTES = 64
_NAN = re.compile(rb"(?i)(?<![a-z0-9_])nan(?![a-z0-9_])")
_NOT_ZERO = re.compile(rb"[\[:,;\s]-?[0-9.]{0,40}[1-9]")
_EXACT = Tolerance(rtol=0.0, atol=0.0)


def held_parts(sides: Sides) -> tuple[ArrayComparison, ...] | None:
    """Return the parts of an output of equal bytes, as its content has them.

    An output that holds no values has one part without elements.

    Args:
        sides: Both sides; their digests agree.

    Returns:
        None where the content is not at hand, or tells nothing that can be odd.
    """
    output, content = sides.reference, sides.reference_content
    if not _is_at_hand(output):
        return None
    try:
        if output.kind == "arrays":
            return _arrays(output, content) or (_nothing(output),)
        if output.kind in ("table", "document"):
            return _cells(sides)
    except (UnreadableOutputError, MissingMemberError):
        # Of a part of a bundle the content may lie in another one.
        return None
    return None


def _is_at_hand(output: Output) -> bool:
    if output.format == "checkpoint":
        return bool(output.arrays_member)
    return output.stored in ("here", "sealed")


def _nothing(output: Output) -> ArrayComparison:
    return ArrayComparison(
        name="", dtype=output.kind, elements=0, equal=True, outside=0
    )


def _arrays(output: Output, content: Content) -> tuple[ArrayComparison, ...]:
    from reprobundle.outputs.arrays import read_arrays
    from reprobundle.verify.held_arrays import looked_at

    is_checkpoint = output.format == "checkpoint"
    opened = (
        content.open_member(output.arrays_member)
        if is_checkpoint
        else content.open(output)
    )
    file_format = "safetensors" if is_checkpoint else output.format
    with opened as stream:
        return tuple(map(looked_at, read_arrays(stream, file_format)))


def _cells(sides: Sides) -> tuple[ArrayComparison, ...] | None:
    """Return the columns of a table or document, or None where none can be odd."""
    output = sides.reference

    def opened() -> BinaryIO:
        return sides.reference_content.open(output)

    if output.size_bytes > _READ_AT_ONCE_BYTES and not _may_be_odd(opened):
        return None
    parts, ignored = _read_cells(sides, opened)
    # An empty list or object is something to compare, and nothing to show.
    values = [part for part in parts if part.dtype != "empty"]
    if not any(part.elements for part in values) and not ignored:
        return (_nothing(output),)
    return parts


def _read_cells(
    sides: Sides, opened: Callable[[], BinaryIO]
) -> tuple[tuple[ArrayComparison, ...], tuple[str, ...]]:
    """Return the columns as the comparison of an output with itself has them."""
    from reprobundle.verify import compare_cells

    formats = (sides.reference.format, sides.reference.format)
    if sides.reference.kind == "table":
        cells = compare_cells.compare_tables(
            opened,
            opened,
            formats,
            tolerance=_EXACT,
            ignored=sides.ignored(),
            rows=sides.reference.rows or 0,
        )
    else:
        with opened() as left, opened() as right:
            cells = compare_cells.compare_documents(
                left, right, formats, tolerance=_EXACT, ignored=sides.ignored()
            )
    return cells.parts, cells.ignored


def _may_be_odd(opened: Callable[[], BinaryIO]) -> bool:
    """Tell whether a text may hold NaN, or no number but zero."""
    has_value = False
    rest = b""
    with opened() as stream:
        # The first line of a table names its columns.
        stream.readline(_CHUNK_BYTES)
        while chunk := stream.read(_CHUNK_BYTES):
            seen = rest + chunk
            if _NAN.search(seen):
                return True
            has_value = has_value or _NOT_ZERO.search(seen) is not None
            rest = seen[-_LONGEST_SIGN_BYTES:]
    return not has_value


def part_of(
    name: str, dtype: str, shape: tuple[int, ...], *, odd: tuple[int, int], zero: bool
) -> ArrayComparison:
    """Return a part that is equal on both sides.

    Args:
        name: Name of the array.
        dtype: Its dtype.
        shape: Extent of each axis.
        odd: How many elements are NaN, and how many infinite.
        zero: Whether every element is zero.
    """
    return ArrayComparison(
        name=name,
        dtype=dtype,
        elements=math.prod(shape),
        equal=True,
        outside=0,
        max_abs=0.0 if is_float(dtype) else None,
        nan=odd[0],
        infinite=odd[1],
        zero=zero,
    )
