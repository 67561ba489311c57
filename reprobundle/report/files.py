"""Show the files that a run read and what it produced."""

from __future__ import annotations

from collections.abc import Sequence

from reprobundle.format.record import ArraySummary, FileRead, Output
from reprobundle.report import text
from reprobundle.report.layout import Column, Row, more, paragraph, table
from reprobundle.report.screen import Line, Screen, Span

# What one screen holds of each kind; all of it with ``verbose``.
MOST_FILES = 8
MOST_ARRAYS = 3


def input_lines(
    reads: Sequence[FileRead], screen: Screen, *, verbose: bool
) -> list[Line]:
    """Return the files a run read, and whether the bundle holds them."""
    if not reads:
        return paragraph(screen, "inputs", "no file was seen being read")
    # What a second person will miss comes first.
    ordered = sorted(reads, key=lambda read: bool(read.member))
    shown = ordered if verbose else ordered[:MOST_FILES]
    columns = (
        Column("input", least=20),
        Column("size", align="right"),
        Column("blake3"),
        Column("seen"),
        Column("kept"),
    )
    rows: list[Row] = [
        (
            Span(read.path),
            Span(text.size(read.size_bytes) if read.blake3 else "unknown"),
            Span(text.digest(read.blake3) or "unknown", "dim"),
            Span(read.how),
            _kept(read),
        )
        for read in shown
    ]
    return [
        *table(screen, columns, rows),
        *more(screen, len(reads) - len(shown), "input"),
        *_lying_outside(shown, screen, verbose=verbose),
    ]


def _lying_outside(
    reads: Sequence[FileRead], screen: Screen, *, verbose: bool
) -> list[Line]:
    """Return where files from outside the project lay, as a program knows them."""
    lines: list[Line] = []
    for read in reads:
        if read.origin:
            words = f"{read.path} was {read.opened_as or read.origin}"
            if read.opened_as:
                words += f", a link to {read.origin}"
            lines += paragraph(screen, "", words, whole=verbose)
    return lines


def _kept(read: FileRead) -> Span:
    if read.member:
        return Span("in the bundle")
    return Span("digest only" if read.blake3 else "unknown content", "warn")


def output_lines(
    outputs: Sequence[Output], screen: Screen, *, verbose: bool
) -> list[Line]:
    """Return what a run produced, with the summary of each array."""
    if not outputs:
        return paragraph(screen, "outputs", "none")
    shown = outputs if verbose else outputs[:MOST_FILES]
    columns = (
        Column("output", least=20),
        Column("kind"),
        Column("role"),
        Column("dtype"),
        Column("shape", least=8),
        Column("min", align="right"),
        Column("max", align="right"),
        Column("mean", align="right"),
        Column("nan", align="right"),
        Column("inf", align="right"),
        Column("size", align="right"),
    )
    rows: list[Row] = []
    for output in shown:
        rows += _output_rows(output, verbose=verbose)
    return [
        *table(screen, columns, rows),
        *more(screen, len(outputs) - len(shown), "output"),
    ]


def _output_rows(output: Output, *, verbose: bool) -> list[Row]:
    size = text.size(output.size_bytes)
    withheld = output.stored == "withheld"
    if len(output.arrays) == 1 and not output.arrays[0].name and not withheld:
        array = output.arrays[0]
        return [_array_row(output.name, array, size, output.kind, output.role)]
    shape = "" if output.rows is None else text.plural(output.rows, _row_noun(output))
    if output.arrays:
        shape = text.plural(len(output.arrays), "array")
    if withheld:
        shape = ", ".join(["withheld", *([shape] if shape else [])])
    rows: list[Row] = [
        (
            Span(output.name),
            Span(output.kind),
            Span(output.role),
            Span(""),
            Span(shape),
            *[Span("")] * 3,
            *_odd_elements(output.arrays),
            Span(size),
        )
    ]
    shown = output.arrays if verbose else output.arrays[:MOST_ARRAYS]
    rows += [_array_row(f"  {array.name}", array) for array in shown]
    if len(output.arrays) > len(shown):
        hidden = text.count(len(output.arrays) - len(shown))
        rows.append((Span(f"  and {hidden} more", "dim"), *[Span("")] * 10))
    return rows


def _row_noun(output: Output) -> str:
    return "row" if output.kind == "table" else "line"


def _array_row(
    name: str, array: ArraySummary, size: str = "", kind: str = "", role: str = ""
) -> Row:
    return (
        Span(name),
        Span(kind),
        Span(role),
        Span(array.dtype),
        Span(str(list(array.shape)).replace(" ", "")),
        Span(text.number(array.minimum)),
        Span(text.number(array.maximum)),
        Span(text.number(array.mean)),
        *_odd_elements([array]),
        Span(size),
    )


def _odd_elements(arrays: Sequence[ArraySummary]) -> tuple[Span, Span]:
    """Return the numbers of NaNs and infinities; nothing where there are no arrays."""
    if not arrays:
        return Span(""), Span("")
    nan = sum(array.nan for array in arrays)
    infinite = sum(
        array.positive_infinity + array.negative_infinity for array in arrays
    )
    return _alarming(nan), _alarming(infinite)


def _alarming(elements: int) -> Span:
    return Span(text.count(elements), "warn" if elements else "")
