"""What a bundle's lock installs on one kind of machine, for a terminal."""

from __future__ import annotations

from reprobundle.format.lock import Lock
from reprobundle.report import text
from reprobundle.report.layout import BLANK, Column, Row, more, paragraph, table
from reprobundle.report.screen import Line, Screen, Span
from reprobundle.run.pylock_file import Chosen, Selection

MOST_FILES = 60

_COLUMNS = (
    Column("package", least=12),
    Column("version"),
    Column("size", align="right"),
    Column("file", least=24),
    Column(""),
)


def render_selection(
    selection: Selection,
    lock: Lock,
    screen: Screen | None = None,
    *,
    verbose: bool = False,
) -> str:
    """Return the files, what of them differs from the reference, and the blockers.

    Args:
        selection: What is installed on the target.
        lock: The environment of the reference.
        screen: Where it is shown.
        verbose: Show every file.
    """
    screen = screen or Screen()
    # What differs from the reference is what a reader looks for.
    ordered = sorted(selection.chosen, key=lambda one: not _note(one, lock))
    shown = ordered if verbose else ordered[:MOST_FILES]
    lines: list[Line] = [
        *paragraph(screen, "target", f"{selection.target}, Python {lock.python.minor}"),
        BLANK,
        *table(screen, _COLUMNS, [_row(one, lock) for one in shown]),
        *more(screen, len(ordered) - len(shown), "file"),
        BLANK,
    ]
    dropped = [name for name in selection.dropped if lock.find(name)]
    if dropped:
        words = f"{', '.join(dropped)}: needed where the run was made, not here"
        lines += paragraph(screen, "dropped", words)
    for place, blocker in enumerate(selection.blockers):
        what = f"{blocker.name} {blocker.version}" if blocker.name else "everything"
        words = f"{what}: {blocker.reason}"
        label = "" if place else "BLOCKERS"
        lines += paragraph(screen, label, words, style="strong bad")
    return screen.text([*lines, *_summary(selection, screen)])


def _row(one: Chosen, lock: Lock) -> Row:
    size = text.size(one.size_bytes) if one.size_bytes else text.NOTHING
    return (
        Span(one.name),
        Span(one.version or text.NOTHING),
        Span(size),
        Span(one.file or one.address),
        Span(_note(one, lock), "warn"),
    )


def _note(one: Chosen, lock: Lock) -> str:
    recorded = lock.find(one.name)
    if recorded is None:
        return "not in the reference"
    if recorded.version != one.version:
        return f"reference {recorded.version}"
    return "built from source" if one.kind == "sdist" else ""


def _summary(selection: Selection, screen: Screen) -> list[Line]:
    files = text.plural(len(selection.chosen), "file")
    unknown = sum(one.size_bytes is None for one in selection.chosen)
    size = text.size(selection.size_bytes)
    gap = f", {unknown} of unknown size" if unknown else ""
    if selection.blockers:
        count = text.plural(len(selection.blockers), "package")
        words = f"{count} cannot be had on {selection.target}"
        return paragraph(screen, "so", words, style="strong bad")
    words = f"{files}, {size}{gap}: everything can be had on {selection.target}"
    return paragraph(screen, "so", words, style="strong good")
