"""Which pairs need no second look: a test in float32 before the one in float64.

Of a large array nearly every step changes no largest error and holds no element
outside the tolerance. That can be shown in float32 at a third of the price, with room
for its rounding; every other step goes the exact way. A test may ask for the exact way
without need, and never the other way round, with one exception: the largest relative
error leaves out pairs below float32's normal range (1e-38).

Of a settled step two of the sums of squares are taken in float32 as well. They change
no verdict, only the eighth digit of the relative L2 error.
"""

from __future__ import annotations

import numpy as np  # noqa: TID253 - this module is imported only to compare numbers

from reprobundle.format.policy import Tolerance
from reprobundle.outputs.norms import (
    STEP_ELEMENTS,
    Array,
    shared_scratch,
    square_in_float32,
)

# Float32 rounds by 2^-24 relative; at most five roundings meet in one comparison.
_ROOM = 1e-6
# Below, the products would leave float32's normal range and lose relative precision.
_SMALLEST = 1e-30
# Between these, sums of squares of float32 neither overflow nor lose what counts.
_LEAST_SQUARES, _LEAST_ERRORS, _MOST_SQUARES = 1e-20, 1e-26, 1e30


class Record:
    """The largest figures so far, which a step may or may not exceed.

    Attributes:
        max_abs, max_rel: Largest absolute and relative error.
        excess: Largest of |a - b| less its bound; below 0 if all lie within.
    """

    __slots__ = ("excess", "max_abs", "max_rel")

    def __init__(self, max_abs: float, max_rel: float, excess: float) -> None:
        self.max_abs = max_abs
        self.max_rel = max_rel
        self.excess = excess


class Screening:
    """Float32 scratch space, and the test.

    Args:
        tolerance: The rule.
        floor: Smallest magnitude that the rule uses, in the unit of the values.
    """

    def __init__(self, tolerance: Tolerance, floor: float) -> None:
        self._rule = tolerance
        # numpy takes the larger of an array and a number five times slower.
        self._floors = np.full(STEP_ELEMENTS if floor else 0, floor, np.float32)
        self._values = shared_scratch("screening", 3, np.dtype("float32"))
        self._largest = 0.0
        self._flags = np.empty(STEP_ELEMENTS, np.bool_)

    def settles(self, b: Array, a: Array, record: Record) -> bool:
        """Whether the step can change neither a largest figure nor a count.

        Args:
            b: Reference; float32 or a type that float32 holds exactly.
            a: Replay, of the same dtype.
            record: The largest figures so far.
        """
        if min(record.max_abs, record.max_rel, self._rule.atol) < _SMALLEST:
            return False
        error, magnitude, bound = (values[: b.size] for values in self._values)
        if b.dtype == error.dtype:
            np.subtract(a, b, out=error)
        else:
            np.copyto(magnitude, b)
            np.copyto(error, a)
            np.subtract(error, magnitude, out=error)
            b = magnitude
        np.abs(error, out=error)
        self._largest = float(error.max())
        # A NaN or an infinity on either side makes this comparison false.
        if not self._largest < record.max_abs * (1 - _ROOM):
            return False
        np.abs(b, out=magnitude)
        np.multiply(magnitude, np.float32(record.max_rel * (1 - _ROOM)), out=bound)
        if self._any_above(error, bound):
            return False
        return self._within(error, magnitude, bound, record)

    def squares(self, a: Array) -> tuple[float, float] | None:
        """Return the sums of squares of the replay and of the error of a settled step.

        Args:
            a: The replay of the step that was settled last.

        Returns:
            Both to about seven digits; None where float32 could not hold them.
        """
        if a.dtype != np.float32:
            return None
        replay = square_in_float32(a)
        apart = square_in_float32(self._values[0][: a.size])
        known = _LEAST_SQUARES < replay < _MOST_SQUARES
        # What vanishes of 65,536 errors is less than 1e-33.
        small = _LEAST_ERRORS < apart < _MOST_SQUARES or not self._largest
        return (replay, apart) if known and small else None

    def _within(
        self, error: Array, magnitude: Array, bound: Array, record: Record
    ) -> bool:
        """Whether no element lies outside or nearer to its bound than the worst."""
        rule = self._rule
        nearest = min(record.excess, 0.0)
        constant = rule.atol + nearest
        constant -= 4 * _ROOM * (rule.atol - nearest)
        if self._implied(magnitude, constant, record):
            return True
        if self._floors.size:
            np.maximum(magnitude, self._floors[: magnitude.size], out=magnitude)
        np.multiply(magnitude, np.float32(rule.rtol * (1 - 2 * _ROOM)), out=bound)
        bound += np.float32(constant)
        return not self._any_above(error, bound)

    def _implied(self, magnitude: Array, constant: float, record: Record) -> bool:
        """Whether the test of relative errors before shows that all lie within.

        Every error is below max_rel * |b|, which grows more slowly than the bound: what
        holds of the smallest |b| holds of all.
        """
        slope = self._rule.rtol * (1 - 2 * _ROOM) - record.max_rel
        if self._floors.size or slope <= 0.0:
            return False
        return slope * float(magnitude.min()) + constant >= 0.0

    def _any_above(self, error: Array, bound: Array) -> bool:
        flags = np.greater(error, bound, out=self._flags[: error.size])
        return bool(flags.any())
