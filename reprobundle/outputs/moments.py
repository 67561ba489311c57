"""Counts and moments of one array, block by block."""

from __future__ import annotations

import math

import numpy as np  # noqa: TID253 - this module is imported only to read arrays

from reprobundle.format.record import ArraySummary, number
from reprobundle.outputs.arrays import NamedArray
from reprobundle.outputs.norms import (
    STEP_ELEMENTS,
    Array,
    ScaledSum,
    exponent,
    plain,
    square,
)
from reprobundle.outputs.text import printable

BLOCK_ELEMENTS = 1 << 18


def summarise_array(array: NamedArray) -> ArraySummary:
    """Return the summary of one array; its elements are read once.

    Raises:
        UnreadableOutputError: The elements cannot be read to their end.
    """
    moments = Moments()
    for block in array.blocks(BLOCK_ELEMENTS):
        if array.dtype.startswith(("datetime", "timedelta", "U", "S", "V")):
            continue
        for start in range(0, block.size, STEP_ELEMENTS):
            moments.add(block[start : start + STEP_ELEMENTS])
    return moments.summary(array.name, array.dtype, array.shape)


class Moments:
    """Running counts and sums of the elements seen so far, in float64."""

    def __init__(self) -> None:
        self.nan = self.positive_infinity = self.negative_infinity = 0
        self.negative_zero = self.finite = 0
        self.minimum, self.maximum = math.inf, -math.inf
        self.total, self.squares = ScaledSum(), ScaledSum()
        self.ordered = True

    def add(self, block: Array) -> None:
        """Add elements of one dtype, in any number."""
        self.ordered = block.dtype.kind != "c"
        values = block.astype("float64" if self.ordered else "complex128")
        with np.errstate(all="ignore"):
            if not plain(square(values), values):
                values = self._take_finite(values)
            if values.size:
                self._add_finite(values)

    def _take_finite(self, values: Array) -> Array:
        self.nan += int(np.count_nonzero(np.isnan(values)))
        if self.ordered:
            self.positive_infinity += int(np.count_nonzero(values == np.inf))
            self.negative_infinity += int(np.count_nonzero(values == -np.inf))
        else:
            infinite = np.isinf(values) & ~np.isnan(values)
            self.positive_infinity += int(np.count_nonzero(infinite))
        return values[np.isfinite(values)]

    def _add_finite(self, values: Array) -> None:
        power = exponent(values)
        scaled = values if abs(power) < 256 else values * 2.0**-power
        power = 0 if scaled is values else power
        self.squares.add(square(scaled), 2 * power)
        self.finite += values.size
        if not self.ordered:
            return
        self.total.add(float(scaled.sum()), power)
        lowest, highest = float(values.min()), float(values.max())
        self.minimum = min(self.minimum, lowest)
        self.maximum = max(self.maximum, highest)
        if lowest <= 0.0 <= highest:
            zeros = np.signbit(values) & (values == 0.0)
            self.negative_zero += int(np.count_nonzero(zeros))

    def summary(self, name: str, dtype: str, shape: tuple[int, ...]) -> ArraySummary:
        """Return what was seen, as the summary of the array called `name`."""
        known = self.finite > 0
        ordered = known and self.ordered
        mean = math.ldexp(self.total.value / max(1, self.finite), self.total.exponent)
        return ArraySummary(
            name=printable(name),
            dtype=dtype,
            shape=shape,
            nan=self.nan,
            positive_infinity=self.positive_infinity,
            negative_infinity=self.negative_infinity,
            negative_zero=self.negative_zero,
            minimum=number(self.minimum) if ordered else None,
            maximum=number(self.maximum) if ordered else None,
            mean=number(mean) if ordered else None,
            l2=number(self.squares.root()) if known else None,
        )
