"""The numbers that an issue shows of documents and tables, read from what is kept.

A record knows what an array holds, of documents and tables only the form. What the
bundle keeps of them is read here: the last number of the first columns, which is what a
run came to. Texts are never shown, for names of people in them are not recognised, nor
anything of a content that looks like secrets or personal data.
"""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from reprobundle.errors import AbsentMemberError, BundleError, UnreadableOutputError
from reprobundle.format.reader import Bundle
from reprobundle.format.record import Output, Record
from reprobundle.outputs.cells import Cell, read_cell
from reprobundle.outputs.documents import Leaf, read_leaves
from reprobundle.outputs.tables import open_table
from reprobundle.report import text
from reprobundle.report.page import Page
from reprobundle.run.secrets.scan import HOME, scan_bytes
from reprobundle.verify.content import Content, attached, sealed

MOST_NUMBERS = 3
MOST_BYTES = 1 << 20
LONGEST_NAME = 40
_READ = frozenset({"document", "table"})
_NOT_KEPT = {
    "none": "only the digest is kept",
    "withheld": "its author keeps the content",
    "sample": "only some rows are kept",
}


class _Side(NamedTuple):
    """A run and where what it gave lies."""

    record: Record
    content: Content


def values_in(bundle: Bundle, page: Page) -> Mapping[str, str]:
    """Return for the digest of each document and table what can be said of its values.

    Args:
        bundle: The open bundle that `page` is about.
        page: Its runs.
    """
    found: dict[str, str] = {}
    for side in _sides(bundle, page):
        for output in side.record.outputs:
            if output.kind in _READ and output.blake3 not in found:
                found[output.blake3] = _said(output, side.content)
    return found


def _sides(bundle: Bundle, page: Page) -> Iterator[_Side]:
    if page.reference is not None:
        record = page.reference.record
        yield _Side(record, sealed(bundle, 1, record))
    for one in page.replays:
        number = one.judgement.against or (one.replay.record.runs if one.replay else 0)
        if one.reference is not None:
            record = one.reference.record
            yield _Side(record, sealed(bundle, number, record))
        if one.replay is not None:
            record, name = one.replay.record, one.judgement.replay
            yield _Side(record, attached(bundle, bundle, name, record))


def _said(output: Output, content: Content) -> str:
    """Return the numbers of one output, or why none are shown."""
    size = _size(output)
    if why := _NOT_KEPT.get(output.stored):
        return f"{size}; no values: {why}"
    if output.size_bytes > MOST_BYTES:
        return f"{size}; no values: too long to be read for one line"
    try:
        with content.open(output) as stream:
            data = stream.read(MOST_BYTES + 1)
        kinds = {place.kind for place in scan_bytes(output.name, data)} - {HOME}
        if kinds:
            return f"{size}; no values: it looks like {', '.join(sorted(kinds))}"
        return _joined(size, list(_numbers(output, data)))
    except AbsentMemberError:
        return f"{size}; no values: the content is in the other part"
    except (BundleError, UnreadableOutputError):
        return f"{size}; no values: the content cannot be read"


def _size(output: Output) -> str:
    if output.kind == "table" and output.rows is not None:
        return text.plural(output.rows, "row")
    return text.plural(output.size_bytes, "byte")


def _joined(size: str, numbers: list[str]) -> str:
    if not numbers:
        return f"{size}; no values: it holds no number"
    left = len(numbers) - MOST_NUMBERS
    more = f" and {text.plural(left, 'more number')}" if left > 0 else ""
    return f"{size}; {', '.join(numbers[:MOST_NUMBERS])}{more}"


def _numbers(output: Output, data: bytes) -> Iterator[str]:
    """Yield the last number of each column, with its place.

    Raises:
        UnreadableOutputError: The content is not what the format says.
    """
    stream = io.BytesIO(data)
    if output.kind == "document":
        last = {leaf.column: leaf for leaf in read_leaves(stream, output.format)}
        for leaf in last.values():
            if leaf.cell.is_numeric:
                yield f"{_name(_placed(leaf))} = {_shown(leaf.cell)}"
        return
    with open_table(stream, output.format) as table:
        for row in deque(table.rows, maxlen=1):
            for column, content in zip(table.columns, row, strict=True):
                cell = read_cell(content)
                if cell.is_numeric:
                    yield f"last {_name(column)} = {_shown(cell)}"


def _placed(leaf: Leaf) -> str:
    """Return the path of a leaf with its list indices."""
    parts = leaf.column.split("[]")
    indices = [*(f"[{index}]" for index in leaf.place), *([""] * len(parts))]
    return "".join(part + index for part, index in zip(parts, indices, strict=False))


def _name(column: str) -> str:
    return text.shorten(column, LONGEST_NAME) or "value"


def _shown(cell: Cell) -> str:
    """Return a number as it was written, unless that is long."""
    written = cell.text.strip()
    return written if len(written) <= 24 else text.number(float(cell.value))
