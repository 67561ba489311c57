"""Compressed content: independent zstd frames, one for each chunk of 4 MiB.

The library is asked for one frame at a time, and only after the frame's own header
was read here: its one-call decoder stops silently behind the first frame, and ignores
the size limit given to it when the frame states a size of its own.

Source: RFC 8878, section 3.1.1; spec.md, "Compressed members".
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from reprobundle.errors import StructureError
from reprobundle.format import limits
from reprobundle.format.source import ByteSource

if TYPE_CHECKING:
    import zstandard

MAGIC = 0xFD2FB528
CHECKSUM_BYTES = 4
HEADER_BYTES = 18
BLOCK_HEADER_BYTES = 3
BLOCK_LIMIT_BYTES = 128 << 10
BLOCK_COUNT = 4096
"""Blocks in one frame; encoders make 32 of a chunk, and some more where they split."""

SAMPLE_BYTES = 64 << 10
SAMPLE_COUNT = 16
WORTH_RATIO = 0.875
"""Stored size over plain size up to which compression is worth a decoder's time."""

SAMPLED_BYTES = SAMPLE_COUNT * SAMPLE_BYTES
"""Above this size samples take less time than what they save."""

QUICK_LEVEL, CLOSE_LEVEL = 1, 3
CLOSER_RATIO = 31 / 32
"""Size at level 3 over size at level 1 below which level 3 is worth its time."""

_RLE, _COMPRESSED = 1, 2  # kinds of a block; 0 is raw, 3 is not allowed

ReadAt = Callable[[int, int], bytes]

_local = threading.local()


class Span(NamedTuple):
    """Where the stored bytes of one chunk lie, and how many plain bytes they hold."""

    offset: int
    length: int
    plain_bytes: int


def compress(data: bytes | bytearray | memoryview, level: int) -> bytes:
    """Return one chunk as one frame that states its size and a checksum.

    The call without streaming is used on purpose: the streaming ones give other bytes.
    """
    compressors: dict[int, zstandard.ZstdCompressor] = _local.__dict__.setdefault(
        "compressors", {}
    )
    compressor = compressors.get(level)
    if compressor is None:
        import zstandard

        compressor = compressors[level] = zstandard.ZstdCompressor(
            level=level, write_checksum=True, write_content_size=True, threads=0
        )
    return compressor.compress(data)


def decompress(frame: bytes | bytearray, plain_bytes: int, *, where: str) -> bytes:
    """Return the chunk in one whole frame whose header `find_spans` has checked.

    Raises:
        StructureError: The frame is damaged or holds another number of bytes.
    """
    import zstandard

    decompressor = _local.__dict__.get("decompressor")
    if decompressor is None:
        decompressor = _local.decompressor = zstandard.ZstdDecompressor(
            max_window_size=limits.WINDOW_BYTES
        )
    try:
        plain: bytes = decompressor.decompress(
            frame, max_output_size=plain_bytes, allow_extra_data=False
        )
    except zstandard.ZstdError as error:
        message = f"a zstd frame cannot be decoded: {error}"
        raise StructureError(message, rule="R-4.22", where=where) from error
    if len(plain) != plain_bytes:
        message = f"a zstd frame holds {len(plain):,} bytes, stated {plain_bytes:,}"
        raise StructureError(message, rule="R-4.22", where=where)
    return plain


def best_level(read_at: ReadAt, size_bytes: int) -> int:
    """Return the level at which a content is best compressed; 0 to leave it as it is.

    A fixed function of the content: sixteen samples of 64 KiB, evenly spread. If level
    1 shrinks them by less than an eighth, the content is left as it is. Level 3 takes
    two to four times as long as level 1, and makes tables of numbers and tokens even
    larger; so it has to make the samples smaller by a thirty-second to be chosen.

    Args:
        read_at: Returns the content from an offset on, at most a number of bytes.
        size_bytes: Size of the content, more than `SAMPLED_BYTES`.
    """
    step = (size_bytes - SAMPLE_BYTES) // (SAMPLE_COUNT - 1)
    samples = [read_at(n * step, SAMPLE_BYTES) for n in range(SAMPLE_COUNT)]
    plain = sum(map(len, samples))
    quick = sum(len(compress(sample, QUICK_LEVEL)) for sample in samples)
    if quick > plain * WORTH_RATIO:
        return 0
    close = sum(len(compress(sample, CLOSE_LEVEL)) for sample in samples)
    return CLOSE_LEVEL if close < quick * CLOSER_RATIO else QUICK_LEVEL


def find_spans(
    source: ByteSource, start: int, end: int, size_bytes: int, *, where: str
) -> Iterator[Span]:
    """Yield the frames that lie in ``start:end`` of a file, without decoding them.

    Args:
        source: The open file; once it is closed, no further frame is found.
        start: Where the member's stored bytes start.
        end: Where they end.
        size_bytes: Its plain size; it decides how much each frame must hold.
        where: Name of the member, for messages.

    Raises:
        StructureError: A frame is not as the format allows, or the frames do not fill
            the stretch exactly.
    """
    offset = start
    done = 0
    while done < size_bytes:
        expected = min(limits.CHUNK_BYTES, size_bytes - done)
        length = _frame_length(source, offset, end, expected, where)
        yield Span(offset, length, expected)
        offset += length
        done += expected
    if offset != end:
        message = f"{end - offset:,} stored bytes behind the last zstd frame"
        raise StructureError(message, rule="R-4.21", where=where)


def _frame_length(
    source: ByteSource, start: int, end: int, expected: int, where: str
) -> int:
    head = source.read_at(start, min(HEADER_BYTES, end - start))
    header_bytes = _check_header(head, expected, where)
    offset = start + header_bytes
    for _ in range(BLOCK_COUNT):
        raw = source.read_at(offset, BLOCK_HEADER_BYTES)
        header = int.from_bytes(raw, "little")
        kind, size_bytes = header >> 1 & 3, header >> 3
        stored = 1 if kind == _RLE else size_bytes
        if len(raw) < BLOCK_HEADER_BYTES or kind > _COMPRESSED:
            raise _bad_frame("has a damaged block", where)
        if size_bytes > BLOCK_LIMIT_BYTES:
            raise _bad_frame("has a block above 128 KiB", where)
        offset += BLOCK_HEADER_BYTES + stored
        if header & 1:
            break
    else:
        raise _bad_frame(f"has more than {BLOCK_COUNT:,} blocks", where)
    length = offset + CHECKSUM_BYTES - start
    if start + length > end or length > limits.FRAME_BYTES:
        raise _bad_frame("is longer than its place", where)
    return length


def _check_header(head: bytes, expected: int, where: str) -> int:
    """Refuse a frame header that does not state `expected` bytes; return its length."""
    if len(head) < 6 or int.from_bytes(head[:4], "little") != MAGIC:
        raise _bad_frame("does not start where one is due", where)
    descriptor = head[4]
    single_segment = descriptor >> 5 & 1
    if descriptor & 0b11011 or not descriptor & 0b100:
        raise _bad_frame("needs a dictionary or has no checksum", where)
    size_field = (single_segment, 2, 4, 8)[descriptor >> 6]
    start = 5 if single_segment else 6
    if not size_field or len(head) < start + size_field:
        raise _bad_frame("does not state its size", where)
    stated = int.from_bytes(head[start : start + size_field], "little")
    stated += 256 if size_field == 2 else 0
    if stated != expected:
        message = f"states {stated:,} bytes, expected {expected:,}"
        raise _bad_frame(message, where)
    if not single_segment:
        base = 1 << (10 + (head[5] >> 3))
        if base + base // 8 * (head[5] & 7) > limits.WINDOW_BYTES:
            raise _bad_frame("asks for a window above 8 MiB", where)
    return start + size_field


def _bad_frame(message: str, where: str) -> StructureError:
    return StructureError(f"a zstd frame {message}", rule="R-4.20", where=where)
