"""Image files, written from numpy arrays by the specification or by Pillow."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np

CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
STARTS = (
    (0, 0, 8, 8),
    (0, 4, 8, 8),
    (4, 0, 8, 4),
    (0, 2, 4, 4),
    (2, 0, 4, 2),
    (0, 1, 2, 2),
    (1, 0, 2, 1),
)


def chunk(name, body):
    """Return one chunk of a PNG file."""
    checked = name + body
    return (
        struct.pack(">I", len(body)) + checked + struct.pack(">I", zlib.crc32(checked))
    )


def png(samples, *, colour, filters=(0,), interlaced=False, extra=(), size=None):
    """Return a PNG file.

    Args:
        samples: Array (rows, columns, channels) of uint8 or uint16.
        colour: The colour type of the header.
        filters: Types of filter, taken in turn for the rows.
        interlaced: Whether in the seven passes of Adam7.
        extra: Further chunks, as (name, body).
        size: Width and height to state in place of the right ones.
    """
    rows, columns = samples.shape[:2]
    depth = 8 * samples.dtype.itemsize
    raw = samples.astype(f">u{samples.dtype.itemsize}")
    parts = [raw]
    if interlaced:
        parts = [raw[r::dr, c::dc] for r, c, dr, dc in STARTS]
    step = CHANNELS[colour] * samples.dtype.itemsize
    data = b"".join(filtered(part, filters, step) for part in parts if part.size)
    width, height = size or (columns, rows)
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, int(interlaced))
    between = b"".join(chunk(*one) for one in extra)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + between
        + chunk(b"IDAT", zlib.compress(data))
        + chunk(b"IEND", b"")
    )


def filtered(part, filters, step):
    """Return rows as section 9 of the PNG specification filters them."""
    rows = [np.frombuffer(row.tobytes(), "u1").astype(int) for row in part]
    above = np.zeros_like(rows[0])
    out = b""
    for number, row in enumerate(rows):
        kind = filters[number % len(filters)]
        left = np.concatenate([np.zeros(step, int), row[:-step]])
        corner = np.concatenate([np.zeros(step, int), above[:-step]])
        guess = (0, left, above, (left + above) // 2, paeth(left, above, corner))[kind]
        out += bytes([kind]) + ((row - guess) % 256).astype("u1").tobytes()
        above = row
    return out


def paeth(left, above, corner):
    """Return the nearest of the three to left + above - corner."""
    estimate = left + above - corner
    apart = [abs(estimate - one) for one in (left, above, corner)]
    first = (apart[0] <= apart[1]) & (apart[0] <= apart[2])
    return np.where(first, left, np.where(apart[1] <= apart[2], above, corner))


def saved(image, file_format, **options):
    """Return what Pillow writes."""
    stream = io.BytesIO()
    image.save(stream, file_format, **options)
    return stream.getvalue()
