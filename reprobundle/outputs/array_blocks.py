"""One array of a file, and its elements block by block from a stream."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np  # noqa: TID253 - this module is imported only to read arrays

from reprobundle.errors import UnreadableOutputError

Array = np.ndarray[Any, np.dtype[Any]]


class NamedArray(NamedTuple):
    """One array of a file.

    Attributes:
        name: Key inside the file; empty when the file is the array.
        dtype: As numpy names it, or ``bfloat16``, ``float8_e4m3fn`` and so on;
            without byte order, which is no property of the values.
        shape: Extent of each axis.
        blocks: Call it with a number of elements to get the elements in C order, in
            one-dimensional blocks of at most that many, in native byte order. A block
            is valid until the next one is taken.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    blocks: Callable[[int], Iterator[Array]]

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


def raw_blocks(
    stream: BinaryIO, dtype: np.dtype[Any], count: int, elements: int
) -> Iterator[Array]:
    """Yield the next `count` elements of a stream, at most `elements` at a time."""
    # One buffer for all blocks: fresh memory for each costs more than the reading.
    buffer = memoryview(bytearray(min(elements, count) * dtype.itemsize))
    for start in range(0, count, elements):
        part = buffer[: min(elements, count - start) * dtype.itemsize]
        _fill(stream, part)
        yield np.frombuffer(part, dtype)


def check_size(expected: int, got: int) -> None:
    """Refuse a file that has more or fewer bytes than its header describes.

    Raises:
        UnreadableOutputError: It has.
    """
    if expected != got:
        message = f"the header describes {expected} bytes of elements, {got} follow"
        raise UnreadableOutputError(message)


def size_of(stream: BinaryIO) -> int:
    """Return the size of a stream, leaving it at its end."""
    return stream.seek(0, 2)


def _fill(stream: BinaryIO, buffer: memoryview) -> None:
    """Read exactly as many bytes as `buffer` has room for."""
    filled = 0
    while filled < len(buffer):
        got = cast("io.BufferedIOBase", stream).readinto(buffer[filled:])
        if not got:
            message = f"the content ends {len(buffer) - filled} bytes too early"
            raise UnreadableOutputError(message)
        filled += got
