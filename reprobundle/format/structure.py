"""Prove that each byte of a ZIP file belongs to exactly one entry, and hides nothing.

`read_directory` finds the entries of any ZIP file within the limits; `prove_structure`
then accepts only the canonical form. Between the two a caller may look at the
manifest's version: a newer major version may have other rules.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import msgspec

from reprobundle.errors import (
    LimitError,
    NotABundleError,
    StructureError,
)
from reprobundle.format import archive, limits
from reprobundle.format.archive import Entry
from reprobundle.format.source import ByteSource, read_exactly
from reprobundle.format.structure_errors import (
    bad_count,
    bad_zip64,
    explain_directory,
    explain_local,
    not_a_zip,
)

_COMMENT_BYTES = 0xFFFF
_LONGEST_END_BYTES = archive.END64.size + archive.LOCATOR.size + archive.END.size

_LENGTHS = struct.Struct("<HH")

_HEADS_BYTES = 256 << 10
_SMALL_ENTRY_BYTES = 32 << 10
"""Below this size the copy of what lies between two headers costs less than a call."""


class Directory(NamedTuple):
    """The directory of a ZIP file, as far as it can be read without trusting it.

    Attributes:
        entries: The entries in the order of the directory; padding is not known yet.
        offset: Where the directory starts.
        data: The directory's bytes.
        tail: The end records' bytes.
    """

    entries: list[Entry]
    offset: int
    data: bytes
    tail: bytes


def read_directory(source: ByteSource) -> Directory:
    """Return the directory of an open file.

    Raises:
        NotABundleError: It is no ZIP file, or one that was cut short.
        LimitError: It states more entries or a larger directory than allowed.
        StructureError: Its end records contradict the file or each other.
        UnsafeNameError: Never; names are the caller's to check.
    """
    tail = _read_end(source)
    count, directory_bytes, offset, tail = _parse_end(tail)
    if count > limits.ENTRY_COUNT:
        message = f"{count:,} entries stated, at most {limits.ENTRY_COUNT:,} are read"
        raise LimitError(message, rule="R-4.4")
    if directory_bytes > limits.DIRECTORY_BYTES:
        message = (
            f"a directory of {directory_bytes:,} bytes stated, at most "
            f"{limits.DIRECTORY_BYTES:,} are read"
        )
        raise LimitError(message, rule="R-4.4")
    start_of_end = source.size_bytes - len(tail)
    if offset + directory_bytes != start_of_end:
        raise StructureError(
            f"the directory is said to end at byte {offset + directory_bytes:,}, "
            f"the end record starts at {start_of_end:,}",
            rule="R-4.5",
            advice="the file is incomplete or something was put into it",
        )
    data = read_exactly(source, offset, directory_bytes)
    return Directory(_parse_records(data, count), offset, data, tail)


def prove_structure(source: ByteSource, directory: Directory) -> list[Entry]:
    """Return the entries of `directory`, each with its place in the file proven.

    Raises:
        StructureError: Any byte is not what the canonical form of these entries has.
    """
    position = 0
    proven = []
    heads = _Heads(source)
    for entry in directory.entries:
        if entry.offset != position:
            what = "bytes belong to no entry" if entry.offset > position else "overlaps"
            raise StructureError(
                f"{what}: starts at byte {entry.offset:,}, expected {position:,}",
                rule="R-4.11",
                where=entry.name,
            )
        known, header_bytes = _prove_local(heads, entry, directory.offset)
        proven.append(known)
        position += header_bytes + entry.size_bytes
    if position != directory.offset:
        raise StructureError(
            f"the entries end at byte {position:,}, the directory starts at "
            f"{directory.offset:,}",
            rule="R-4.11",
        )
    _prove_directory(proven, directory)
    return proven


def derive_structure(directory: Directory) -> list[Entry]:
    """Return the entries of `directory`, each with the place that it leaves for it.

    Entries lie one behind another, so the directory alone says where each ends. What
    stands there is not looked at: `prove_entry` compares the header of one.

    Raises:
        StructureError: The directory is not in canonical form, or leaves bytes that
            belong to no entry.
    """
    starts = [*(entry.offset for entry in directory.entries), directory.offset]
    if starts[0]:
        raise _no_entry_at("", 0)
    derived = []
    for entry, end in zip(directory.entries, starts[1:], strict=True):
        padding = end - msgspec.structs.replace(entry, padding_bytes=0).end
        if padding and not 4 <= padding <= archive.PADDING_LIMIT_BYTES:
            raise _no_entry_at(entry.name, entry.end)
        derived.append(msgspec.structs.replace(entry, padding_bytes=padding))
    _prove_directory(derived, directory)
    return derived


def prove_entry(source: ByteSource, entry: Entry) -> None:
    """Compare the local header of one entry with what the directory says of it.

    Raises:
        StructureError: Any byte differs.
    """
    expected = archive.local_header(entry)
    head = read_exactly(source, entry.offset, len(expected))
    if head != expected:
        raise explain_local(entry, head)


def _prove_directory(entries: list[Entry], directory: Directory) -> None:
    if archive.closing_bytes(entries, directory.offset) != (
        directory.data + directory.tail
    ):
        raise explain_directory(directory.entries, directory.data)


def _no_entry_at(name: str, offset: int) -> StructureError:
    return StructureError(
        f"from byte {offset:,} on, bytes belong to no entry or to two",
        rule="R-4.11",
        where=name,
    )


def _read_end(source: ByteSource) -> bytes:
    """Return the last bytes, proven to end in an end record without a comment."""
    size_bytes = source.size_bytes
    if not size_bytes:
        raise NotABundleError("the file is empty", rule="R-4.1")
    length = min(_LONGEST_END_BYTES, size_bytes)
    tail = read_exactly(source, size_bytes - length, length)
    signature = archive.END_SIGNATURE.to_bytes(4, "little")
    end = tail[-archive.END.size :]
    if len(tail) >= archive.END.size and end.startswith(signature):
        if end[-2:] != b"\0\0":
            raise StructureError("the end record states a comment", rule="R-4.2")
        return tail
    length = min(_COMMENT_BYTES + archive.END.size, size_bytes)
    area = read_exactly(source, size_bytes - length, length)
    found = area.rfind(signature)
    if found >= 0:
        behind = length - found - archive.END.size
        raise StructureError(
            f"{behind:,} bytes behind the end record"
            if behind > 0
            else "the end record is incomplete",
            rule="R-4.2" if behind > 0 else "R-4.1",
            advice="the file was changed or cut after it was written",
        )
    raise not_a_zip(read_exactly(source, 0, min(64, size_bytes)))


def _parse_end(tail: bytes) -> tuple[int, int, int, bytes]:
    """Return count, size and offset of the directory, and the end records' bytes."""
    end = tail[-archive.END.size :]
    _, _, _, _, count, directory_bytes, offset, _ = archive.END.unpack(end)
    if (
        count < archive.FULL16
        and directory_bytes < archive.FULL32
        and offset < archive.FULL32
    ):
        return count, directory_bytes, offset, end
    if len(tail) < _LONGEST_END_BYTES:
        raise bad_zip64("its record is missing")
    end64 = archive.END64.unpack(tail[: archive.END64.size])
    locator = archive.LOCATOR.unpack(tail[archive.END64.size : -archive.END.size])
    if end64[0] != archive.END64_SIGNATURE or locator[0] != archive.LOCATOR_SIGNATURE:
        raise bad_zip64("its record is missing")
    return end64[7], end64[8], end64[9], tail


def _parse_records(data: bytes, count: int) -> list[Entry]:
    entries: list[Entry] = []
    position = 0
    for _ in range(count):
        if len(data) - position < archive.CENTRAL.size:
            raise bad_count(count, len(entries))
        fields = archive.CENTRAL.unpack_from(data, position)
        if fields[0] != archive.CENTRAL_SIGNATURE:
            raise bad_count(count, len(entries))
        name_bytes, extra_bytes, comment_bytes = fields[10:13]
        position += archive.CENTRAL.size
        name = _decode_name(data[position : position + name_bytes])
        extra = data[position + name_bytes : position + name_bytes + extra_bytes]
        size_bytes, offset = _parse_zip64(fields[9], fields[16], extra)
        entries.append(Entry(name, fields[7], size_bytes, offset))
        position += name_bytes + extra_bytes + comment_bytes
    if position != len(data):
        raise StructureError(
            f"{len(data) - position:,} bytes of the directory belong to no entry",
            rule="R-4.5",
        )
    return entries


def _parse_zip64(size_bytes: int, offset: int, extra: bytes) -> tuple[int, int]:
    if size_bytes != archive.FULL32 and offset != archive.FULL32:
        return size_bytes, offset
    # In this order and no other: size, compressed size, offset, each if it is full.
    count = (2 if size_bytes == archive.FULL32 else 0) + (offset == archive.FULL32)
    layout = struct.Struct(f"<HH{count}Q")
    if len(extra) != layout.size:
        raise bad_zip64("its field is missing or too long")
    kind, length, *values = layout.unpack(extra)
    if kind != archive.ZIP64_ID or length != 8 * count:
        raise bad_zip64("its field is missing or too long")
    if size_bytes == archive.FULL32:
        size_bytes = values[0]
    if offset == archive.FULL32:
        offset = values[-1]
    return size_bytes, offset


def _decode_name(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise StructureError(
            f"the entry name {raw[:40]!r} is not UTF-8", rule="R-4.14"
        ) from error


class _Heads:
    """Reads local headers, many of them at once where the entries are small."""

    def __init__(self, source: ByteSource) -> None:
        self._source = source
        self._start = 0
        self._data = b""

    def read(self, entry: Entry, count: int) -> bytes:
        """Return at most `count` bytes from the start of `entry` on."""
        at = entry.offset - self._start
        if at < 0 or at + count > len(self._data):
            # What lies up to the next header is read in vain.
            is_small = entry.size_bytes < _SMALL_ENTRY_BYTES
            ahead = _HEADS_BYTES if is_small and self._source.at_hand else count
            self._data = self._source.read_at(entry.offset, max(ahead, count))
            self._start, at = entry.offset, 0
        return self._data[at : at + count]


def _prove_local(heads: _Heads, entry: Entry, end: int) -> tuple[Entry, int]:
    """Return `entry` with its padding, and the length of its proven local header."""
    least = archive.header_bytes(entry.name, entry.size_bytes, 0)
    most = min(least + archive.PADDING_LIMIT_BYTES, end - entry.offset)
    head = heads.read(entry, max(most, 0))
    if len(head) < least or entry.offset + least + entry.size_bytes > end:
        raise StructureError(
            f"its {entry.size_bytes:,} bytes do not fit before the directory",
            rule="R-4.11",
            where=entry.name,
        )
    name_bytes, extra_bytes = _LENGTHS.unpack_from(head, archive.LOCAL.size - 4)
    length = archive.LOCAL.size + name_bytes + extra_bytes
    padding = length - least
    known = entry
    if 4 <= padding <= archive.PADDING_LIMIT_BYTES:
        known = Entry(entry.name, entry.crc32, entry.size_bytes, entry.offset, padding)
    if head[:length] != archive.local_header(known):
        raise explain_local(entry, head)
    return known, length
