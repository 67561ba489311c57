"""Writes zstd frames by hand, right or wrong in one chosen place.

A compressor's output changes with its version; these bytes do not. A block whose bytes
are all equal is stored as one byte and a count, any other as it is. Source: RFC 8878.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

CHUNK_BYTES = 4 << 20
BLOCK_BYTES = 128 << 10

_MAGIC = b"\x28\xb5\x2f\xfd"
_SIZE_IN_4_BYTES, _SINGLE_SEGMENT, _CHECKSUM = 0x80, 0x20, 0x04

_MASK = (1 << 64) - 1
_P1 = 0x9E3779B185EBCA87
_P2 = 0xC2B2AE3D27D4EB4F
_P3 = 0x165667B19E3779F9
_P4 = 0x85EBCA77C2B2AE63
_P5 = 0x27D4EB2F165667C5


def frame(
    content: bytes,
    *,
    stated_bytes: int | None = None,
    states_size: bool = True,
    checksum: bool = True,
    window_log: int = 0,
    block_bytes: int = BLOCK_BYTES,
) -> bytes:
    """Return one frame that decodes to `content`.

    Args:
        content: At least one byte.
        stated_bytes: The size the frame states; None for the right one.
        states_size: Whether it states one at all.
        checksum: Whether the content's checksum follows.
        window_log: Logarithm of the window; 0 for a single segment.
        block_bytes: Largest block.
    """
    size = (len(content) if stated_bytes is None else stated_bytes).to_bytes(
        4, "little"
    )
    log = window_log or (0 if states_size else BLOCK_BYTES.bit_length() - 1)
    descriptor = _CHECKSUM if checksum else 0
    descriptor |= _SIZE_IN_4_BYTES if states_size else 0
    descriptor |= 0 if log else _SINGLE_SEGMENT
    return b"".join(
        [
            _MAGIC,
            bytes([descriptor]),
            bytes([(log - 10) << 3]) if log else b"",
            size if states_size else b"",
            *_blocks(content, block_bytes),
            xxh64(content).to_bytes(8, "little")[:4] if checksum else b"",
        ]
    )


def frames(content: bytes) -> bytes:
    """Return `content` as a compressed member: one frame for each chunk."""
    starts = range(0, len(content), CHUNK_BYTES)
    return b"".join(frame(content[at : at + CHUNK_BYTES]) for at in starts)


def _blocks(content: bytes, block_bytes: int) -> Iterator[bytes]:
    for start in range(0, len(content), block_bytes):
        block = content[start : start + block_bytes]
        last = start + block_bytes >= len(content)
        same = block.count(block[:1]) == len(block)
        yield (len(block) << 3 | same << 1 | last).to_bytes(3, "little")
        yield block[:1] if same else block


@lru_cache(maxsize=16)
def xxh64(data: bytes) -> int:
    """Return the XXH64 of `data` with seed 0, which zstd uses as its checksum."""
    whole = len(data) & ~31
    state = _stripes(data[:whole]) if whole else _P5
    state = (state + len(data)) & _MASK
    for value, kind in _rest(data[whole:]):
        state = _mixed(state, value, kind)
    state = (state ^ state >> 33) * _P2 & _MASK
    state = (state ^ state >> 29) * _P3 & _MASK
    return state ^ state >> 32


def _turned(value: int, by: int) -> int:
    return (value << by | value >> 64 - by) & _MASK


def _round(lane: int, word: int) -> int:
    return _turned((lane + word * _P2) & _MASK, 31) * _P1 & _MASK


def _stripes(data: bytes) -> int:
    lanes = [(_P1 + _P2) & _MASK, _P2, 0, -_P1 & _MASK]
    words = memoryview(data).cast("Q")
    for number, word in enumerate(words):
        lanes[number & 3] = _round(lanes[number & 3], word)
    state = sum(map(_turned, lanes, (1, 7, 12, 18))) & _MASK
    for lane in lanes:
        state = ((state ^ _round(0, lane)) * _P1 + _P4) & _MASK
    return state


def _rest(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the last bytes as words of 8, then one of 4, then single bytes."""
    place = 0
    for size in (8, 4, 1):
        while len(data) - place >= size:
            yield int.from_bytes(data[place : place + size], "little"), size
            place += size


def _mixed(state: int, value: int, size: int) -> int:
    if size == 8:
        return (_turned(state ^ _round(0, value), 27) * _P1 + _P4) & _MASK
    if size == 4:
        return (_turned(state ^ value * _P1 & _MASK, 23) * _P2 + _P3) & _MASK
    return _turned(state ^ value * _P5 & _MASK, 11) * _P1 & _MASK
