"""Which samples a PNG file holds, read exactly and with bounded work.

Written here because common decoders reduce 16-bit colour to 8 bits, which would hide a
difference. Source: the PNG specification, sections 5, 9 and 11. Interlaced and animated
images are refused; they are then compared byte by byte.
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

from reprobundle.errors import UnreadableOutputError

SIGNATURE = b"\x89PNG\r\n\x1a\n"
LARGEST_FILE_BYTES = 64 << 20
LARGEST_IMAGE_BYTES = 32 << 20
_METADATA = {b"tEXt", b"zTXt", b"iTXt", b"tIME", b"pHYs"}
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}


class Png(NamedTuple):
    """The samples of an image, row by row, and what says how they look."""

    header: bytes
    meaning: tuple[tuple[bytes, bytes], ...]
    rows: tuple[bytes, ...]
    bits_per_pixel: int


def decode_png(data: bytes) -> Png:
    """Return the samples of a PNG file.

    Raises:
        UnreadableOutputError: Not a whole, plain PNG, or larger than the limits.
    """
    chunks = _chunks(data)
    if len(chunks) < 3 or chunks[0][0] != b"IHDR" or chunks[-1] != (b"IEND", b""):
        raise UnreadableOutputError("the PNG lacks its first or its last chunk")
    header = chunks[0][1]
    if len(header) != 13:
        raise UnreadableOutputError("the PNG header has not 13 bytes")
    width, height, depth, colour, *methods = struct.unpack(">IIBBBBB", header)
    if depth not in _DEPTHS.get(colour, ()) or any(methods) or not width * height:
        raise UnreadableOutputError("the PNG is interlaced or of an unknown form")
    bits = depth * _CHANNELS[colour]
    row_bytes = (width * bits + 7) // 8
    packed = b"".join(body for name, body in chunks if name == b"IDAT")
    raw = _inflated(packed, (row_bytes + 1) * height)
    meaning = tuple(
        one for one in chunks[1:-1] if one[0] != b"IDAT" and one[0] not in _METADATA
    )
    if any(name in (b"acTL", b"fcTL", b"fdAT", b"IHDR") for name, _ in meaning):
        raise UnreadableOutputError("the PNG is animated or has two headers")
    rows = _unfiltered(raw, row_bytes, max(1, bits // 8))
    return Png(header, meaning, rows, bits)


def difference(first: Png, second: Png) -> str:
    """Return where two images differ, or an empty string if no pixel does."""
    if first.header != second.header:
        return "size, depth or colour type of the image differ"
    if first.meaning != second.meaning:
        return "the palette, transparency or colour chunks of the image differ"
    for row, (left, right) in enumerate(zip(first.rows, second.rows, strict=True)):
        if left != right:
            place = next(n for n in range(len(left)) if left[n] != right[n])
            column = place * 8 // first.bits_per_pixel
            return f"the pixels differ, first at row {row}, column {column} or close by"
    return ""


def _chunks(data: bytes) -> list[tuple[bytes, bytes]]:
    if not data.startswith(SIGNATURE):
        raise UnreadableOutputError("not a PNG file")
    found, at = [], len(SIGNATURE)
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        end = at + 12 + size
        if end > len(data):
            raise UnreadableOutputError("the PNG file is truncated")
        body = data[at + 4 : end - 4]
        if zlib.crc32(body) != int.from_bytes(data[end - 4 : end], "big"):
            raise UnreadableOutputError("a checksum in the PNG file is wrong")
        found.append((body[:4], body[4:]))
        at = end
    return found


def _inflated(packed: bytes, size_bytes: int) -> bytes:
    if size_bytes > LARGEST_IMAGE_BYTES:
        raise UnreadableOutputError("the PNG holds more than 32 MiB of samples")
    inflater = zlib.decompressobj()
    try:
        raw = inflater.decompress(packed, size_bytes + 1)
    except zlib.error as error:
        raise UnreadableOutputError("the PNG data cannot be inflated") from error
    if len(raw) != size_bytes or not inflater.eof or inflater.unused_data:
        raise UnreadableOutputError("the PNG data are not as long as stated")
    return raw


def _unfiltered(raw: bytes, row_bytes: int, step: int) -> tuple[bytes, ...]:
    rows: list[bytes] = []
    above = bytes(row_bytes)
    for at in range(0, len(raw), row_bytes + 1):
        above = _row(raw[at], raw[at + 1 : at + 1 + row_bytes], above, step)
        rows.append(above)
    return tuple(rows)


def _row(kind: int, line: bytes, above: bytes, step: int) -> bytes:
    if kind == 0:
        return line
    if kind > 4:
        raise UnreadableOutputError("the PNG names an unknown filter")
    out = bytearray(line)
    for n, up in enumerate(above):
        left = out[n - step] if n >= step else 0
        corner = above[n - step] if n >= step else 0
        guess = (0, left, up, (left + up) // 2, _paeth(left, up, corner))[kind]
        out[n] = (line[n] + guess) & 255
    return bytes(out)


def _paeth(left: int, up: int, corner: int) -> int:
    estimate = left + up - corner
    return min((left, up, corner), key=lambda one: abs(estimate - one))
