"""How far two streams of numbers lie apart, accumulated block by block.

Everything is computed in float64 (complex128 for complex values). Memory is bounded:
quantiles of more than `SAMPLE_ELEMENTS` elements rest on that many places, one drawn
at random (always the same ones) from each of as many equal stretches, so the rank of
the stated p99 is right within ±0.03 % and that of p50 within ±0.15 % (three standard
deviations). Largest errors, counts and the scale are exact over all elements, the
relative L2 error and the cosine to seven digits (`reprobundle.verify.screening`).
"""

from __future__ import annotations

import math

import numpy as np  # noqa: TID253 - this module is imported only to compare numbers

from reprobundle.format.policy import Tolerance
from reprobundle.outputs.norms import (
    STEP_ELEMENTS,
    Array,
    ScaledSum,
    exponent,
    plain,
    product,
    shared_scratch,
    square,
)
from reprobundle.verify.samples import PairSample
from reprobundle.verify.screening import Record, Screening
from reprobundle.verify.ulps import UlpHistogram

_LARGEST_FLOOR = 1e38
_IN_FLOAT32 = frozenset({"float32", "float16", "bfloat16"})


class Deviation:
    """Float deviation of a replay from its reference under one tolerance.

    Args:
        tolerance: The rule.
        elements: Number of pairs that will come.
        scale: Root mean square of the finite reference elements; only a rule with a
            floor needs it.
        wide: Whether the values are complex.
        digits: Significant decimal digits that tell two values of the dtype apart.
        ulps: Counts the distances of the sampled pairs, if their dtype has any.

    Attributes after all blocks were added:
        elements: Number of pairs.
        outside: Finite pairs outside the rule.
        misplaced: Pairs where NaN or an infinity stands on one side only.
        nan, infinite: Pairs where both hold NaN, or the same infinity.
        max_abs, max_rel: Over the finite pairs; max_rel only where b ≠ 0.
        worst: Position of the pair that lies furthest outside (or nearest to the
            bound), or of the first misplaced pair.
        worst_reference, worst_replay: The two values there.
        sample: Errors of the pairs that quantiles and histogram rest on.
    """

    def __init__(
        self,
        tolerance: Tolerance,
        *,
        elements: int,
        scale: float,
        wide: bool = False,
        digits: int = 17,
        ulps: UlpHistogram | None = None,
    ) -> None:
        self.tolerance = tolerance
        self._digits = digits
        self._floor = tolerance.floor * scale if tolerance.floor else 0.0
        self._type = np.dtype("complex128" if wide else "float64")
        self.elements = self.outside = self.misplaced = self.nan = self.infinite = 0
        self.finite = 0
        self.max_abs = self.max_rel = 0.0
        self.squares_b, self.squares_a = ScaledSum(), ScaledSum()
        self.product, self.squares_d = ScaledSum(), ScaledSum()
        self.sample = PairSample(elements, self._type, ulps)
        self.worst: int | None = None
        self.worst_reference = self.worst_replay = ""
        self._excess = -math.inf
        self._scratch = shared_scratch("pairs", 3, self._type)
        self._real = shared_scratch("errors", 3, np.dtype("float64"))
        # A larger floor than float32 holds belongs to values that it does not hold.
        self._fits = not wide and self._floor < _LARGEST_FLOOR
        self._screening: Screening | None = None

    def add(self, reference: Array, replay: Array, places: Array | None = None) -> None:
        """Add one block of pairs.

        Args:
            reference: One-dimensional, any float or complex dtype.
            replay: The same length.
            places: Position of each pair; by default they follow the ones before.
        """
        with np.errstate(all="ignore"):
            self.sample.add(reference, replay)
            for start in range(0, reference.size, STEP_ELEMENTS):
                part = slice(start, start + STEP_ELEMENTS)
                self._step(
                    reference[part],
                    replay[part],
                    None if places is None else places[part],
                )

    def _step(self, reference: Array, replay: Array, places: Array | None) -> None:
        size = reference.size
        b, a, difference = (values[:size] for values in self._scratch)
        settled = places is None and self._settled(reference, replay)
        if settled and self._add_settled(reference, replay):
            return
        np.copyto(b, reference, casting="unsafe")
        np.copyto(a, replay, casting="unsafe")
        squares = square(b), square(a)
        if plain(squares[0], b) and plain(squares[1], a):
            np.subtract(a, b, out=difference)
            self._add_norms(b, a, difference, squares)
            self.finite += size
            if not settled:
                self._finite(b, a, difference, places)
        else:
            self._mixed(b, a, places)
        self.elements += size

    def _settled(self, reference: Array, replay: Array) -> bool:
        """Whether a step in float32 is known to change no largest figure."""
        if not self._fits or reference.dtype.name not in _IN_FLOAT32:
            return False
        if self._screening is None:
            self._screening = Screening(self.tolerance, self._floor)
        record = Record(self.max_abs, self.max_rel, self._excess)
        return self._screening.settles(reference, replay, record)

    def _add_settled(self, reference: Array, replay: Array) -> bool:
        """Add the norms of a settled step, if float32 is enough for two of them."""
        known = self._screening.squares(replay) if self._screening else None
        if known is None:
            return False
        replayed, apart = known
        b = self._scratch[0][: reference.size]
        np.copyto(b, reference)
        total = square(b)
        if not plain(total, b) or not apart < (total + replayed) / 4:
            return False
        self.squares_b.add(total)
        self.squares_a.add(replayed)
        self.squares_d.add(apart)
        # |a - b|^2 = |a|^2 + |b|^2 - 2ab; the cosine depends on the error of |a|^2 in
        # second order only.
        self.product.add((total + replayed - apart) / 2)
        self.finite += reference.size
        self.elements += reference.size
        return True

    def add_same(self, reference: Array) -> None:
        """Add one block whose replay is bit for bit equal to it."""
        with np.errstate(all="ignore"):
            self.sample.add(reference, reference)
            for start in range(0, reference.size, STEP_ELEMENTS):
                part = reference[start : start + STEP_ELEMENTS]
                b = self._scratch[0][: part.size]
                np.copyto(b, part, casting="unsafe")
                total = square(b)
                if plain(total, b):
                    for sums in (self.squares_b, self.squares_a, self.product):
                        sums.add(total)
                    self.finite += b.size
                    self.elements += b.size
                else:
                    self._step(part, part, None)

    def _mixed(self, b: Array, a: Array, places: Array | None) -> None:
        """Add a step with NaN, infinities, or values whose squares leave float64."""
        both = np.isfinite(b) & np.isfinite(a)
        if not both.all():
            same = _same_components(b, a)
            misplaced = ~both & ~same
            self.nan += int(np.count_nonzero(same & np.isnan(b)))
            self.infinite += int(np.count_nonzero(same & ~both & ~np.isnan(b)))
            self._note_misplaced(misplaced, b, a, places)
        kept = np.flatnonzero(both)
        if not kept.size:
            return
        where = kept + self.elements if places is None else places[kept]
        b, a = b[kept], a[kept]
        difference = a - b
        self._add_norms(b, a, difference, None)
        self.finite += b.size
        self._finite(b, a, difference, where)

    def _note_misplaced(
        self, misplaced: Array, b: Array, a: Array, places: Array | None
    ) -> None:
        count = int(np.count_nonzero(misplaced))
        if count and not self.misplaced:
            self._remember(int(np.argmax(misplaced)), b, a, places)
            self._excess = math.inf
        self.misplaced += count

    def _remember(self, at: int, b: Array, a: Array, places: Array | None) -> None:
        self.worst = self.elements + at if places is None else int(places[at])
        self.worst_reference = show(b[at], self._digits)
        self.worst_replay = show(a[at], self._digits)

    def _finite(
        self, b: Array, a: Array, difference: Array, places: Array | None
    ) -> None:
        """Add the largest errors and the count outside of a step's finite pairs."""
        error, magnitude, ratio = (real[: b.size] for real in self._real)
        np.abs(b, out=magnitude)
        np.abs(difference, out=error)
        self.max_abs = max(self.max_abs, float(error.max()))
        self._add_ratios(error, magnitude, ratio)
        self._judge(error, magnitude, b, a, places)

    def _add_norms(
        self,
        b: Array,
        a: Array,
        difference: Array,
        squares: tuple[float, float] | None,
    ) -> None:
        if squares is not None:
            self.squares_b.add(squares[0])
            self.squares_a.add(squares[1])
            apart = square(difference)
            self.squares_d.add(apart)
            self.product.add(_product(b, a, squares, apart))
            return
        exponents = exponent(b), exponent(a)
        b, a = b * 2.0 ** -exponents[0], a * 2.0 ** -exponents[1]
        self.squares_b.add(square(b), 2 * exponents[0])
        self.squares_a.add(square(a), 2 * exponents[1])
        self.product.add(product(b, a), sum(exponents))
        power = exponent(difference)
        difference = difference * 2.0**-power
        self.squares_d.add(square(difference), 2 * power)

    def _add_ratios(self, error: Array, magnitude: Array, ratio: Array) -> None:
        """Add relative errors; a reference of 0 has none."""
        np.divide(error, magnitude, out=ratio)
        if magnitude.min() == 0.0:
            ratio = ratio[magnitude > 0.0]
            if not ratio.size:
                return
        self.max_rel = max(self.max_rel, float(ratio.max()))

    def _judge(
        self, error: Array, bound: Array, b: Array, a: Array, places: Array | None
    ) -> None:
        """Count |a - b| > atol + rtol * max(|b|, floor); `bound` holds |b|."""
        if self._floor:
            np.maximum(bound, self._floor, out=bound)
        bound *= self.tolerance.rtol
        bound += self.tolerance.atol
        np.subtract(error, bound, out=bound)
        at = int(bound.argmax())
        excess = float(bound[at])
        if excess > 0.0:
            self.outside += int(np.count_nonzero(bound > 0.0))
        if excess > self._excess:
            self._excess = excess
            self._remember(at, b, a, places)

    @property
    def scale(self) -> float | None:
        """Root mean square of the finite reference elements."""
        if not self.finite:
            return None
        return self.squares_b.root() / math.sqrt(self.finite)

    @property
    def zero(self) -> bool:
        """Whether there are elements and every reference element is zero."""
        return self.finite == self.elements > 0 and self.squares_b.value == 0.0


def show(value: object, digits: int = 17) -> str:
    """Return one element as short text that tells two different values apart."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and digits < 17:
        return f"{value:.{digits}g}"
    return str(value) if isinstance(value, str) else repr(value)


def _product(b: Array, a: Array, squares: tuple[float, float], apart: float) -> float:
    """Return the inner product, where safe from |a - b|^2 = |a|^2 + |b|^2 - 2ab."""
    both = squares[0] + squares[1]
    # Then no more than two bits of the difference of both sums cancel.
    return (both - apart) / 2 if apart < both / 4 else product(b, a)


def _same_components(b: Array, a: Array) -> Array:
    """Return where both sides hold NaN or the same value, component by component."""
    if b.dtype.kind != "c":
        return np.asarray((a == b) | (np.isnan(a) & np.isnan(b)))
    parts = zip((b.real, b.imag), (a.real, a.imag), strict=True)
    real, imaginary = (_same_components(left, right) for left, right in parts)
    return np.asarray(real & imaginary)
