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
_DELIMITERS = {"csv": ",", "tsv": "\t"}


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
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
    try:
        rows = _rows(text, _DELIMITERS[file_format])
        yield _table(rows)
    finally:
        # The wrapper would close the caller's stream when it is collected.
        with contextlib.suppress(ValueError, OSError):
            text.detach()


def _rows(text: io.TextIOWrapper, delimiter: str) -> Iterator[list[str]]:
    reader = csv.reader(_lines(text), delimiter=delimiter, strict=True)
    try:
        # A blank line is no row: writers differ in whether they end with one.
        yield from (row for row in reader if row)
    except (csv.Error, UnicodeDecodeError) as error:
        message = f"not a readable table near line {reader.line_num}: {error}"
        raise UnreadableOutputError(message) from error


def _lines(text: io.TextIOWrapper) -> Iterator[str]:
    while line := text.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE:
            raise UnreadableOutputError("a line of the table is longer than 16 MiB")
        yield line


def _table(rows: Iterator[list[str]]) -> Table:
    first = next(rows, None)
    if first is None:
        return Table((), iter(()))
    if len(first) > MOST_COLUMNS:
        message = f"the table has {len(first)} columns, the limit is {MOST_COLUMNS}"
        raise UnreadableOutputError(message)
    if any(read_cell(cell).is_numeric for cell in first):
        columns = tuple(str(place + 1) for place in range(len(first)))
        rows = chain([first], rows)
    else:
        columns = _distinct(first)
    return Table(columns, _checked(rows, len(columns)))


def _distinct(names: list[str]) -> tuple[str, ...]:
    """Return the header with a number added to a name that came before.

    A name made so never equals one that stands in the header: a column that shares
    its name with another one would not be compared.
    """
    stripped = [name.strip() for name in names]
    taken = set(stripped)
    seen: set[str] = set()
    result = []
    for name in stripped:
        unique = name
        if name in seen:
            numbered = (f"{name}#{number}" for number in count(2))
            unique = next(other for other in numbered if other not in taken)
            taken.add(unique)
        seen.add(name)
        result.append(unique)
    return tuple(result)


def _checked(rows: Iterator[list[str]], width: int) -> Iterator[list[str]]:
    for place, row in enumerate(rows):
        if len(row) != width:
            message = f"row {place} has {len(row)} cells, the table has {width} columns"
            raise UnreadableOutputError(message)
        yield row
