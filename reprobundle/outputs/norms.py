"""Sums and norms of streams of numbers that neither overflow nor vanish."""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np  # noqa: TID253 - this module is imported only to read arrays

# Small enough for all scratch arrays of one step to stay in the processor's cache.
STEP_ELEMENTS = 1 << 16
# From 10,000 elements on, OpenBLAS hands a product to threads that wait for each other
# by spinning: beside other work that is up to a hundred times slower.
_DOT_ELEMENTS = 1 << 13

Array = np.ndarray[Any, np.dtype[Any]]


class ScaledSum:
    """A sum kept as value * 2**exponent, so that squares of 1e±300 do not vanish."""

    def __init__(self) -> None:
        self.value = 0.0
        self.exponent = 0

    def add(self, value: float, exponent: int = 0) -> None:
        """Add value * 2**exponent; `exponent` must be even."""
        if exponent == self.exponent:
            self.value += value
        elif self.value == 0.0:
            self.value, self.exponent = value, exponent
        elif value:
            top = max(self.exponent, exponent)
            self.value = math.ldexp(self.value, self.exponent - top)
            self.value += math.ldexp(value, exponent - top)
            self.exponent = top
        if abs(self.value) > 1e200 and math.isfinite(self.value):
            self.value = math.ldexp(self.value, -512)
            self.exponent += 512

    def root(self) -> float:
        """Return the square root of the sum."""
        try:
            return math.ldexp(math.sqrt(self.value), self.exponent // 2)
        except OverflowError:
            return math.inf


def root_ratio(top: ScaledSum, bottom: ScaledSum) -> float | None:
    """Return sqrt(top / bottom), or None when `bottom` is 0."""
    if bottom.value == 0.0:
        return None
    shift = (top.exponent - bottom.exponent) // 2
    try:
        return math.ldexp(math.sqrt(top.value / bottom.value), shift)
    except OverflowError:
        return math.inf


def cosine(product: ScaledSum, first: ScaledSum, second: ScaledSum) -> float | None:
    """Return product / sqrt(first * second), or None when a norm is 0."""
    norms = math.sqrt(first.value) * math.sqrt(second.value)
    if norms == 0.0 or not math.isfinite(norms):
        return None
    shift = product.exponent - (first.exponent + second.exponent) // 2
    return max(-1.0, min(1.0, math.ldexp(product.value / norms, shift)))


class Magnitude:
    """Root mean square of the finite values of a stream."""

    def __init__(self, *, wide: bool = False) -> None:
        self.squares = ScaledSum()
        self.finite = 0
        dtype = np.dtype("complex128" if wide else "float64")
        self._scratch = np.empty(STEP_ELEMENTS, dtype)

    def add(self, block: Array) -> None:
        """Add one block of any float or complex dtype."""
        for start in range(0, block.size, STEP_ELEMENTS):
            part = block[start : start + STEP_ELEMENTS]
            values = self._scratch[: part.size]
            np.copyto(values, part, casting="unsafe")
            with np.errstate(all="ignore"):
                self._step(values)

    def _step(self, values: Array) -> None:
        total, power = square(values), 0
        if not plain(total, values):
            values = values[np.isfinite(values)]
            power = exponent(values)
            total = square(values * 2.0**-power)
        self.squares.add(total, 2 * power)
        self.finite += values.size

    @property
    def root_mean_square(self) -> float:
        """The root mean square; 0 if there was no finite value."""
        return self.squares.root() / math.sqrt(self.finite) if self.finite else 0.0


_local = threading.local()


def shared_scratch(purpose: str, count: int, dtype: np.dtype[Any]) -> list[Array]:
    """Return the arrays that this thread computes in for one purpose.

    What they hold is anybody's from one step to the next: a table of ten thousand
    columns has no room for arrays of each column's own.
    """
    known: dict[tuple[str, np.dtype[Any]], list[Array]]
    known = _local.__dict__.setdefault("known", {})
    if (purpose, dtype) not in known:
        known[purpose, dtype] = scratch(count, dtype)
    return known[purpose, dtype]


def scratch(count: int, dtype: np.dtype[Any]) -> list[Array]:
    """Return `count` arrays of `STEP_ELEMENTS` to compute in.

    They start at different places within a page. At equal ones a processor takes
    reading from one and writing to another for the same address, and waits.
    """
    stride = STEP_ELEMENTS + 17 * 64 // dtype.itemsize
    whole = np.empty(count * stride, dtype)
    starts = range(0, count * stride, stride)
    return [whole[start : start + STEP_ELEMENTS] for start in starts]


def square(values: Array) -> float:
    """Return the sum of squared magnitudes of float64 or complex128 values."""
    return product(values, values)


def square_in_float32(values: Array) -> float:
    """Return the sum of squares of float32 values, to about seven digits.

    At most `_DOT_ELEMENTS` squares are added in float32 (a relative error below 1e-5
    in the worst case, for they all have one sign), the sums of those in float64.
    """
    whole = values.size - values.size % _DOT_ELEMENTS
    rest = values[whole:]
    return _piecewise(values[:whole], values[:whole]) + float(np.dot(rest, rest))


def product(first: Array, second: Array) -> float:
    """Return the real part of the inner product of float64 or complex128 values."""
    left, right = first.view("f8"), second.view("f8")
    whole = left.size - left.size % _DOT_ELEMENTS
    pieces = _piecewise(left[:whole], right[:whole])
    return pieces + float(np.dot(left[whole:], right[whole:]))


def _piecewise(left: Array, right: Array) -> float:
    """Return the inner product of whole pieces, in one call where numpy has one."""
    shape = (-1, _DOT_ELEMENTS)
    rows = left.reshape(shape), right.reshape(shape)
    if hasattr(np, "vecdot"):
        return float(sum(np.vecdot(*rows).tolist()))
    return sum(float(np.dot(b, a)) for b, a in zip(*rows, strict=True))


def plain(total: float, values: Array) -> bool:
    """Whether a sum of squares lost nothing to overflow, underflow or NaN."""
    return 1e-200 < total < 1e200 or not (total or values.any())


def exponent(values: Array) -> int:
    """Return an even power of two near the largest magnitude."""
    largest = float(np.abs(values).max()) if values.size else 0.0
    if largest == 0.0 or not math.isfinite(largest):
        return 0
    # The inverse power must itself be a float64.
    return max(-1000, math.frexp(largest)[1] // 2 * 2)
