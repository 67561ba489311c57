"""How the content of an output with other bytes stands to the reference, by kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack

from reprobundle.errors import DecoderMissingError, UnreadableOutputError
from reprobundle.format.findings import OutputComparison
from reprobundle.format.policy import Tolerance
from reprobundle.verify.sides import Sides
from reprobundle.verify.summing_up import (
    concluded,
    noted,
    outside_or_equal,
    sum_up,
)

EXACT = Tolerance(rtol=0.0, atol=0.0)

REST_OF_CHECKPOINT = (
    "tensors, numbers and texts are identical; how they are pickled was not compared"
)


def compare_contents(sides: Sides) -> OutputComparison:
    """Return how the contents of both sides stand to each other.

    Content that cannot be read as what it is called is compared byte for byte.
    """
    try:
        return _COMPARERS[sides.reference.kind](sides)
    except UnreadableOutputError as error:
        return by_bytes(sides, f"compared byte for byte: {error.message}")


def by_bytes(sides: Sides, reason: str = "") -> OutputComparison:
    """Compare both byte for byte.

    Args:
        sides: The two files.
        reason: Why nothing better was done; empty if nothing better is known.
    """
    from reprobundle.verify.compare_text import compare_bytes

    with ExitStack() as stack:
        part = compare_bytes(*sides.streams(stack))
    return outside_or_equal(sides.reference, reason, part)


def _arrays(sides: Sides) -> OutputComparison:
    from reprobundle.outputs.arrays import read_arrays, read_texts
    from reprobundle.verify.beside_arrays import compare_texts
    from reprobundle.verify.compare_arrays import compare_arrays
    from reprobundle.verify.equivalent import equivalent
    from reprobundle.verify.ties import values_elsewhere

    leave_out = sides.ignored()
    file_format = "safetensors" if sides.is_checkpoint else sides.reference.format
    with ExitStack() as stack:
        streams = sides.streams(stack, tensors=sides.is_checkpoint)
        texts, ignored_texts = compare_texts(
            *(read_texts(stream, file_format) for stream in streams),
            leave_out=leave_out,
        )
        both = [read_arrays(stream, file_format) for stream in streams]
        names = {array.name for side in both for array in side}
        ignored = {name for name in names if leave_out((name,))}
        left, right = (
            [array for array in side if array.name not in ignored] for side in both
        )
        notes: Mapping[str, str] = {}
        if sides.rule is not None:
            left, right, notes = equivalent(
                sides.rule,
                left,
                right,
                sides.tolerance,
                values_elsewhere(sides, stack),
            )
        parts = compare_arrays(left, right, sides.tolerance, sides.scales())
    return sum_up(
        sides.reference,
        (*noted(parts, notes), *texts),
        tuple(sorted({*ignored, *ignored_texts})),
        unseen=REST_OF_CHECKPOINT if sides.is_checkpoint else "",
    )


def _cells(sides: Sides) -> OutputComparison:
    from reprobundle.verify import compare_cells

    formats = (sides.reference.format, sides.replay.format)
    tolerance = sides.tolerance("number") or EXACT
    rows = sides.rule.rows if sides.rule is not None else None
    if sides.reference.kind == "table":
        cells = compare_cells.compare_tables(
            lambda: sides.reference_content.open(sides.reference),
            lambda: sides.replay_content.open(sides.replay),
            formats,
            tolerance=tolerance,
            ignored=sides.ignored(),
            rows=sides.reference.rows or 0,
            first_rows=rows,
        )
    else:
        with ExitStack() as stack:
            cells = compare_cells.compare_documents(
                *sides.streams(stack),
                formats,
                tolerance=tolerance,
                ignored=sides.ignored(),
                first_rows=rows,
            )
    if rows is None:
        return sum_up(sides.reference, cells.parts, cells.ignored)
    notes = {part.name: f"only rows before {rows:,}" for part in cells.parts}
    ignored = (*cells.ignored, f"rows {rows:,} and later")
    return sum_up(sides.reference, noted(cells.parts, notes), ignored)


def _text(sides: Sides) -> OutputComparison:
    from reprobundle.verify.compare_text import compare_text

    tolerance = sides.rule.tolerance if sides.rule is not None else None
    with ExitStack() as stack:
        part = compare_text(*sides.streams(stack), tolerance=tolerance)
    return sum_up(sides.reference, (part,))


def _bytes(sides: Sides) -> OutputComparison:
    from reprobundle.verify.compare_images import are_images, compare_images

    with ExitStack() as stack:
        if not are_images(*sides.streams(stack)):
            return by_bytes(sides)
    rule = sides.tolerance("pixel")
    try:
        with ExitStack() as stack:
            parts = compare_images(*sides.streams(stack), rule)
    except DecoderMissingError as error:
        reason = f"the bytes differ; {error}"
        return concluded(sides.reference, "not-compared", reason)
    return sum_up(sides.reference, parts, values="pixel")


_COMPARERS: Mapping[str, Callable[[Sides], OutputComparison]] = {
    "arrays": _arrays,
    "table": _cells,
    "document": _cells,
    "text": _text,
    "log": _text,
    "bytes": _bytes,
}
