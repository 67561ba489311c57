"""Tell which files of the project nothing was seen to read. That is no fault."""

from __future__ import annotations

from collections.abc import Sequence

from reprobundle.format.record import LeftOutFile
from reprobundle.report import text
from reprobundle.report.layout import paragraph
from reprobundle.report.screen import Line, Screen

MOST_NAMED = 3
_ALL = "inspect --verbose lists all"


def unread_words(names: Sequence[str], *, whole: bool = False) -> str:
    """Return how many files of the project are held unread, and which."""
    count = text.plural(len(names), "project file")
    verb = "is" if len(names) == 1 else "are"
    what = f"{count} {verb} in the bundle that no Python process was seen to read"
    return f"{what}: {_named(names, whole=whole)}"


def left_out_words(files: Sequence[LeftOutFile], *, whole: bool = False) -> str:
    """Return how many files are not held because nothing read them, and which."""
    size = text.size(sum(one.size_bytes for one in files))
    count = text.plural(len(files), "large project file")
    names = [f"{one.name} ({text.size(one.size_bytes)})" for one in files]
    what = f"{count}, {size}, that nothing was seen to read"
    return f"{what} (add with --input): {_named(names, whole=whole)}"


def unread_lines(
    names: Sequence[str],
    left_out: Sequence[LeftOutFile],
    screen: Screen,
    *,
    verbose: bool,
) -> list[Line]:
    """Return both for `inspect`; nothing if everything was read."""
    lines: list[Line] = []
    if names:
        words = unread_words(names, whole=verbose)
        lines += paragraph(screen, "unread", words, whole=verbose)
    if left_out:
        words = left_out_words(left_out, whole=verbose)
        lines += paragraph(screen, "left out", words, whole=verbose)
    return lines


def _named(names: Sequence[str], *, whole: bool) -> str:
    shown = names if whole else names[:MOST_NAMED]
    more = len(names) - len(shown)
    rest = f" and {text.count(more)} more ({_ALL})" if more else ""
    return f"{', '.join(shown)}{rest}"
