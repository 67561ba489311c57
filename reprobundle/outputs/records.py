"""The records of a table, of JSON Lines or of a text: their bytes and their columns.

A record is a row of a table, its header too, or a line. Blank lines of tables and of
JSON Lines are none.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import BinaryIO, NamedTuple

from reprobundle.errors import UnreadableOutputError
from reprobundle.format.record import ColumnSummary
from reprobundle.outputs.cells import Cell, read_cell
from reprobundle.outputs.column_sums import ColumnSums
from reprobundle.outputs.documents import flatten, parse_line
from reprobundle.outputs.row_blocks import (
    BLOCK_BYTES,
    BLOCK_ROWS,
    SimpleRows,
    by_column,
    divide,
)
from reprobundle.outputs.tables import columns_of, raw_rows
from reprobundle.outputs.text import LONGEST_LINE_BYTES, split_numbers

MOST_COLUMNS = 1_000
"""Most columns of an output that is kept as a sample of its rows."""

_TABLES = ("csv", "tsv")
_BOM = b"\xef\xbb\xbf"


class Row(NamedTuple):
    """One record: its bytes, and for a table its cells."""

    raw: bytes
    cells: list[str]


class ParsedRows(NamedTuple):
    """Some records, read one by one."""

    rows: Sequence[Row]

    @property
    def raws(self) -> Sequence[bytes]:
        """Their bytes."""
        return [row.raw for row in self.rows]

    def columns(self) -> list[list[str]] | None:
        """Return the cells by column; None if the rows differ in length."""
        return by_column([row.cells for row in self.rows])


def read_groups(
    stream: BinaryIO, file_format: str
) -> Iterator[SimpleRows | ParsedRows]:
    """Yield the records of an output some thousand at a time, in order.

    Args:
        stream: Read from its start to its end.
        file_format: ``csv``, ``tsv``, ``jsonl`` or ``text``.

    Raises:
        UnreadableOutputError: It is no such output.
    """
    if file_format not in _TABLES:
        yield from map(ParsedRows, in_blocks(read_records(stream, file_format)))
        return
    divided = divide(stream, file_format)
    yield from divided.simple
    rest = io.BufferedReader(divided.rest)
    yield from map(ParsedRows, in_blocks(read_records(rest, file_format)))


def read_records(stream: BinaryIO, file_format: str) -> Iterator[Row]:
    """Yield the records of an output, in order.

    Args:
        stream: Read from its start to its end.
        file_format: ``csv``, ``tsv``, ``jsonl`` or ``text``.

    Raises:
        UnreadableOutputError: It is no such output.
    """
    if file_format in _TABLES:
        yield from map(Row._make, raw_rows(stream, file_format))
        return
    while line := stream.readline(LONGEST_LINE_BYTES + 1):
        if len(line) > LONGEST_LINE_BYTES:
            raise UnreadableOutputError("a line is longer than 16 MiB")
        if file_format == "text" or line.strip():
            yield Row(line, [])


class Sums:
    """What is known about all records, column by column.

    Args:
        file_format: ``csv``, ``tsv``, ``jsonl`` or ``text``.
    """

    def __init__(self, file_format: str) -> None:
        self._format = file_format
        self._columns: dict[str, ColumnSums] = {}
        self._records = 0

    def add(self, rows: Sequence[Row]) -> None:
        """Add records, in order.

        Raises:
            UnreadableOutputError: They are no such records, or have too many columns.
        """
        self.add_group(ParsedRows(rows))

    def add_group(self, group: SimpleRows | ParsedRows) -> None:
        """Add a group of records; see `add`."""
        raws = group.raws
        if self._format not in _TABLES:
            for raw in raws:
                self._add_line(raw)
                self._records += 1
        elif raws:
            self._add_columns(group.columns())
            self._records += len(raws)

    def _add_columns(self, columns: list[list[str]] | None) -> None:
        if columns is not None and not self._records:
            names, is_header = columns_of([column[0] for column in columns])
            self._named(names)
            columns = [column[is_header:] for column in columns]
        if columns is None or len(columns) != len(self._columns):
            raise UnreadableOutputError("the rows of the table differ in length")
        for sums, column in zip(self._columns.values(), columns, strict=True):
            sums.add_texts(column)

    def _named(self, names: Sequence[str]) -> None:
        for name in names:
            if name not in self._columns:
                if len(self._columns) == MOST_COLUMNS:
                    message = f"it has more than {MOST_COLUMNS:,} columns"
                    raise UnreadableOutputError(message)
                self._columns[name] = ColumnSums()

    def _add_line(self, raw: bytes) -> None:
        if self._format == "text":
            self._named(("",))
            self._columns[""].add_cells(_cells_of_text(raw))
            return
        for column, place, cell in _leaves(raw):
            self._named((column,))
            where = ".".join(map(str, (self._records, *place)))
            self._columns[column].add_cells((cell,), f"{where}=")

    def summaries(self) -> tuple[ColumnSummary, ...]:
        """Return one summary for each column."""
        return tuple(sums.summary(name) for name, sums in self._columns.items())


def _cells_of_text(raw: bytes) -> Iterator[Cell]:
    """Yield a line with its numbers masked as one cell, then each number."""
    masked, numbers = split_numbers(raw.decode("utf-8", "surrogateescape"))
    yield Cell("text", masked)
    yield from map(read_cell, numbers)


def _leaves(raw: bytes) -> Iterator[tuple[str, tuple[int, ...], Cell]]:
    try:
        value = parse_line(raw.removeprefix(_BOM).decode())
        for leaf in flatten(value, (), "[]", ()):
            yield leaf.column, leaf.place, leaf.cell
    except (ValueError, RecursionError) as error:
        message = f"not readable jsonl: {error}"
        raise UnreadableOutputError(message) from error


def in_blocks(rows: Iterator[Row]) -> Iterator[list[Row]]:
    """Yield records some thousand at a time, fewer where they are long."""
    block: list[Row] = []
    size_bytes = 0
    for row in rows:
        block.append(row)
        size_bytes += len(row.raw)
        if len(block) == BLOCK_ROWS or size_bytes > BLOCK_BYTES:
            yield block
            block, size_bytes = [], 0
    if block:
        yield block
