"""Whether what two summaries count and sum up can belong to arrays within tolerance.

If every element of a replay lies within ``bound(b) = atol + rtol * max(|b|, floor *
scale)`` of its reference b, then extremes, mean and norm cannot lie further apart than
the bounds here; they follow from the triangle inequality. A share of elements that may
lie outside is not allowed for: whoever compares a sample has to be stricter.
"""

from __future__ import annotations

import math

from reprobundle.format.policy import Tolerance
from reprobundle.format.record import ArraySummary, Number, as_float

# Two machines add the same numbers in another order. Their sums in float64, block by
# block, agree far better than this share of the largest magnitude.
_ROUNDING = 1e-9

_COUNTS = (
    ("nan", "NaN"),
    ("positive_infinity", "+inf"),
    ("negative_infinity", "-inf"),
)


def finite_count(summary: ArraySummary) -> int:
    """Return how many elements are finite, never less than 0."""
    size = math.prod(summary.shape)
    infinite = summary.positive_infinity + summary.negative_infinity
    return max(0, size - summary.nan - infinite)


def root_mean_square(summary: ArraySummary) -> float:
    """Return the root mean square of the finite elements; 0 if there are none."""
    count = finite_count(summary)
    if summary.l2 is None or not count:
        return 0.0
    return as_float(summary.l2) / math.sqrt(count)


def moments_problem(
    reference: ArraySummary, replay: ArraySummary, rule: Tolerance
) -> str:
    """Return what cannot be if both arrays agree within `rule`, or an empty string."""
    for field, label in _COUNTS:
        b, a = getattr(reference, field), getattr(replay, field)
        if b != a:
            return f"the whole array holds {a:,} {label}, expected {b:,}"
    for field, limit in _limits(reference, rule).items():
        b, a = getattr(reference, field), getattr(replay, field)
        if not _is_near(b, a, limit):
            return f"{field} of the whole array is {a}, expected {b} within {limit:.3g}"
    return ""


def _limits(reference: ArraySummary, rule: Tolerance) -> dict[str, float]:
    """Return how far each moment may lie from the reference's."""
    scale = root_mean_square(reference)
    peak = max(
        (
            abs(as_float(value))
            for value in (reference.minimum, reference.maximum)
            if value is not None
        ),
        default=scale,
    )
    rounding = _ROUNDING * max(peak, scale)
    # The mean magnitude is at most the root mean square.
    typical = rule.atol + rule.rtol * (1.0 + rule.floor) * scale + rounding
    extreme = rule.atol + rule.rtol * max(peak, rule.floor * scale)
    return {
        "minimum": extreme,
        "maximum": extreme,
        "mean": typical,
        "l2": typical * math.sqrt(finite_count(reference)),
    }


def _is_near(b: Number | None, a: Number | None, limit: float) -> bool:
    if b is None or a is None:
        return b is a
    left, right = as_float(b), as_float(a)
    return left == right or abs(left - right) <= limit
