"""PNG files of a few pixels, the same bytes on every machine."""

from __future__ import annotations

import struct
import zlib

RGB, RGBA = 2, 6


def _chunk(name: bytes, body: bytes) -> bytes:
    code = zlib.crc32(name + body)
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", code)


def _stored(data: bytes) -> bytes:
    """Return a zlib stream of one stored block: no two compressors differ in it."""
    length = len(data).to_bytes(2, "little")
    inverse = (0xFFFF - len(data)).to_bytes(2, "little")
    end = zlib.adler32(data).to_bytes(4, "big")
    return b"\x78\x01\x01" + length + inverse + data + end


def png(
    *rows: bytes, colour: int = RGB, depth: int = 8, text: bytes = b"", up: bool = False
) -> bytes:
    """Return a PNG file.

    Args:
        rows: The samples of each row.
        colour: Colour type of the header.
        depth: Bits of a sample.
        text: Content of a ``tEXt`` chunk.
        up: Whether the rows are filtered by the ones above.
    """
    pixel_bytes = {RGB: 3, RGBA: 4}[colour] * depth // 8
    width = len(rows[0]) // pixel_bytes
    header = struct.pack(">IIBBBBB", width, len(rows), depth, colour, 0, 0, 0)
    data, above = b"", bytes(len(rows[0]))
    for row in rows:
        plain = zip(row, above, strict=True)
        data += b"\2" + bytes((b - a) % 256 for b, a in plain) if up else b"\0" + row
        above = row
    return (
        b"\x89PNG\r\n\x1a\n"
        + _chunk(b"IHDR", header)
        + (_chunk(b"tEXt", text) if text else b"")
        + _chunk(b"IDAT", _stored(data))
        + _chunk(b"IEND", b"")
    )
