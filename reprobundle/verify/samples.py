"""A stratified sample of a stream, so that quantiles need bounded memory."""

from __future__ import annotations

import math

import numpy as np  # noqa: TID253 - this module is imported only to compare numbers

from reprobundle.outputs.norms import Array

SAMPLE_ELEMENTS = 1 << 20


class Sampling:
    """Which places of a stream of pairs belong to its sample.

    Args:
        expected: Number of pairs that will come; it sets the length of a stretch.
    """

    def __init__(self, expected: int) -> None:
        self.stretch = max(1, -(-expected // SAMPLE_ELEMENTS))
        # A fixed seed: the same two outputs always give the same figures.
        self._places = np.random.default_rng(0)

    def choose(self, size: int) -> Array | slice:
        """Return the places of the next `size` pairs that belong to the sample."""
        if self.stretch == 1:
            return slice(None)
        starts = np.arange(0, size, self.stretch)
        places = starts + self._places.integers(0, self.stretch, starts.size)
        return places[places < size]


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
