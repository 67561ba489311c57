"""How two outputs compare by their summaries alone, without their content."""

from __future__ import annotations

import math
from collections.abc import Sequence

from reprobundle.format.findings import ArrayComparison
from reprobundle.format.record import ArraySummary, Output, as_float


def compare_summaries(reference: Output, replay: Output) -> tuple[ArrayComparison, ...]:
    """Return the structure of the arrays of both outputs.

    Where both outputs have the same digest, every part is equal; otherwise a part
    states only what structure tells, and an empty `problem` does not mean that the
    values agree.
    """
    same = reference.blake3 == replay.blake3
    return compare_array_summaries(reference.arrays, replay.arrays, same=same)


def compare_array_summaries(
    reference: Sequence[ArraySummary], replay: Sequence[ArraySummary], *, same: bool
) -> tuple[ArrayComparison, ...]:
    """Return the structure of each array that either side holds.

    Args:
        reference: Arrays of the reference.
        replay: Arrays of the replay.
        same: Whether both files are known to hold the same bytes.
    """
    replayed = {array.name: array for array in replay}
    parts = []
    for array in reference:
        other = replayed.pop(array.name, None)
        if other is None:
            parts.append(_lone(array, "missing in the replay"))
        else:
            parts.append(_part(array, other, same=same))
    parts += [_lone(array, "not in the reference") for array in replayed.values()]
    return tuple(parts)


def _lone(array: ArraySummary, problem: str) -> ArrayComparison:
    return ArrayComparison(
        name=array.name,
        dtype=array.dtype,
        elements=0,
        equal=False,
        outside=max(1, math.prod(array.shape)),
        problem=problem,
    )


def _part(
    reference: ArraySummary, replay: ArraySummary, *, same: bool
) -> ArrayComparison:
    # A record may state anything, an extent below zero too.
    elements = max(0, math.prod(reference.shape))
    problem = structure_problem(
        (reference.dtype, reference.shape), (replay.dtype, replay.shape)
    )
    return ArrayComparison(
        name=reference.name,
        dtype=reference.dtype,
        elements=elements if same and not problem else 0,
        equal=same and not problem,
        outside=max(1, elements) if problem else 0,
        max_abs=0.0 if same and reference.l2 is not None else None,
        # Both sides were counted on different machines; the larger count is the one
        # that nobody wished away.
        nan=max(reference.nan, replay.nan),
        infinite=max(_infinite(reference), _infinite(replay)),
        zero=_is_zero(reference, elements),
        problem=problem,
    )


def structure_problem(
    reference: tuple[str, tuple[int, ...]], replay: tuple[str, tuple[int, ...]]
) -> str:
    """Return how dtype or shape differ, or an empty string."""
    if replay[0] != reference[0]:
        return f"dtype {replay[0]}, expected {reference[0]}"
    if replay[1] != reference[1]:
        return f"shape {list(replay[1])}, expected {list(reference[1])}"
    return ""


def is_float(dtype: str) -> bool:
    """Whether arrays of `dtype` are compared under a tolerance."""
    return dtype.startswith(("float", "bfloat", "complex", "longdouble"))


def _infinite(array: ArraySummary) -> int:
    return array.positive_infinity + array.negative_infinity


def _is_zero(array: ArraySummary, elements: int) -> bool:
    # One whole number that is zero is a count like any other.
    least = 1 if is_float(array.dtype) else 2
    return (
        elements >= least
        and not array.nan
        and not _infinite(array)
        and array.l2 is not None
        and as_float(array.l2) == 0.0
    )
