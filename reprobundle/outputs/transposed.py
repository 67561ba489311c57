"""The elements of an array in Fortran order, in C order, within a fixed room of memory.

The file has the first axis fastest, a reader wants the last one fastest. Walking
through the file element by element would touch each of its pages once per element of a
page. So the content is cut into boxes that fit into memory: each is turned there and
written to a temporary file, and from that file every part of the result is a run of
bytes in each box. What is written and read again is the content, once.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any, BinaryIO

import numpy as np  # noqa: TID253 - this module is imported only to read arrays

from reprobundle.outputs.array_blocks import Array
from reprobundle.outputs.blocks import read_exactly

BOX_BYTES = 16 << 20
"""Size of a box; a reader holds three of them."""

Box = tuple[range, ...]
"""A range of indices for each axis."""


def c_ordered_blocks(
    stream: BinaryIO,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    elements: int,
    *,
    box_bytes: int = BOX_BYTES,
) -> Iterator[Array]:
    """Yield an array in Fortran order as flat blocks in C order.

    Args:
        stream: At its first element.
        dtype: Type of an element.
        shape: Extent of each axis.
        elements: Most elements of a block.
        box_bytes: Size of what is turned in memory at a time.

    Raises:
        UnreadableOutputError: The stream ends too early.
        OSError: There is no room for the temporary file.
    """
    shape = tuple(extent for extent in shape if extent != 1)
    most = max(1, box_bytes // dtype.itemsize)
    if math.prod(shape) <= most:
        whole = tuple(map(range, shape))
        yield from _blocks([_turned(stream, dtype, whole)], elements)
        return
    with tempfile.TemporaryFile() as copy:
        kept = []
        for box in (one[::-1] for one in boxes(shape[::-1], most)):
            kept.append((box, copy.tell()))
            copy.write(_turned(stream, dtype, box).view(np.uint8).data)
        panels = (_gathered(copy, dtype, one, kept) for one in boxes(shape, most))
        yield from _blocks(panels, elements)


def boxes(shape: tuple[int, ...], most: int) -> Iterator[Box]:
    """Cut an array into boxes that follow one another in C order.

    Args:
        shape: Extent of each axis.
        most: Most elements of a box.
    """
    cut, inner = len(shape), 1
    while cut and inner * shape[cut - 1] <= most:
        cut -= 1
        inner *= shape[cut]
    whole = tuple(map(range, shape[cut:]))
    if not cut:
        yield whole
        return
    extent, step = shape[cut - 1], most // inner
    for fixed in product(*map(range, shape[: cut - 1])):
        outer = tuple(range(index, index + 1) for index in fixed)
        for start in range(0, extent, step):
            yield (*outer, range(start, min(start + step, extent)), *whole)


def _turned(stream: BinaryIO, dtype: np.dtype[Any], box: Box) -> Array:
    """Return the elements of the next box of a stream, in C order."""
    lengths = tuple(map(len, box))
    data = read_exactly(stream, math.prod(lengths) * dtype.itemsize)
    return np.frombuffer(data, dtype).reshape(lengths, order="F").ravel()


def _gathered(
    copy: BinaryIO, dtype: np.dtype[Any], panel: Box, kept: list[tuple[Box, int]]
) -> Array:
    """Return one box of the result, of what each box of the file has of it.

    A box of the file has its first axes whole, one of the result its last ones; so
    what they have in common is a run of elements of the former.
    """
    result = np.empty(tuple(map(len, panel)), dtype)
    for box, offset in kept:
        common = tuple(map(_common, box, panel))
        if not all(common):
            continue
        lengths = tuple(map(len, common))
        copy.seek(offset + _place_in(box, common) * dtype.itemsize)
        data = read_exactly(copy, math.prod(lengths) * dtype.itemsize)
        place = tuple(
            slice(part.start - held.start, part.stop - held.start)
            for part, held in zip(common, panel, strict=True)
        )
        result[place] = np.frombuffer(data, dtype).reshape(lengths)
    return result.reshape(-1)


def _common(one: range, other: range) -> range:
    return range(max(one.start, other.start), min(one.stop, other.stop))


def _place_in(box: Box, part: Box) -> int:
    """Return where a part begins among the elements of its box."""
    place = 0
    for held, inner in zip(box, part, strict=True):
        place = place * len(held) + inner.start - held.start
    return place


def _blocks(pieces: Iterable[Array], elements: int) -> Iterator[Array]:
    """Yield pieces of any size as blocks of one size; the last may be shorter."""
    rest: list[Array] = []
    missing = elements
    for piece in pieces:
        start = 0
        while piece.size - start >= missing:
            yield _joined([*rest, piece[start : start + missing]])
            start += missing
            rest, missing = [], elements
        if start < piece.size:
            rest.append(piece[start:])
            missing -= piece.size - start
    if rest:
        yield _joined(rest)


def _joined(parts: list[Array]) -> Array:
    if len(parts) == 1:
        return parts[0]
    # The type is given: of itself, numpy would turn the byte order.
    joined = np.empty(sum(part.size for part in parts), parts[0].dtype)
    return np.concatenate(parts, out=joined)
