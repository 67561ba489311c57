"""How the error of a series grows from row to row, such as that of a loss curve.

The rows are cut into stretches that double in length: 0, 1, 2-3, 4-7 and so on. So a
difference that grows by a constant factor with each step shows early, and a series of
65,536 rows has 17 stretches.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np  # noqa: TID253 - this module is imported only to compare numbers

from reprobundle.format.judged import Segment
from reprobundle.format.policy import Tolerance
from reprobundle.format.record import number
from reprobundle.outputs.norms import Array

MOST_ROWS = 1 << 16
FEWEST_ROWS = 4


class Series:
    """Collects the pairs of one series; it forgets one that grows too long.

    Args:
        tolerance: The rule they are compared under.
        scale: Root mean square of the reference, for a rule with a floor.
    """

    def __init__(self, tolerance: Tolerance, scale: float) -> None:
        self._tolerance = tolerance
        self._floor = tolerance.floor * scale if tolerance.floor else 0.0
        self._pairs: list[tuple[Array, Array]] = []
        self._rows = 0

    def add(self, reference: Array, replay: Array) -> None:
        """Add one block of real numbers, in order."""
        self._rows += reference.size
        if self._rows > MOST_ROWS:
            self._pairs.clear()
            return
        # A signalling NaN makes numpy warn of the cast.
        with np.errstate(all="ignore"):
            self._pairs.append((reference.astype("f8"), replay.astype("f8")))

    def segments(self) -> tuple[Segment, ...]:
        """Return the stretches, or nothing for a series too short or too long."""
        if not FEWEST_ROWS <= self._rows <= MOST_ROWS or not self._pairs:
            return ()
        b = np.concatenate([pair[0] for pair in self._pairs])
        a = np.concatenate([pair[1] for pair in self._pairs])
        return tuple(
            self._segment(first, b[first:end], a[first:end])
            for first, end in pairwise(_bounds(b.size))
        )

    def _segment(self, first: int, b: Array, a: Array) -> Segment:
        rule = self._tolerance
        with np.errstate(all="ignore"):
            both = np.isfinite(b) & np.isfinite(a)
            same = (b == a) | (np.isnan(b) & np.isnan(a))
            error, magnitude = np.abs(a - b)[both], np.abs(b)[both]
            bound = rule.atol + rule.rtol * np.maximum(magnitude, self._floor)
            relative = error[magnitude > 0] / magnitude[magnitude > 0]
        outside = np.count_nonzero(error > bound) + np.count_nonzero(~both & ~same)
        return Segment(
            first=first,
            rows=b.size,
            max_abs=number(float(error.max())) if error.size else None,
            max_rel=number(float(relative.max())) if relative.size else None,
            outside=int(outside),
        )


def _bounds(rows: int) -> Sequence[int]:
    bounds = [0]
    while bounds[-1] < rows:
        bounds.append(min(rows, max(1, 2 * bounds[-1])))
    return bounds


def growth(segments: Sequence[Segment]) -> float:
    """Return how many times larger the last error is than the first one there is.

    0 if the error does not grow: a difference that is there from the first row on and
    stays is no drift.
    """
    errors = [
        float(segment.max_rel) for segment in segments if segment.max_rel is not None
    ]
    nonzero = [error for error in errors if error > 0]
    if len(nonzero) < FEWEST_ROWS:
        return 0.0
    half = len(nonzero) // 2
    early, late = max(nonzero[:half]), max(nonzero[half:])
    return late / nonzero[0] if late > early else 0.0
