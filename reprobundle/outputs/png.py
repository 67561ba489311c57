"""What a PNG file holds that Pillow does not show.

Pillow reads colour of 16 bits with 8 (release 13 as all before), which would hide a
difference, and it does not name the chunks that say how colours look. So the chunks are
read here, and an image of 16-bit colour is split into two of 8 bits, which Pillow
decodes exactly: the filters work byte by byte and look back by whole pixels, so the
upper and the lower bytes of all samples are two filtered images of their own.

Source: the PNG specification, third edition, sections 5, 8, 9 and 11.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np  # noqa: TID253 - this module is imported only to compare images

from reprobundle.errors import UnreadableOutputError

SIGNATURE = b"\x89PNG\r\n\x1a\n"
MOST_BYTES_OF_SAMPLES = 128 << 20
_COLOURS = (b"cHRM", b"cICP", b"cLLI", b"gAMA", b"iCCP", b"mDCV", b"sBIT", b"sRGB")
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_COLOUR_TYPES = (2, 4, 6)
_STEP_BYTES = 1 << 20
# First row and column and the steps to the next ones, of each pass.
_PASSES = (
    ((0, 0, 1, 1),),
    (
        (0, 0, 8, 8),
        (0, 4, 8, 8),
        (4, 0, 8, 4),
        (0, 2, 4, 4),
        (2, 0, 4, 2),
        (0, 1, 2, 2),
        (1, 0, 2, 1),
    ),
)


class Chunk(NamedTuple):
    """One chunk: its name of four letters and its content."""

    name: bytes
    body: bytes


def read_chunks(data: bytes) -> tuple[Chunk, ...]:
    """Return all chunks of a PNG file, each with a right checksum.

    Raises:
        UnreadableOutputError: The file is cut off, damaged, or goes on after its end.
    """
    found, at = [], len(SIGNATURE)
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        end = at + 12 + size
        if end > len(data):
            raise UnreadableOutputError("the PNG file is truncated")
        body = data[at + 4 : end - 4]
        if zlib.crc32(body) != int.from_bytes(data[end - 4 : end], "big"):
            raise UnreadableOutputError("a checksum in the PNG file is wrong")
        found.append(Chunk(body[:4], body[4:]))
        at = end
    if not found or len(found[0].body) != 13 or found[-1] != (b"IEND", b""):
        raise UnreadableOutputError("the PNG lacks its first or its last chunk")
    return tuple(found)


def colour_facts(chunks: tuple[Chunk, ...]) -> dict[str, str]:
    """Return what the file says of how its samples look, by name of the chunk."""
    return {
        f"colour chunk {chunk.name.decode()}": chunk.body.hex()[:200]
        + f" ({zlib.crc32(chunk.body):08x})"
        for chunk in chunks
        if chunk.name in _COLOURS
    }


def is_deep_colour(chunks: tuple[Chunk, ...]) -> bool:
    """Whether samples have 16 bits and more than one stands for a pixel."""
    return chunks[0].body[8] == 16 and chunks[0].body[9] in _COLOUR_TYPES


def check_complete(chunks: tuple[Chunk, ...]) -> None:
    """Refuse a file with fewer or more samples than it states.

    Pillow shows rows that are not there as zeros.

    Raises:
        UnreadableOutputError: It has.
    """
    width, height, depth, colour, *_, interlace = _header(chunks)
    bits = depth * _CHANNELS[colour]
    size, packed = (width, height), list[bytes]()
    frames = [(size, packed)]
    for chunk in chunks:
        if chunk.name == b"fcTL" and len(chunk.body) == 26:
            packed = []
            frames.append((struct.unpack(">II", chunk.body[4:12]), packed))
        elif chunk.name == b"IDAT":
            packed.append(chunk.body)
        elif chunk.name == b"fdAT":
            packed.append(chunk.body[4:])
    for (columns, rows), parts in frames:
        if parts:
            passes = _passes(columns, rows, interlace)
            expected = sum(high * (1 + (wide * bits + 7) // 8) for high, wide in passes)
            _check_inflated(parts, expected)


def _header(chunks: tuple[Chunk, ...]) -> tuple[int, ...]:
    header = struct.unpack(">IIBBBBB", chunks[0].body)
    if header[3] not in _CHANNELS or header[6] > 1:
        raise UnreadableOutputError("the PNG has an unknown colour type or interlace")
    return header


def _check_inflated(packed: list[bytes], expected: int) -> None:
    inflater, size, waiting = zlib.decompressobj(), 0, b"".join(packed)
    try:
        while waiting and size <= expected and not inflater.eof:
            size += len(inflater.decompress(waiting, _STEP_BYTES))
            waiting = inflater.unconsumed_tail
        size += len(inflater.flush()) if not inflater.eof else 0
    except zlib.error as error:
        raise UnreadableOutputError("the PNG data cannot be inflated") from error
    if size != expected or not inflater.eof:
        raise UnreadableOutputError("the PNG data are not as long as stated")


def halves(chunks: tuple[Chunk, ...]) -> tuple[bytes, bytes]:
    """Return an image of 16-bit colour as two PNG files: upper and lower bytes.

    Raises:
        UnreadableOutputError: It is animated, larger than 128 MiB, or damaged.
    """
    if any(chunk.name == b"acTL" for chunk in chunks):
        raise UnreadableOutputError("animations of 16-bit colour are not read")
    width, height, _, colour, *_, interlace = _header(chunks)
    channels = _CHANNELS[colour]
    passes = tuple(_passes(width, height, interlace))
    size = sum(rows * (1 + 2 * channels * columns) for rows, columns in passes)
    packed = b"".join(chunk.body for chunk in chunks if chunk.name == b"IDAT")
    raw = _inflated(packed, size)
    header = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, interlace)
    upper, lower = (
        _written(header, b"".join(_half(raw, passes, channels, half)))
        for half in (0, 1)
    )
    return upper, lower


def _passes(width: int, height: int, interlace: int) -> Iterator[tuple[int, int]]:
    """Yield rows and columns of every pass that holds a pixel."""
    for first_row, first_column, row_step, column_step in _PASSES[interlace]:
        rows = -(-(height - first_row) // row_step)
        columns = -(-(width - first_column) // column_step)
        if rows > 0 and columns > 0:
            yield rows, columns


def _inflated(packed: bytes, size_bytes: int) -> bytes:
    if size_bytes > MOST_BYTES_OF_SAMPLES:
        raise UnreadableOutputError("the PNG holds more than 128 MiB of samples")
    inflater = zlib.decompressobj()
    try:
        raw = inflater.decompress(packed, size_bytes + 1)
    except zlib.error as error:
        raise UnreadableOutputError("the PNG data cannot be inflated") from error
    if len(raw) != size_bytes or not inflater.eof:
        raise UnreadableOutputError("the PNG data are not as long as stated")
    return raw


def _half(
    raw: bytes, passes: tuple[tuple[int, int], ...], channels: int, half: int
) -> Iterator[bytes]:
    start = 0
    for rows, columns in passes:
        length = 1 + 2 * channels * columns
        lines = np.frombuffer(raw, "u1", rows * length, start).reshape(rows, length)
        start += rows * length
        yield np.hstack([lines[:, :1], lines[:, 1 + half :: 2]]).tobytes()


def _written(header: bytes, filtered: bytes) -> bytes:
    chunks = (
        Chunk(b"IHDR", header),
        Chunk(b"IDAT", zlib.compress(filtered, 0)),
        Chunk(b"IEND", b""),
    )
    return SIGNATURE + b"".join(
        struct.pack(">I", len(chunk.body))
        + chunk.name
        + chunk.body
        + struct.pack(">I", zlib.crc32(chunk.name + chunk.body))
        for chunk in chunks
    )
