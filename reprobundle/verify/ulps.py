"""How many representable values lie between a replay's elements and the reference's.

The bits of a finite IEEE number, read as a whole number with its sign, count the
representable values in order; the difference of two counts is their distance in units
in the last place (Goldberg, "What every computer scientist should know about
floating-point arithmetic", 1991). bfloat16 and the float8 formats are ordered alike.
"""

from __future__ import annotations

import numpy as np  # noqa: TID253 - this module is imported only to compare numbers

from reprobundle.outputs.norms import Array

DTYPES = frozenset(
    {"float16", "float32", "float64", "bfloat16", "float8_e4m3fn", "float8_e5m2"}
)
MOST_BUCKETS = 33


class UlpHistogram:
    """Histogram of pairs, doubling from bucket to bucket.

    Of a large array it is given the pairs of the stratified sample only.
    """

    def __init__(self) -> None:
        self._counts = np.zeros(MOST_BUCKETS, np.int64)

    def add(self, reference: Array, replay: Array) -> None:
        """Add pairs; both of one dtype of `DTYPES`."""
        # Counted at once, so that no pair has to be kept.
        self._counts += _buckets(reference, replay)

    @property
    def buckets(self) -> tuple[int, ...]:
        """Finite pairs 0, 1, 2-3, 4-7, 8-15 … apart; the 33rd bucket is open."""
        filled = np.flatnonzero(self._counts)
        return tuple(self._counts[: filled[-1] + 1].tolist()) if filled.size else ()


def distances(reference: Array, replay: Array) -> Array:
    """Return the distance of each pair in units in the last place, as uint64."""
    left, right = _ordered(reference), _ordered(replay)
    # Two int64 may lie further apart than int64 reaches; unsigned wraps round rightly.
    apart = left.astype("u8") - right.astype("u8")
    return np.asarray(np.where(left >= right, apart, -apart))


def _ordered(values: Array) -> Array:
    """Return whole numbers in the order of the values; both zeros are 0."""
    width = values.dtype.itemsize
    bits = values.view(f"i{width}").astype("i8")
    lowest = -(1 << (8 * width - 1))
    return np.asarray(np.where(bits < 0, lowest - bits, bits))


def _buckets(reference: Array, replay: Array) -> Array:
    wide = reference.astype("f8"), replay.astype("f8")
    finite = np.isfinite(wide[0]) & np.isfinite(wide[1])
    apart = distances(reference[finite], replay[finite])
    # frexp gives 0 for 0 and n for 2^(n-1) … 2^n - 1.
    places = np.minimum(np.frexp(apart.astype("f8"))[1], MOST_BUCKETS - 1)
    return np.asarray(np.bincount(places, minlength=MOST_BUCKETS))
