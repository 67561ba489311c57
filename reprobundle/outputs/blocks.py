"""Read blocks of an exact size from a stream that may return less than asked for."""

from __future__ import annotations

from typing import BinaryIO

from reprobundle.errors import UnreadableOutputError


def read_block(stream: BinaryIO, size: int) -> bytes:
    """Return the next `size` bytes, fewer only at the end of the stream."""
    data = stream.read(size)
    while len(data) < size:
        more = stream.read(size - len(data))
        if not more:
            break
        data += more
    return data


def read_exactly(stream: BinaryIO, size: int) -> bytes:
    """Return the next `size` bytes.

    Raises:
        UnreadableOutputError: The stream ends before.
    """
    data = read_block(stream, size)
    if len(data) != size:
        message = f"the content ends {size - len(data)} bytes too early"
        raise UnreadableOutputError(message)
    return data
