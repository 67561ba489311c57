"""Pieces of Markdown that foreign text can neither break nor leave."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from reprobundle.report import text
from reprobundle.report.text import safe

LONGEST_TEXT = 600
_TICKS = re.compile(r"`+")


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
    """Return a sentence with all that Markdown or HTML would act on escaped."""
    return re.sub(r"([\\`*_{}\[\]<>#|!@&~$])", r"\\\1", _brief(foreign))


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
