"""Read the rows of a table some thousand at a time, where that is simple.

A group of lines is simple if each of them is one row: no cell holds a line break, no
line is blank. Most tables consist of nothing else, and then whole groups go through the
standard library's C code instead of one row after the other. From the first group on
that is not simple, `reprobundle.outputs.tables` reads the rest.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import BinaryIO, NamedTuple

from reprobundle.outputs.tables import DELIMITERS

BLOCK_ROWS = 4096
BLOCK_BYTES = 8 << 20
_READ_BYTES = 2 << 20
# Beyond that a csv reader refuses a cell.
_LONGEST_LINE_BYTES = 1 << 17
_BOM = b"\xef\xbb\xbf"


class SimpleRows(NamedTuple):
    """Rows of which each is one line.

    Attributes:
        data: Their bytes, line endings included.
        raws: The same, row by row.
        delimiter: Between their cells.
        has_quotes: Whether some cell may be quoted.
    """

    data: bytes
    raws: Sequence[bytes]
    delimiter: str
    has_quotes: bool

    def columns(self) -> list[list[str]] | None:
        """Return the cells by column; None if the rows differ in length."""
        if self.has_quotes:
            return by_column([*_parsed(self.raws, self.delimiter)])
        text = self.data.removeprefix(_BOM).decode()
        lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
        counts = set(map(str.count, lines, repeat(self.delimiter)))
        if len(counts) != 1:
            return None
        width = counts.pop() + 1
        cells = self.delimiter.join(lines).split(self.delimiter)
        return [cells[place::width] for place in range(width)]


def by_column(rows: Sequence[Sequence[str]]) -> list[list[str]] | None:
    """Return the cells of rows by column; None if the rows differ in length."""
    if len(set(map(len, rows))) != 1:
        return None
    return [list(column) for column in zip(*rows, strict=True)]


class Divided(NamedTuple):
    """A table, read as far as it is simple.

    Attributes:
        simple: Groups of 4,096 rows, the last one of a table shorter.
        rest: What follows them, from the start of a row; read it after `simple`.
    """

    simple: Iterator[SimpleRows]
    rest: Rest


class Rest(io.RawIOBase):
    """What is left of a stream behind bytes that were read too early.

    Attributes:
        early: Those bytes.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.early = b""

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Read what was read too early, then the stream."""
        data = self.early[: len(buffer)] or self._stream.read(len(buffer))
        self.early = self.early[len(data) :]
        buffer[: len(data)] = data
        return len(data)


def divide(stream: BinaryIO, file_format: str) -> Divided:
    """Return the simple groups of a table, and what follows them.

    Args:
        stream: Read from its start.
        file_format: ``csv`` or ``tsv``.
    """
    rest = Rest(stream)
    return Divided(_groups(stream, DELIMITERS[file_format], rest), rest)


def _groups(stream: BinaryIO, delimiter: str, rest: Rest) -> Iterator[SimpleRows]:
    held, ended = b"", False
    while not ended:
        data = stream.read(_READ_BYTES)
        ended = not data
        lines = (held + data).splitlines(keepends=True)
        # What follows the last whole group is read again with what comes next.
        whole = len(lines) if ended else (len(lines) - 1) // BLOCK_ROWS * BLOCK_ROWS
        for start in range(0, whole, BLOCK_ROWS):
            group = _simple(lines[start : min(start + BLOCK_ROWS, whole)], delimiter)
            if group is None:
                rest.early = b"".join(lines[start:])
                return
            yield group
        held = b"".join(lines[max(0, whole) :])
        if len(held) > BLOCK_BYTES:
            rest.early = held
            return


def _simple(lines: list[bytes], delimiter: str) -> SimpleRows | None:
    data = b"".join(lines)
    if (
        len(data) > BLOCK_BYTES
        or b"\0" in data
        or b"\n\n" in data
        or b"\n\r\n" in data
        or data.startswith((b"\n", b"\r", _BOM + b"\n", _BOM + b"\r"))
        or (b"\r" in data and data.count(b"\r") != data.count(b"\r\n"))
        or max(map(len, lines)) > _LONGEST_LINE_BYTES
        or not (data.isascii() or _is_plain_utf8(data))
    ):
        return None
    group = SimpleRows(data, lines, delimiter, has_quotes=b'"' in data)
    return group if not group.has_quotes or _is_row_a_line(group) else None


def _is_plain_utf8(data: bytes) -> bool:
    """Whether it can be decoded, and has no mark of byte order but a first one."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return data.find(_BOM, 1) < 0


def _is_row_a_line(group: SimpleRows) -> bool:
    try:
        rows = sum(1 for row in _parsed(group.raws, group.delimiter) if row)
    except csv.Error:
        return False
    return rows == len(group.raws)


def _parsed(raws: Sequence[bytes], delimiter: str) -> Iterator[list[str]]:
    text = [raw.decode() for raw in raws]
    text[0] = text[0].removeprefix(_BOM.decode())
    return csv.reader(text, delimiter=delimiter, strict=True)
