"""Pieces of Markdown that foreign text can neither break nor leave."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from reprobundle.report import text
from reprobundle.report.text import safe

LONGEST_TEXT = 600
_TICKS = re.compile(r"`+")
_LONG_LINE = 400
_JOINER = "\N{WORD JOINER}"
_ACTED_ON = re.compile(r"@|#(?=\d)|GH-|:(?=//)|www(?=\.)", re.IGNORECASE)


def code(foreign: str) -> str:
    """Return text as a code span that it cannot leave."""
    shown = _brief(foreign).replace("|", "\\|")
    if not shown:
        return ""
    longest = max((len(ticks) for ticks in _TICKS.findall(shown)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def words(foreign: str) -> str:
    """Return a sentence with all that Markdown or HTML would act on escaped.

    GitHub looks for mentions, issues and addresses in the text that is left after
    Markdown, where no escape is any more: an invisible joiner breaks them up.
    """
    escaped = re.sub(r"([\\`*_{}\[\]<>#|!@&~$])", r"\\\1", _brief(foreign))
    return _ACTED_ON.sub(lambda match: f"{match[0]}{_JOINER}", escaped)


def fenced(foreign: str, language: str) -> str:
    """Return lines as a fenced block that none of them can close.

    What could steer or deceive a reader of the source is made visible, line by line.
    """
    lines = [_visible(line) for line in re.split(r"\r\n|\r|\n", foreign.rstrip())]
    shown = "\n".join(lines)
    fence = "`" * _fence_length(shown)
    return f"{fence}{language}\n{shown}\n{fence}"


def _fence_length(shown: str) -> int:
    longest = max((len(ticks) for ticks in _TICKS.findall(shown)), default=0)
    return max(3, longest + 1)


def _visible(line: str) -> str:
    return "\t".join(map(safe, line.split("\t")))


def shortened(foreign: str, most_bytes: int, whole: str) -> str:
    """Return lines of at most `most_bytes` when fenced, cut in their middle if need be.

    Args:
        foreign: The lines.
        most_bytes: Bytes of UTF-8, with what makes characters visible.
        whole: Where the whole is, said at the cut.
    """
    shown = "\n".join(_visible(line) for line in foreign.splitlines())
    size_bytes = len(shown.encode())
    fences_bytes = 2 * _fence_length(shown)
    if size_bytes + fences_bytes <= most_bytes:
        return shown
    if fences_bytes > _LONG_LINE:
        # Nothing but backticks takes three times its size.
        most_bytes //= 3
    data = shown.encode()
    half = max(0, (most_bytes - len(whole.encode()) - 80) // 2)
    first = data[:half].decode(errors="ignore")
    last = data[size_bytes - half :].decode(errors="ignore")
    # At the end of a line, unless the line is one of those that are too long.
    if len(first) - (end := first.rfind("\n")) < _LONG_LINE:
        first = first[: max(0, end)]
    if (start := last.find("\n")) < _LONG_LINE:
        last = last[start + 1 :]
    left_out = size_bytes - len(first.encode()) - len(last.encode())
    return f"{first}\n[... {left_out:,} bytes left out; {whole} ...]\n{last}"


def address(foreign: str) -> str:
    """Return an address so that it can be copied: as code, and never as a link."""
    return code(foreign) if "://" in foreign else words(foreign)


def _brief(foreign: str) -> str:
    # Shortened first, so that a text of megabytes is not made safe as a whole.
    return safe(text.shorten(foreign[: LONGEST_TEXT * 2], LONGEST_TEXT))


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; empty without rows."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    if not lines:
        return ""
    rule = "|".join(["---"] * len(columns))
    return "\n".join([f"| {' | '.join(columns)} |", f"|{rule}|", *lines])


def folded(title: str, body: str) -> str:
    """Return a part that a reader opens; empty without a body."""
    if not body:
        return ""
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"
