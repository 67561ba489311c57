"""What the comparison of the parts of an output says about the output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from reprobundle.format.findings import (
    ArrayComparison,
    OutputComparison,
    OutputResult,
)
from reprobundle.format.record import Output
from reprobundle.outputs.text import printable

MOST_PARTS = 100


def uncompared(output: Output, result: OutputResult, reason: str) -> OutputComparison:
    """Return the result for an output whose content need not be looked at."""
    return OutputComparison(
        name=output.name,
        kind=output.kind,
        format=output.format,
        result=result,
        reason=reason,
    )


def excluded(output: Output, reason: str) -> OutputComparison:
    """Return the result for an output that is left out on purpose."""
    return OutputComparison(
        name=output.name,
        kind=output.kind,
        format=output.format,
        result="not-compared",
        reason=reason,
        excluded=True,
    )


def concluded(
    output: Output,
    result: OutputResult,
    reason: str,
    parts: Sequence[ArrayComparison] = (),
    ignored: tuple[str, ...] = (),
) -> OutputComparison:
    """Return a result with its parts, of very many only the most telling."""
    if len(parts) > MOST_PARTS:
        parts = _most_telling(parts)
    return OutputComparison(
        name=output.name,
        kind=output.kind,
        format=output.format,
        result=result,
        reason=printable(reason, longest=1000),
        ignored=tuple(printable(name) for name in ignored),
        parts=tuple(_printable(part) for part in parts),
    )


def sum_up(
    output: Output,
    parts: tuple[ArrayComparison, ...],
    ignored: tuple[str, ...] = (),
    *,
    unseen: str = "",
    partly: str = "",
    values: str = "compared value",
) -> OutputComparison:
    """Sum up the parts of an output whose bytes are known to differ.

    Args:
        output: The output of the reference.
        parts: Comparison of everything that was compared.
        ignored: What a rule left out.
        unseen: What of the file no part covers, in words.
        partly: How much of it was compared, in words, if it was not all.
        values: What the parts consist of.
    """
    if any(part.problem for part in parts):
        reason = first_problem(parts)
        return concluded(output, "outside-tolerance", reason, parts, ignored)
    if not any(part.elements for part in parts):
        reason = "nothing in it was compared: " + (
            "all of it is left out by rule" if ignored else "it holds no values"
        )
        return concluded(output, "not-compared", reason, parts, ignored)
    if not all(part.equal for part in parts):
        return concluded(output, "within-tolerance", partly, parts, ignored)
    if unseen:
        return concluded(output, "within-tolerance", unseen, parts, ignored)
    reason = f"the bytes of the file differ, every {values} is identical"
    return concluded(output, "bit-identical", reason, parts, ignored)


def outside_or_equal(
    output: Output, reason: str, part: ArrayComparison
) -> OutputComparison:
    """Return the result of a comparison byte for byte, and why it was made so."""
    if part.equal:
        # Two records state different digests for bytes that are the same.
        message = "the digests differ although the bytes are equal"
        return concluded(output, "not-compared", message, (part,))
    text = f"{part.problem}; {reason}" if reason else part.problem
    return concluded(output, "outside-tolerance", text, (part,))


def noted(
    parts: Sequence[ArrayComparison], notes: Mapping[str, str]
) -> tuple[ArrayComparison, ...]:
    """Return parts with what a rule took as equal; such a part is not bit-identical.

    Args:
        parts: The comparisons.
        notes: Name of a part → what was taken as equal in it.
    """
    return tuple(
        msgspec.structs.replace(part, equal=False, note=notes[part.name])
        if notes.get(part.name)
        else part
        for part in parts
    )


def first_problem(parts: Sequence[ArrayComparison]) -> str:
    """Return the most telling problem, and how many more there are."""
    bad = [part for part in parts if part.problem]
    first = bad[0]
    name = f"{first.name}: " if first.name else ""
    more = f" (and {len(bad) - 1:,} more)" if len(bad) > 1 else ""
    return f"{name}{first.problem}{more}"


def _printable(part: ArrayComparison) -> ArrayComparison:
    texts = {
        name: printable(getattr(part, name))
        for name in ("name", "expected", "got", "note", "problem")
    }
    return msgspec.structs.replace(part, **texts)


def _most_telling(parts: Sequence[ArrayComparison]) -> Sequence[ArrayComparison]:
    """Return the parts worth keeping of very many: what differs or looks odd."""
    if all(part.zero for part in parts):
        return parts[:MOST_PARTS]
    telling = [part for part in parts if not part.equal or part.nan or part.infinite]
    telling.sort(key=lambda part: (not part.problem, not part.nan, part.equal))
    return telling[:MOST_PARTS]
