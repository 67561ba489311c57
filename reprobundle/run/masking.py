"""What of an error message differs between two runs of one failure.

Shapes, dtypes, indices, names of the project's files and the message's own words stay:
they are the failure. What the machine, the moment or the release of a library puts in
becomes ``#``.
"""

from __future__ import annotations

import re
from typing import Final

_NUMBER: Final = r"\d+(?:\.\d+)?"

# In this order: a path is one thing, and only then are numbers looked at.
_MASKS: Final = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        # Colours of a terminal.
        (r"\x1b\[[0-9;]*m", ""),
        # torch appends a C++ backtrace when it was asked to: addresses and offsets.
        (r"(?s)\bException raised from .*", ""),
        (r"(?s)\bC\+\+ CapturedTraceback:.*", ""),
        (r"0x[0-9a-fA-F]+", "#"),
        # Sources of a library keep their name; their lines move with every release.
        (
            r"(?<![\w./~+-])(?:[\w.~+-]*/)*([\w+-]+\.(?:cpp|cu|h|hpp|mm|metal)):\d+",
            r"\1:#",
        ),
        (r'(File "(?!\{project\})[^"]*", line )\d+', r"\1#"),
        # Paths of this machine; those of the project begin with {project} and stay.
        (r"(?:~|\{(?:tmp|run|home|host|user)\})(?:/[^\s'\":,;)\]]+)+", "#"),
        (r"(?<![\w.}/])(?:/[^\s'\":,;)\]/]+){2,}/?", "#"),
        (r"\btmp[a-z0-9_]{8}\b", "#"),
        (r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "#"),
        (r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?Z?)?", "#"),
        (r"\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b", "#"),
        # How much memory there was.
        (rf"\b{_NUMBER} ?(?:[KMGT]i?B|[Bb]ytes?)\b", "#"),
        # Which of several devices, processes, threads or ports it was.
        (r"\b(cuda|mps|xpu|hip|GPU|device)([ :]|=)\d+\b", r"\1\2#"),
        (
            r"(?i)\b(pids?|pid\(s\)|process|thread|worker)([ :=]{1,3})\d+(?:, ?\d+)*",
            r"\1\2#",
        ),
        (r"(?i)\b(localhost|\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-f:]+\]):\d+\b", "#"),
        # How long it took.
        (rf"\b{_NUMBER}(?= ?(?:ms|s|sec|seconds|milliseconds|minutes)\b)", "#"),
    )
)


def mask(message: str) -> str:
    """Return `message` without what differs between two runs of one failure."""
    for pattern, replacement in _MASKS:
        message = pattern.sub(replacement, message)
    return message.strip()
