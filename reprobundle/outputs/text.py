"""Which lines a text holds, read one by one with bounded memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from reprobundle.errors import UnreadableOutputError

LONGEST_LINE_BYTES = 16 * 1024 * 1024

# The number is taken whole, by the lookahead and \\1, or not at all. If the digits were
# given back one by one, a long word such as 111…1a would take the square of its length.
_NUMBER = re.compile(
    r"(?<![\w.])(?=([+-]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d{1,4})?))\1(?![\w.]*\w)",
    re.ASCII,
)


def read_lines(stream: BinaryIO) -> Iterator[str]:
    """Yield each line with its line ending, so that all bytes count.

    Raises:
        UnreadableOutputError: A line is longer than 16 MiB.
    """
    while line := stream.readline(LONGEST_LINE_BYTES + 1):
        if len(line) > LONGEST_LINE_BYTES:
            raise UnreadableOutputError("a line is longer than 16 MiB")
        # Bytes that are no UTF-8 stay distinct instead of making the text unreadable.
        yield line.decode("utf-8", "surrogateescape")


def printable(text: str, longest: int = 200) -> str:
    """Return `text` in one line without control characters, cut where it is long.

    Names and values come from files of strangers: they must not steer a terminal, and
    a lone surrogate must not make a report impossible to encode.
    """
    safe = text.encode("utf-8", "backslashreplace").decode()
    if not safe.isprintable():
        safe = "".join(c if c.isprintable() else repr(c)[1:-1] for c in safe)
    return safe if len(safe) <= longest else f"{safe[:longest]}…"


def split_numbers(line: str) -> tuple[str, tuple[str, ...]]:
    """Return `line` with every number replaced by NUL, and those numbers in order."""
    return _NUMBER.sub("\0", line), tuple(_NUMBER.findall(line))
