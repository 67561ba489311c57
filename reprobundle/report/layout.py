"""Lay out paragraphs, runs of short items and tables in a given width."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from reprobundle.report import text
from reprobundle.report.screen import Line, Screen, Span, Style

LABEL_WIDTH = 14
GAP = 2
# A paragraph beyond this many characters is cut: a message is one sentence.
LONGEST_TEXT = 600

BLANK: Line = ()


class Column(NamedTuple):
    """One column of a table.

    Attributes:
        title: Its heading.
        align: Numbers stand to the right.
        least: Cells it may be shortened to; 0 keeps it whole.
        wraps: Whether a text that is too long goes on below, and is not cut.
    """

    title: str
    align: Literal["left", "right"] = "left"
    least: int = 0
    wraps: bool = False


Row = tuple[Span, ...]


def paragraph(
    screen: Screen, label: str, words: str, *, style: Style = "", whole: bool = False
) -> list[Line]:
    """Return `words`, wrapped, beside a label in the left margin."""
    shown = screen.safe(words if whole else words[: LONGEST_TEXT + 1])
    if not whole:
        shown = text.shorten(shown, LONGEST_TEXT, screen.marks.ellipsis)
    lines = text.wrap(shown, screen.width - LABEL_WIDTH)
    return _beside(label, [(Span(line, style),) for line in lines])


def unbroken(screen: Screen, label: str, words: str, style: Style = "") -> list[Line]:
    """Return `words` in one line of any length: a command that can be pasted."""
    return _beside(label, [(Span(screen.safe(words), style),)])


def flow(screen: Screen, label: str, items: Iterable[Line]) -> list[Line]:
    """Return short items one after the other, none broken, beside a label."""
    return _beside(label, _packed(screen, items, screen.width - LABEL_WIDTH))


def _packed(screen: Screen, items: Iterable[Line], room: int) -> list[Line]:
    """Return as many items in each line as fit into `room` cells."""
    lines: list[list[Span]] = []
    used = 0
    for item in items:
        cleaned = _clean(screen, item, room)
        needed = sum(text.cells(span.text) for span in cleaned)
        if not lines or used + GAP + needed > room:
            lines.append(list(cleaned))
            used = needed
        else:
            lines[-1].extend((Span(" " * GAP), *cleaned))
            used += GAP + needed
    return [tuple(line) for line in lines]


def _clean(screen: Screen, item: Line, room: int) -> Line:
    shown = []
    for span in item:
        cut = text.shorten(screen.safe(span.text), room, screen.marks.ellipsis)
        shown.append(Span(cut, span.style))
        room -= text.cells(cut)
    return tuple(shown)


def more(screen: Screen, hidden: int, noun: str, which: str = "") -> list[Line]:
    """Return the note that `hidden` things are not shown; nothing if that is 0."""
    if hidden <= 0:
        return []
    words = " ".join(["and", text.plural(hidden, f"more {noun}"), which]).strip()
    return paragraph(screen, "", f"{words} (--verbose shows all)", style="dim")


def _beside(label: str, lines: Sequence[Line]) -> list[Line]:
    """Put the label before the first line and its width before all others.

    No line but a labelled one starts at the left edge, so nothing foreign can be
    taken for one.
    """
    margin = Span(" " * LABEL_WIDTH)
    first = Span(f"{label:<{LABEL_WIDTH}}", "strong")
    return [
        (first if not number else margin, *line) for number, line in enumerate(lines)
    ]


def table(
    screen: Screen, columns: Sequence[Column], rows: Sequence[Row], *, indent: int = 2
) -> list[Line]:
    """Return a table without rules, or its rows as blocks where it is too narrow."""
    cleaned = [tuple(_cell(screen, cell) for cell in row) for row in rows]
    widths = _fitted(columns, cleaned, screen.width - indent)
    if widths is None:
        return _blocks(screen, columns, cleaned, indent)
    heading = tuple(Span(column.title, "dim") for column in columns)
    return [
        _row(screen, columns, widths, line, indent)
        for row in (heading, *cleaned)
        for line in _wrapped(columns, widths, row)
    ]


def _wrapped(
    columns: Sequence[Column], widths: Sequence[int], row: Row
) -> Iterator[Row]:
    """Yield a row as the lines that it takes: what wraps goes on below itself."""
    parts = [
        text.wrap(cell.text, width) if column.wraps else [cell.text]
        for column, width, cell in zip(columns, widths, row, strict=True)
    ]
    for number in range(max(map(len, parts))):
        yield tuple(
            Span(part[number] if number < len(part) else "", cell.style)
            for part, cell in zip(parts, row, strict=True)
        )


def _cell(screen: Screen, cell: Span) -> Span:
    # Shortened twice, so that a text of megabytes is not made safe as a whole.
    raw = text.shorten(cell.text, LONGEST_TEXT, screen.marks.ellipsis)
    shown = text.shorten(screen.safe(raw), LONGEST_TEXT, screen.marks.ellipsis)
    return Span(shown, cell.style)


def _fitted(
    columns: Sequence[Column], rows: Sequence[Row], room: int
) -> list[int] | None:
    """Return a width for each column, or None where they do not fit at all."""
    widths = [
        max(
            text.cells(cell) for cell in (column.title, *(row[at].text for row in rows))
        )
        for at, column in enumerate(columns)
    ]
    excess = sum(widths) + GAP * (len(columns) - 1) - room
    while excess > 0:
        spare = [
            (width, at)
            for at, (width, column) in enumerate(zip(widths, columns, strict=True))
            if column.least and width > column.least
        ]
        if not spare:
            return None
        widths[max(spare)[1]] -= 1
        excess -= 1
    return widths


def _row(
    screen: Screen,
    columns: Sequence[Column],
    widths: Sequence[int],
    row: Row,
    indent: int,
) -> Line:
    spans = [Span(" " * indent)]
    for column, width, cell in zip(columns, widths, row, strict=True):
        shown = text.shorten(cell.text, width, screen.marks.ellipsis)
        padding = " " * (width - text.cells(shown))
        before, after = (padding, "") if column.align == "right" else ("", padding)
        spans.append(Span(f"{before}{shown}{after}", cell.style))
        spans.append(Span(" " * GAP))
    return tuple(spans[:-1])


def _blocks(
    screen: Screen, columns: Sequence[Column], rows: Sequence[Row], indent: int
) -> list[Line]:
    """Return each row as its first cell with the other ones, named, below it."""
    lines: list[Line] = []
    for row in rows:
        first, *rest = row
        fields: list[Line] = [
            (Span(f"{column.title} ".lstrip(), "dim"), cell)
            for column, cell in zip(columns[1:], rest, strict=True)
            if cell.text.strip() not in {"", text.NOTHING}
        ]
        for left, items in ((indent, [(first,)]), (indent * 2, fields)):
            packed = _packed(screen, items, screen.width - left)
            lines += [(Span(" " * left), *line) for line in packed]
    return lines
