"""The ZIP structures of a bundle: one canonical form, written here and compared here.

Every entry is STORED, with fixed flags, times and attributes, so five facts say all of
it (`Entry`) and its bytes follow from them. A reader therefore parses leniently, writes
the same structure again and compares: any other byte, hidden extra field, comment,
descriptor or disagreement between the two headers is a difference.

Source: PKWARE APPNOTE.TXT 6.3.10, sections 4.3 to 4.5; spec.md, "Container".
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterable, Sequence

import msgspec

from reprobundle.errors import LimitError
from reprobundle.format import limits
from reprobundle.format.positions import write_at
from reprobundle.format.write_behind import WriteBehind

LOCAL = struct.Struct("<IHHHHHIIIHH")
CENTRAL = struct.Struct("<IHHHHHHIIIHHHHHII")
END = struct.Struct("<IHHHHIIH")
END64 = struct.Struct("<IQHHIIQQQQ")
LOCATOR = struct.Struct("<IIQI")

LOCAL_SIGNATURE = 0x04034B50
CENTRAL_SIGNATURE = 0x02014B50
END_SIGNATURE = 0x06054B50
END64_SIGNATURE = 0x06064B50
LOCATOR_SIGNATURE = 0x07064B50

FLAGS = 0x0800  # names are UTF-8; nothing else is allowed
STORED = 0
TIME = 0
DATE = 0x0021  # 1980-01-01, the earliest a ZIP file can state
MADE_BY_UNIX = 3 << 8
ATTRIBUTES = 0o100644 << 16  # a regular file, never a link or a device
VERSION_PLAIN = 20
VERSION_ZIP64 = 45
FULL32 = 0xFFFFFFFF
FULL16 = 0xFFFF

ZIP64_ID = 0x0001
PADDING_ID = 0x4246  # b"FB", as torch.save pads its records
LOCAL_ZIP64_BYTES = 20
PADDING_LIMIT_BYTES = 4 + limits.ALIGN_BYTES - 1

# An entry below 4 GiB has one form, of which only a few numbers are its own. A bundle
# has thousands of them, each written, and each compared when it is read.
_LOCAL_START = struct.pack(
    "<IHHHHH", LOCAL_SIGNATURE, VERSION_PLAIN, FLAGS, STORED, TIME, DATE
)
_SMALL_LOCAL = struct.Struct("<14sIIIHH")
_CENTRAL_START = struct.pack(
    "<IHHHHHH",
    CENTRAL_SIGNATURE,
    MADE_BY_UNIX | VERSION_PLAIN,
    VERSION_PLAIN,
    FLAGS,
    STORED,
    TIME,
    DATE,
)
_CENTRAL_END = struct.pack("<HHHHI", 0, 0, 0, 0, ATTRIBUTES)
_SMALL_CENTRAL = struct.Struct("<16sIIIH12sI")

_PENDING_BYTES = 1 << 20


class Entry(msgspec.Struct, frozen=True, gc=False):
    """All that a ZIP file of ours says about one of its files.

    Attributes:
        name: Name of the entry.
        crc32: Checksum of the stored bytes.
        size_bytes: Number of stored bytes.
        offset: Where its local header starts.
        padding_bytes: Length of the padding field in the local header, 0 or from 4 on.
    """

    name: str
    crc32: int
    size_bytes: int
    offset: int
    padding_bytes: int = 0

    @property
    def data_offset(self) -> int:
        """Where its stored bytes start."""
        return self.offset + header_bytes(
            self.name, self.size_bytes, self.padding_bytes
        )

    @property
    def end(self) -> int:
        """Where its stored bytes end, and the next structure starts."""
        return self.data_offset + self.size_bytes


def header_bytes(name: str, size_bytes: int, padding_bytes: int) -> int:
    """Return the length of a local header."""
    extra_bytes = padding_bytes
    if size_bytes >= FULL32:
        extra_bytes += LOCAL_ZIP64_BYTES
    name_bytes = len(name) if name.isascii() else len(name.encode())
    return LOCAL.size + name_bytes + extra_bytes


def alignment_padding(name: str, size_bytes: int, offset: int) -> int:
    """Return the padding that aligns the data of an entry starting at `offset`."""
    start = offset + header_bytes(name, size_bytes, 4)
    return 4 + -start % limits.ALIGN_BYTES


def local_header(entry: Entry) -> bytes:
    """Return the local header of `entry`."""
    name = entry.name.encode()
    size_bytes = entry.size_bytes
    extra = _padding(entry.padding_bytes) if entry.padding_bytes else b""
    if size_bytes < FULL32:
        numbers = (entry.crc32, size_bytes, size_bytes, len(name), len(extra))
        return _SMALL_LOCAL.pack(_LOCAL_START, *numbers) + name + extra
    extra = struct.pack("<HHQQ", ZIP64_ID, 16, size_bytes, size_bytes) + extra
    return (
        LOCAL.pack(
            LOCAL_SIGNATURE,
            VERSION_ZIP64,
            FLAGS,
            STORED,
            TIME,
            DATE,
            entry.crc32,
            FULL32,
            FULL32,
            len(name),
            len(extra),
        )
        + name
        + extra
    )


def _padding(size_bytes: int) -> bytes:
    """Return the extra field that takes `size_bytes`, at least 4."""
    return struct.pack("<HH", PADDING_ID, size_bytes - 4) + bytes(size_bytes - 4)


def central_header(entry: Entry) -> bytes:
    """Return the directory's record of `entry`."""
    name = entry.name.encode()
    size_bytes, offset = entry.size_bytes, entry.offset
    if size_bytes < FULL32 and offset < FULL32:
        numbers = (entry.crc32, size_bytes, size_bytes, len(name))
        return (
            _SMALL_CENTRAL.pack(_CENTRAL_START, *numbers, _CENTRAL_END, offset) + name
        )
    extra = b""
    if size_bytes >= FULL32:
        extra = struct.pack("<QQ", size_bytes, size_bytes)
    if offset >= FULL32:
        extra += struct.pack("<Q", offset)
    extra = struct.pack("<HH", ZIP64_ID, len(extra)) + extra
    stated = min(size_bytes, FULL32)
    return (
        CENTRAL.pack(
            CENTRAL_SIGNATURE,
            MADE_BY_UNIX | VERSION_ZIP64,
            VERSION_ZIP64,
            FLAGS,
            STORED,
            TIME,
            DATE,
            entry.crc32,
            stated,
            stated,
            len(name),
            len(extra),
            0,
            0,
            0,
            ATTRIBUTES,
            min(offset, FULL32),
        )
        + name
        + extra
    )


def end_records(count: int, directory_bytes: int, offset: int) -> bytes:
    """Return what closes the file: the end record, behind its ZIP64 form if needed.

    Args:
        count: Number of entries.
        directory_bytes: Size of the directory.
        offset: Where the directory starts.
    """
    records = b""
    if count >= FULL16 or offset >= FULL32 or directory_bytes >= FULL32:
        records = END64.pack(
            END64_SIGNATURE,
            END64.size - 12,
            MADE_BY_UNIX | VERSION_ZIP64,
            VERSION_ZIP64,
            0,
            0,
            count,
            count,
            directory_bytes,
            offset,
        ) + LOCATOR.pack(LOCATOR_SIGNATURE, 0, offset + directory_bytes, 1)
    stated = min(count, FULL16)
    return records + END.pack(
        END_SIGNATURE,
        0,
        0,
        stated,
        stated,
        min(directory_bytes, FULL32),
        min(offset, FULL32),
        0,
    )


def closing_bytes(entries: Iterable[Entry], offset: int) -> bytes:
    """Return the directory of `entries` and the end records, to lie at `offset`."""
    records = [central_header(entry) for entry in entries]
    directory = b"".join(records)
    return directory + end_records(len(records), len(directory), offset)


class ArchiveWriter:
    """Write entries one after another into an open file, then the directory.

    It holds less than 2 MiB of pending bytes. Raises OSError as the system does.
    """

    def __init__(
        self,
        descriptor: int,
        *,
        offset: int = 0,
        entries: Sequence[Entry] = (),
        behind: WriteBehind | None = None,
    ) -> None:
        """Write to `descriptor` from `offset` on, behind the `entries` before it.

        Args:
            descriptor: The open file.
            offset: Where the first byte goes.
            entries: What lies before it.
            behind: A thread that writes to the same file; without it nothing is
                written later than asked for.
        """
        self.entries = list(entries)
        self._descriptor = descriptor
        self._behind = behind
        self._offset = offset
        self._pending: list[bytes] = []
        self._pending_bytes = 0

    @property
    def offset(self) -> int:
        """Where the next byte goes."""
        return self._offset + self._pending_bytes

    def add(self, name: str, data: bytes, *, aligned: bool) -> None:
        """Write one whole entry."""
        self.add_counted(name, data, zlib.crc32(data), aligned=aligned)

    def add_counted(self, name: str, data: bytes, crc32: int, *, aligned: bool) -> None:
        """Write one whole entry whose checksum is known."""
        size_bytes = len(data)
        padding = alignment_padding(name, size_bytes, self.offset) if aligned else 0
        entry = Entry(name, crc32, size_bytes, self.offset, padding)
        self.entries.append(entry)
        self.write(local_header(entry))
        self.write(data)

    def begin(self, name: str, most_bytes: int, *, aligned: bool) -> None:
        """Start an entry of at most `most_bytes`; `write` its bytes, then `finish`.

        Room for a ZIP64 field is kept when `most_bytes` may need one. If in the end it
        does not, the room becomes padding, so that the size of the header never moves.
        """
        padding = alignment_padding(name, most_bytes, self.offset) if aligned else 0
        self._begun = Entry(name, 0, most_bytes, self.offset, padding)
        self.write(bytes(self._begun.data_offset - self._begun.offset))

    def finish(self, crc32: int) -> None:
        """End the entry begun: its header is written now that its size is known."""
        self.flush()
        begun = self._begun
        size_bytes = self._offset - begun.data_offset
        padding = begun.padding_bytes
        if begun.size_bytes >= FULL32 > size_bytes:
            padding += LOCAL_ZIP64_BYTES
        entry = Entry(begun.name, crc32, size_bytes, begun.offset, padding)
        self._put(local_header(entry), begun.offset)
        self.entries.append(entry)

    def write(self, data: bytes) -> None:
        """Append bytes as they are."""
        if len(data) >= _PENDING_BYTES:
            self.flush()
            self._put(data, self._offset)
            self._offset += len(data)
            return
        self._pending.append(data)
        self._pending_bytes += len(data)
        if self._pending_bytes >= _PENDING_BYTES:
            self.flush()

    def flush(self) -> None:
        """Hand the pending bytes to the system."""
        if self._pending:
            self._put(b"".join(self._pending), self._offset)
        self._offset += self._pending_bytes
        self._pending = []
        self._pending_bytes = 0

    def close_directory(self) -> int:
        """Write the directory, cut off what lies behind it, return the file's size.

        Raises:
            LimitError: No reader would take a directory of this size.
        """
        closing = closing_bytes(self.entries, self.offset)
        if len(closing) > limits.DIRECTORY_BYTES:
            message = f"a directory of {len(closing):,} bytes is more than is read"
            raise LimitError(message, rule="R-4.4", advice="pack fewer files")
        self.write(closing)
        self.flush()
        if self._behind is not None:
            self._behind.drain()
        os.ftruncate(self._descriptor, self._offset)
        return self._offset

    def _put(self, data: bytes, offset: int) -> None:
        if self._behind is None:
            write_all(self._descriptor, data, offset)
        else:
            self._behind.write(data, offset)


def write_all(descriptor: int, data: bytes, offset: int) -> None:
    """Write all of `data` from `offset` on."""
    written = write_at(descriptor, data, offset)
    while written < len(data):
        written += write_at(descriptor, memoryview(data)[written:], offset + written)


def combine_crc32(first: int, second: int, second_bytes: int) -> int:
    """Return the CRC-32 of two stretches from the CRC-32 of each.

    Source: zlib, crc32.c, ``crc32_combine``: appending zero bytes is linear over
    GF(2), so it is one 32x32 matrix, found by repeated squaring.
    """
    return _apply(_zeros_operator(second_bytes), first) ^ second


_operators: dict[int, tuple[int, ...]] = {}


def _apply(matrix: Sequence[int], vector: int) -> int:
    total = 0
    row = 0
    while vector:
        if vector & 1:
            total ^= matrix[row]
        vector >>= 1
        row += 1
    return total


def _zeros_operator(count: int) -> tuple[int, ...]:
    known = _operators.get(count)
    if known is not None:
        return known
    one_bit: tuple[int, ...] = (0xEDB88320, *(1 << row for row in range(31)))
    power = one_bit
    for _ in range(3):  # from one bit to one byte
        power = tuple(_apply(power, row) for row in power)
    result = tuple(1 << row for row in range(32))
    rest = count
    while rest:
        if rest & 1:
            result = tuple(_apply(power, row) for row in result)
        power = tuple(_apply(power, row) for row in power)
        rest >>= 1
    if len(_operators) < 64:
        _operators[count] = result
    return result
