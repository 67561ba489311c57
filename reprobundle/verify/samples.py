"""A stratified sample of a stream, so that quantiles need bounded memory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np  # noqa: TID253 - this module is imported only to compare numbers

from reprobundle.outputs.norms import Array
from reprobundle.verify.ulps import UlpHistogram

SAMPLE_ELEMENTS = 1 << 20
# Pairs are gathered before anything is computed of them: each block holds few.
_PENDING_PAIRS = 1 << 15


class Sampling:
    """Which places of a stream of pairs belong to its sample.

    Args:
        expected: Number of pairs that will come; it sets the length of a stretch.
    """

    def __init__(self, expected: int) -> None:
        self.stretch = max(1, -(-expected // SAMPLE_ELEMENTS))
        # A fixed seed: the same two outputs always give the same figures.
        self._places = np.random.default_rng(0)
        self._size = 0
        self._starts = np.zeros(0, np.int64)

    def choose(self, size: int) -> Array | slice:
        """Return the places of the next `size` pairs that belong to the sample."""
        if self.stretch == 1:
            return slice(None)
        if size != self._size:
            self._size, self._starts = size, np.arange(0, size, self.stretch)
        drawn = self._places.integers(0, self.stretch, self._starts.size)
        drawn += self._starts
        # Only the last stretch can reach beyond the end.
        return drawn[:-1] if drawn.size and drawn[-1] >= size else drawn


class Sample:
    """The figures of the sampled places, for their quantiles."""

    def __init__(self) -> None:
        self._kept: list[Array] = []

    def keep(self, values: Array) -> None:
        """Keep values; the caller must not change them afterwards."""
        self._kept.append(values)

    def quantiles(self, *shares: float) -> tuple[float | None, ...]:
        """Return the smallest value that at least each share of the sample reaches."""
        values = np.concatenate(self._kept) if self._kept else np.zeros(0)
        if not values.size:
            return tuple(None for _ in shares)
        ranks = [max(0, math.ceil(share * values.size) - 1) for share in shares]
        values.partition(ranks)
        return tuple(float(values[rank]) for rank in ranks)

    @property
    def size(self) -> int:
        """Number of kept values."""
        return sum(part.size for part in self._kept)


class PairSample:
    """The errors of the sampled pairs of a stream.

    Args:
        expected: Number of pairs that will come.
        wide: float64, or complex128 for complex values.
        ulps: Counts the distances of the sampled pairs, if their dtype has any.
    """

    def __init__(
        self, expected: int, wide: np.dtype[Any], ulps: UlpHistogram | None = None
    ) -> None:
        self._sampling = Sampling(expected)
        self._wide = wide
        self._ulps = ulps
        self._pending: list[tuple[Array, Array]] = []
        self._waiting = 0
        self._absolute, self._relative = Sample(), Sample()

    def add(self, reference: Array, replay: Array) -> None:
        """Take from one block the pairs that belong to the sample."""
        chosen = self._sampling.choose(reference.size)
        if isinstance(chosen, slice):
            # The block is not valid any more when the next one is read.
            pair = reference.copy(), replay.copy()
        else:
            pair = reference[chosen], replay[chosen]
        self._pending.append(pair)
        self._waiting += pair[0].size
        if self._waiting >= _PENDING_PAIRS:
            self._measure()

    @property
    def absolute(self) -> Sample:
        """Absolute errors of the finite pairs."""
        self._measure()
        return self._absolute

    @property
    def relative(self) -> Sample:
        """Relative errors of the finite pairs whose reference is not 0."""
        self._measure()
        return self._relative

    def buckets(self) -> tuple[int, ...]:
        """Return the histogram of distances; empty without one."""
        self._measure()
        return self._ulps.buckets if self._ulps is not None else ()

    def _measure(self) -> None:
        if not self._pending:
            return
        b, a = (np.concatenate(side) for side in zip(*self._pending, strict=True))
        self._pending.clear()
        self._waiting = 0
        with np.errstate(all="ignore"):
            if self._ulps is not None:
                self._ulps.add(b, a)
            self._keep(b.astype(self._wide), a.astype(self._wide))

    def _keep(self, b: Array, a: Array) -> None:
        both = np.isfinite(b) & np.isfinite(a)
        if not both.all():
            b, a = b[both], a[both]
        error, magnitude = np.abs(a - b), np.abs(b)
        self._absolute.keep(error)
        if magnitude.size and magnitude.min() == 0.0:
            error, magnitude = error[magnitude > 0.0], magnitude[magnitude > 0.0]
        self._relative.keep(error / magnitude)
