"""Which leaves a JSON or JSON Lines document holds, and where.

A document is flattened into leaves. The place of a leaf is split in two: the column,
its path with every list index written as ``[]``, and the indices themselves. So the
numbers of a loss curve form one column, ``history[].loss``, with one statistic, and
still each has its place.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple, cast

from reprobundle.errors import UnreadableOutputError
from reprobundle.format.canonical import measure
from reprobundle.outputs.cells import Cell, json_cell, json_decimal
from reprobundle.outputs.text import LONGEST_LINE_BYTES

LARGEST_DOCUMENT_BYTES = 64 << 20
DEEPEST_LEVEL = 200
MOST_VALUES = 1_000_000
"""Each takes half a kilobyte where two documents are compared."""

LONGEST_COLUMN = 1 << 16
"""Characters of a path; each leaf below it repeats them."""


class Leaf(NamedTuple):
    """One leaf of a document.

    Attributes:
        keys: The object keys on the way to it, outermost first.
        column: Its path without list indices, such as ``history[].loss``.
        place: The list indices on the way to it.
        cell: Its value.
    """

    keys: tuple[str, ...]
    column: str
    place: tuple[int, ...]
    cell: Cell


def read_leaves(
    stream: BinaryIO,
    file_format: str,
    *,
    limit_bytes: int = LARGEST_DOCUMENT_BYTES,
) -> Iterator[Leaf]:
    """Yield every leaf of a document, in document order.

    The literals NaN, Infinity and -Infinity, which many writers use although JSON has
    no such form, are read as numbers.

    Args:
        stream: Read to its end, JSON Lines line by line.
        file_format: ``json``, ``jsonl`` or ``notebook``.
        limit_bytes: Largest document that is read.

    Raises:
        UnreadableOutputError: No JSON, not UTF-8, one key twice in an object, more
            than 200 levels or than the limit.
    """
    try:
        if file_format == "jsonl":
            yield from _leaves_of_lines(stream, limit_bytes)
            return
        data = stream.read(limit_bytes + 1)
        if len(data) > limit_bytes:
            raise UnreadableOutputError(_too_large(limit_bytes))
        _check_values(data)
        parsed = parse_line(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        message = f"not readable {file_format}: {error}"
        raise UnreadableOutputError(message) from error
    if file_format == "notebook":
        # Imported here: it needs this module's leaves.
        from reprobundle.outputs import notebook

        if notebook.is_notebook(parsed):
            yield from notebook.notebook_leaves(cast("dict[str, Any]", parsed))
            return
    yield from flatten(parsed, (), "", ())


def _check_values(data: bytes) -> None:
    if data.count(b",") < MOST_VALUES // 2 and data.count(b"[") < MOST_VALUES // 2:
        return  # what follows looks at every byte
    if measure(data)[1] > MOST_VALUES:
        message = f"the document holds more than {MOST_VALUES:,} values"
        raise UnreadableOutputError(message)


def _too_large(limit_bytes: int) -> str:
    return f"the document is larger than {limit_bytes >> 20:,} MiB"


def _leaves_of_lines(stream: BinaryIO, limit_bytes: int) -> Iterator[Leaf]:
    """Yield the leaves as those of one list of all lines that are not blank."""
    left = limit_bytes
    lines = 0
    while line := stream.readline(min(left, LONGEST_LINE_BYTES) + 1):
        left -= len(line)
        if left < 0:
            raise UnreadableOutputError(_too_large(limit_bytes))
        if len(line) > LONGEST_LINE_BYTES:
            raise UnreadableOutputError("a line is longer than 16 MiB")
        _check_values(line)
        text = line.decode() if lines else line.decode("utf-8-sig")
        if text.strip():
            yield from flatten(parse_line(text), (), "[]", (lines,))
            lines += 1
    if not lines:
        yield Leaf((), "", (), json_cell([]))


def parse_line(text: str) -> object:
    """Return the value of one JSON document or one line of JSON Lines.

    Raises:
        UnreadableOutputError: One key stands twice in an object.
        ValueError: It is no JSON.
    """
    return json.loads(text, object_pairs_hook=_without_twins, parse_float=json_decimal)


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        count = Counter(name for name, _ in pairs)
        twin = next(name for name in count if count[name] > 1)
        raise UnreadableOutputError(f"the key {twin!r} stands twice in one object")
    return result


def flatten(
    value: object, keys: tuple[str, ...], column: str, place: tuple[int, ...]
) -> Iterator[Leaf]:
    """Yield the leaves of a parsed value, with these parts of a place before them."""
    # A generator within a generator for each level would hand every leaf through all.
    waiting: list[Iterator[_Node]] = [iter(((value, keys, column, place),))]
    while waiting:
        for item, item_keys, path, at in waiting[-1]:
            if isinstance(item, (dict, list)) and item:
                waiting.append(_children(item, item_keys, path, at))
                break
            yield Leaf(item_keys, path, at, json_cell(item))
        else:
            waiting.pop()


_Node = tuple[object, tuple[str, ...], str, tuple[int, ...]]


def _children(
    value: dict[str, Any] | list[Any],
    keys: tuple[str, ...],
    column: str,
    place: tuple[int, ...],
) -> Iterator[_Node]:
    if len(keys) + len(place) >= DEEPEST_LEVEL:
        raise UnreadableOutputError("the document is nested deeper than 200 levels")
    if len(column) > LONGEST_COLUMN:
        raise UnreadableOutputError("a path in the document is longer than 64 KiB")
    if isinstance(value, dict):
        for key, item in value.items():
            yield item, (*keys, key), _join(column, key), place
    else:
        inner = f"{column}[]"
        for position, item in enumerate(value):
            yield item, keys, inner, (*place, position)


def _join(column: str, key: str) -> str:
    if key and not set(key) & set('.[]"'):
        return f"{column}.{key}" if column else key
    return f"{column}[{json.dumps(key, ensure_ascii=False)}]"
