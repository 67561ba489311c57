"""How a text, a log or plain bytes stand to the reference.

Texts are exact, line by line and byte by byte. Only where a rule gives a log or text
a tolerance are its decimal numbers compared under it; the text between them stays
exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import BinaryIO

from reprobundle.format.findings import ArrayComparison
from reprobundle.format.policy import Tolerance
from reprobundle.outputs.blocks import read_block
from reprobundle.outputs.cells import read_cell, same_cells
from reprobundle.outputs.text import printable, read_lines, split_numbers

_BLOCK_BYTES = 1 << 20


def compare_text(
    reference: BinaryIO, replay: BinaryIO, *, tolerance: Tolerance | None = None
) -> ArrayComparison:
    """Return how a replayed text stands to its reference.

    Args:
        reference: The reference's content.
        replay: The replay's content.
        tolerance: The rule for decimal numbers within the text; None compares all of
            it exactly.

    Raises:
        UnreadableOutputError: A line is longer than 16 MiB.
    """
    lines = outside = 0
    equal = True
    first: tuple[int, str, str] | None = None
    for place, (b, a) in enumerate(_line_pairs(reference, replay)):
        lines += 1
        equal = equal and b == a
        if b == a or (tolerance and _numbers_agree(b, a, tolerance)):
            continue
        outside += 1
        first = first or (place, _shown(b), _shown(a))
    return ArrayComparison(
        name="",
        dtype="text",
        elements=lines,
        equal=equal,
        outside=outside,
        rtol=tolerance.rtol if tolerance else None,
        atol=tolerance.atol if tolerance else None,
        worst_index=(first[0],) if first else None,
        expected=first[1] if first else "",
        got=first[2] if first else "",
        problem=f"{outside:,} of {lines:,} lines differ" if outside else "",
    )


def _line_pairs(
    reference: BinaryIO, replay: BinaryIO
) -> Iterator[tuple[str | None, str | None]]:
    return zip_longest(read_lines(reference), read_lines(replay))


def _shown(line: str | None) -> str:
    """Return a line as printable text of one row; a line that is not there as that."""
    if line is None:
        return "(no such line)"
    return printable(line.rstrip("\r\n"))


def _numbers_agree(b: str | None, a: str | None, tolerance: Tolerance) -> bool:
    if b is None or a is None:
        return False
    b_text, b_numbers = split_numbers(b)
    a_text, a_numbers = split_numbers(a)
    return b_text == a_text and all(
        _close(left, right, tolerance)
        for left, right in zip(b_numbers, a_numbers, strict=True)
    )


def _close(b: str, a: str, tolerance: Tolerance) -> bool:
    left, right = read_cell(b), read_cell(a)
    if not left.kind == right.kind == "number":
        return left.kind == right.kind and same_cells(left, right)
    bound = tolerance.atol + tolerance.rtol * abs(left.value)
    return abs(left.value - right.value) <= bound


def compare_bytes(reference: BinaryIO, replay: BinaryIO) -> ArrayComparison:
    """Return how replayed bytes stand to the reference: equal, or where they part."""
    place = size = 0
    differing = 0
    first: tuple[int, str, str] | None = None
    while True:
        b = read_block(reference, _BLOCK_BYTES)
        a = read_block(replay, _BLOCK_BYTES)
        if not b and not a:
            break
        size += max(len(b), len(a))
        if b != a:
            count, at = _differences(b, a)
            differing += count
            first = first or (place + at, b[at : at + 1].hex(), a[at : at + 1].hex())
        place += len(b)
    return ArrayComparison(
        name="",
        dtype="bytes",
        elements=size,
        equal=not differing,
        outside=differing,
        worst_index=(first[0],) if first else None,
        expected=first[1] if first else "",
        got=first[2] if first else "",
        problem=f"{differing:,} of {size:,} bytes differ" if differing else "",
    )


def _differences(b: bytes, a: bytes) -> tuple[int, int]:
    """Return how many bytes of two unequal blocks differ, and where first."""
    shared = min(len(b), len(a))
    # One subtraction of big integers marks the differing bytes without a loop over
    # all of them: equal bytes become zero.
    marks = int.from_bytes(b[:shared], "little") ^ int.from_bytes(a[:shared], "little")
    differing = shared - marks.to_bytes(shared, "little").count(0)
    differing += abs(len(b) - len(a))
    if not marks:
        return differing, shared
    return differing, ((marks & -marks).bit_length() - 1) // 8
