"""Which columns and rows a CSV or TSV file holds, read row by row."""

from __future__ import annotations

import contextlib
import csv
import io
from collections.abc import Iterator
from itertools import chain, count
from typing import BinaryIO, NamedTuple

from reprobundle.errors import UnreadableOutputError
from reprobundle.outputs.cells import read_cell

MOST_COLUMNS = 10_000
LONGEST_LINE = 16 << 20
_BOM = "\ufeff"
DELIMITERS = {"csv": ",", "tsv": "\t"}


class Table(NamedTuple):
    """A table whose rows are read as they are asked for.

    Attributes:
        columns: Names, one for each column and no name twice; without a header row
            the columns are called ``1``, ``2`` and so on.
        rows: The rows below the header, each as long as `columns`, as text.
    """

    columns: tuple[str, ...]
    rows: Iterator[list[str]]


@contextlib.contextmanager
def open_table(stream: BinaryIO, file_format: str) -> Iterator[Table]:
    """Open the table in `stream`.

    The first row is the header unless one of its cells is a number.

    Args:
        stream: Read from where it stands; left open.
        file_format: ``csv`` or ``tsv``.

    Raises:
        UnreadableOutputError: Not UTF-8, a row of another length, or broken quotes;
            also while rows are read.
    """
    with _text_of(stream, "utf-8-sig") as text:
        yield _table(_rows(text, DELIMITERS[file_format]))


def raw_rows(stream: BinaryIO, file_format: str) -> Iterator[tuple[bytes, list[str]]]:
    """Yield every row of a table, the header too, with its own bytes.

    Args:
        stream: Read from its start; left open.
        file_format: ``csv`` or ``tsv``.

    Raises:
        UnreadableOutputError: Not UTF-8, or broken quotes.
    """
    lines: list[str] = []
    with _text_of(stream, "utf-8") as text:
        for row in _rows(text, DELIMITERS[file_format], seen=lines):
            if lines[0].startswith(_BOM):
                # It belongs to the file, not to the name of a column.
                row = [row[0].removeprefix(_BOM), *row[1:]]
            yield "".join(lines).encode(), row
            lines.clear()


@contextlib.contextmanager
def _text_of(stream: BinaryIO, encoding: str) -> Iterator[io.TextIOWrapper]:
    text = io.TextIOWrapper(stream, encoding=encoding, newline="")
    try:
        yield text
    finally:
        # The wrapper would close the caller's stream when it is collected.
        with contextlib.suppress(ValueError, OSError):
            text.detach()


def _rows(
    text: io.TextIOWrapper, delimiter: str, *, seen: list[str] | None = None
) -> Iterator[list[str]]:
    """Yield the rows; their lines, and blank ones before them, are added to `seen`."""
    reader = csv.reader(_lines(text, seen), delimiter=delimiter, strict=True)
    try:
        # A blank line is no row: writers differ in whether they end with one.
        yield from (row for row in reader if row)
    except (csv.Error, UnicodeDecodeError) as error:
        message = f"not a readable table near line {reader.line_num}: {error}"
        raise UnreadableOutputError(message) from error


def _lines(text: io.TextIOWrapper, seen: list[str] | None) -> Iterator[str]:
    keep = seen.append if seen is not None else lambda line: None
    while line := text.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE:
            raise UnreadableOutputError("a line of the table is longer than 16 MiB")
        keep(line)
        yield line


def _table(rows: Iterator[list[str]]) -> Table:
    first = next(rows, None)
    if first is None:
        return Table((), iter(()))
    if len(first) > MOST_COLUMNS:
        message = f"the table has {len(first)} columns, the limit is {MOST_COLUMNS}"
        raise UnreadableOutputError(message)
    columns, is_header = columns_of(first)
    if not is_header:
        rows = chain([first], rows)
    return Table(columns, _checked(rows, len(columns)))


def columns_of(first: list[str]) -> tuple[tuple[str, ...], bool]:
    """Return the names of the columns, and whether the first row is the header."""
    if any(read_cell(cell).is_numeric for cell in first):
        return tuple(str(place + 1) for place in range(len(first))), False
    return _distinct(first), True


def _numbered(name: str) -> Iterator[str]:
    return (f"{name}#{number}" for number in count(2))


def _distinct(names: list[str]) -> tuple[str, ...]:
    """Return the header with a number added to a name that came before.

    A name made so never equals one that stands in the header: a column that shares
    its name with another one would not be compared.
    """
    stripped = [name.strip() for name in names]
    taken = set(stripped)
    # Each name goes on counting where it stopped: all columns may have one name.
    numbered: dict[str, Iterator[str]] = {}
    result = []
    for name in stripped:
        unique = name
        if name in numbered:
            unique = next(other for other in numbered[name] if other not in taken)
            taken.add(unique)
        else:
            numbered[name] = _numbered(name)
        result.append(unique)
    return tuple(result)


def _checked(rows: Iterator[list[str]], width: int) -> Iterator[list[str]]:
    for place, row in enumerate(rows):
        if len(row) != width:
            message = f"row {place} has {len(row)} cells, the table has {width} columns"
            raise UnreadableOutputError(message)
        yield row
