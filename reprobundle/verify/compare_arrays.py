"""How the arrays of a replay stand to those of the reference, element by element.

Order of the checks (spec.md, "Comparison"): names, dtype, shape, places of NaN and
infinities, exact kinds, floats under their tolerance. Both sides are read in step,
one block at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import msgspec
import numpy as np  # noqa: TID253 - this module is imported only to compare arrays

from reprobundle.format.findings import ArrayComparison
from reprobundle.format.policy import Tolerance
from reprobundle.format.record import Number, as_float, number
from reprobundle.outputs.arrays import Array, NamedArray
from reprobundle.outputs.norms import Magnitude, cosine, root_ratio
from reprobundle.verify.deviation import Deviation, show
from reprobundle.verify.drift import Series
from reprobundle.verify.summaries import is_float, structure_problem
from reprobundle.verify.ulps import DTYPES, UlpHistogram

BLOCK_ELEMENTS = 1 << 18
_FIRST_LOOK = 256
# Rounding in the order of the summation is far less, and no tolerance is that fine.
_SAME_SCALE = 1e-12

# A pixel is a whole number of up to 32 bits, or a float32.
_DIGITS = {
    "float16": 5,
    "bfloat16": 4,
    "float32": 9,
    "complex64": 9,
    "pixel": 10,
}
EXACT = Tolerance(rtol=0.0, atol=0.0)


def compare_arrays(
    reference: Sequence[NamedArray],
    replay: Sequence[NamedArray],
    tolerance_of: Callable[[str], Tolerance | None],
    scale_of: Mapping[str, float] = MappingProxyType({}),
) -> tuple[ArrayComparison, ...]:
    """Return one comparison for every array that either side holds.

    Args:
        reference: Arrays of the reference's file.
        replay: Arrays of the replay's file.
        tolerance_of: The tolerance of a dtype, None where the policy states none:
            such an array is compared exactly.
        scale_of: Array name → its scale, as the reference's record states it.
    """
    replayed = {array.name: array for array in replay}
    results = []
    for array in reference:
        other = replayed.pop(array.name, None)
        if other is None:
            results.append(_one_sided(array, "missing in the replay"))
        else:
            scale = scale_of.get(array.name)
            rule = tolerance_of(array.dtype)
            results.append(compare_array(array, other, rule, scale))
    results.extend(
        _one_sided(array, "not in the reference") for array in replayed.values()
    )
    return tuple(results)


def _one_sided(array: NamedArray, problem: str) -> ArrayComparison:
    return ArrayComparison(
        name=array.name,
        dtype=array.dtype,
        elements=0,
        equal=False,
        outside=max(1, array.size),
        problem=problem,
    )


def compare_array(
    reference: NamedArray,
    replay: NamedArray,
    tolerance: Tolerance | None,
    scale: float | None = None,
) -> ArrayComparison:
    """Return how one array stands to its reference.

    Args:
        reference: The array that is right by definition.
        replay: The array that is judged.
        tolerance: The rule for floats; None compares them exactly.
        scale: Root mean square of the finite reference elements, if somebody states
            it. It saves a rule with a floor one reading; it is measured anyway, and
            a wrong one is not used.
    """
    problem = structure_problem(
        (reference.dtype, reference.shape), (replay.dtype, replay.shape)
    )
    if problem:
        return ArrayComparison(
            name=reference.name,
            dtype=reference.dtype,
            elements=0,
            equal=False,
            outside=max(1, reference.size, replay.size),
            problem=problem,
        )
    if is_float(reference.dtype):
        return compare_floats(reference, replay, tolerance or EXACT, scale)
    return _compare_exactly(reference, replay)


def root_mean_square(array: NamedArray) -> float:
    """Return the root mean square over the finite elements; 0 if there are none."""
    magnitude = Magnitude(wide=array.dtype.startswith("complex"))
    for block in array.blocks(BLOCK_ELEMENTS):
        magnitude.add(block)
    return magnitude.root_mean_square


def compare_floats(
    reference: NamedArray,
    replay: NamedArray,
    tolerance: Tolerance,
    stated: float | None = None,
) -> ArrayComparison:
    """Return how numbers of equal dtype and shape stand to each other under a rule.

    Args:
        reference: The numbers that are right by definition.
        replay: The numbers that are judged.
        tolerance: The rule.
        stated: As `scale` of `compare_array`.
    """
    if not tolerance.floor:
        return _measured(reference, replay, tolerance, 0.0)
    if stated is not None and math.isfinite(stated):
        result = _measured(reference, replay, tolerance, stated)
        scale = as_float(result.scale) if result.scale is not None else 0.0
        if math.isclose(stated, scale, rel_tol=_SAME_SCALE):
            return result
    if stated is None:
        # A floor only widens a bound: what lies within without it lies within, and the
        # same reading tells the scale. Only the place of the worst element may be
        # another one, of elements that are all within.
        result = _measured(reference, replay, tolerance, 0.0)
        if not result.outside:
            return result
    return _measured(reference, replay, tolerance, root_mean_square(reference))


def _measured(
    reference: NamedArray, replay: NamedArray, tolerance: Tolerance, scale: float
) -> ArrayComparison:
    is_complex = reference.dtype.startswith("complex")
    deviation = Deviation(
        tolerance,
        elements=reference.size,
        scale=scale,
        wide=is_complex,
        digits=_DIGITS.get(reference.dtype, 17),
        ulps=UlpHistogram() if reference.dtype in DTYPES else None,
    )
    is_series = len(reference.shape) == 1 and not is_complex
    series = Series(tolerance, scale) if is_series else None
    equal = True
    for b, a in zip(
        reference.blocks(BLOCK_ELEMENTS), replay.blocks(BLOCK_ELEMENTS), strict=True
    ):
        same = _same_bits(b, a)
        equal = equal and same
        if same:
            deviation.add_same(b)
        else:
            deviation.add(b, a)
        if series is not None:
            series.add(b, a)
    measured = describe(
        deviation, reference.name, reference.dtype, reference.shape, equal=equal
    )
    if equal:
        return measured
    return msgspec.structs.replace(
        measured,
        ulp=deviation.sample.buckets(),
        drift=series.segments() if series is not None else (),
    )


def _same_bits(b: Array, a: Array) -> bool:
    """Whether two blocks agree bit for bit, NaN payloads and signs of zero too."""
    left, right = _bits(b), _bits(a)
    # Arrays that differ mostly differ at once.
    start = np.array_equal(left[:_FIRST_LOOK], right[:_FIRST_LOOK])
    return start and bool(np.array_equal(left, right))


def _bits(block: Array) -> Array:
    width = block.dtype.itemsize
    unit = f"u{width}" if width in (1, 2, 4, 8) else "u1"
    return np.ascontiguousarray(block).view(unit)


def describe(
    deviation: Deviation, name: str, dtype: str, shape: tuple[int, ...], *, equal: bool
) -> ArrayComparison:
    """Return what `deviation` measured as a comparison of one array or column."""
    rule = deviation.tolerance
    p50_abs, p99_abs = deviation.sample.absolute.quantiles(0.5, 0.99)
    p50_rel, p99_rel = deviation.sample.relative.quantiles(0.5, 0.99)
    some = deviation.finite > 0
    relative = deviation.sample.relative.size > 0
    return ArrayComparison(
        name=name,
        dtype=dtype,
        elements=deviation.elements,
        equal=equal,
        outside=deviation.outside + deviation.misplaced,
        rtol=rule.rtol,
        atol=rule.atol,
        floor=rule.floor,
        share=rule.share,
        max_abs=number(deviation.max_abs) if some else None,
        p99_abs=_number(p99_abs),
        p50_abs=_number(p50_abs),
        max_rel=number(deviation.max_rel) if relative else None,
        p99_rel=_number(p99_rel),
        p50_rel=_number(p50_rel),
        relative_l2=_number(root_ratio(deviation.squares_d, deviation.squares_b)),
        cosine=_number(
            cosine(deviation.product, deviation.squares_b, deviation.squares_a)
        ),
        worst_index=_index(deviation.worst, shape) if not equal else None,
        expected=deviation.worst_reference if not equal else "",
        got=deviation.worst_replay if not equal else "",
        nan=deviation.nan,
        infinite=deviation.infinite,
        scale=_number(deviation.scale),
        zero=deviation.zero,
        sampled=deviation.sample.absolute.size,
        problem=_problem(deviation),
    )


def _problem(deviation: Deviation) -> str:
    """Say why the array lies outside its rule, or return an empty string."""
    if deviation.misplaced:
        return (
            f"NaN or an infinity stands on one side only in {deviation.misplaced:,} "
            f"of {deviation.elements:,} places"
        )
    allowed = deviation.tolerance.share * deviation.elements
    if deviation.outside > allowed:
        percent = 100 * deviation.outside / deviation.elements
        return (
            f"{deviation.outside:,} of {deviation.elements:,} elements "
            f"({percent:.3g} %) outside the tolerance"
        )
    return ""


def _number(value: float | None) -> Number | None:
    return None if value is None else number(value)


def _index(place: int | None, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    if place is None:
        return None
    return tuple(int(axis) for axis in np.unravel_index(place, shape))


class _ExactDifference:
    """Elements that differ in an array whose dtype allows no tolerance."""

    def __init__(self) -> None:
        self.outside = self.seen = 0
        self.first: int | None = None
        self.expected = self.got = ""
        self.max_abs: float | None = None
        self.nonzero = False

    def add(self, b: Array, a: Array) -> None:
        self.nonzero = self.nonzero or _any_nonzero(b)
        differs = _bits(b) != _bits(a)
        differs = differs.reshape(b.size, -1).any(axis=1)
        count = int(np.count_nonzero(differs))
        if count and self.first is None:
            at = int(np.argmax(differs))
            self.first = self.seen + at
            self.expected, self.got = show(b[at]), show(a[at])
        if count and b.dtype.kind in "iu":
            error = np.abs(b[differs].astype("f8") - a[differs].astype("f8"))
            self.max_abs = max(self.max_abs or 0.0, float(error.max()))
        self.outside += count
        self.seen += b.size


def _any_nonzero(block: Array) -> bool:
    # A text or a date is never "zero": only numbers and truth values can be.
    return block.dtype.kind not in "iub" or bool(block.any())


def _compare_exactly(reference: NamedArray, replay: NamedArray) -> ArrayComparison:
    difference = _ExactDifference()
    for b, a in zip(
        reference.blocks(BLOCK_ELEMENTS), replay.blocks(BLOCK_ELEMENTS), strict=True
    ):
        difference.add(b, a)
    problem = ""
    if difference.outside:
        problem = (
            f"{difference.outside:,} of {reference.size:,} elements differ; "
            f"{reference.dtype} is compared exactly"
        )
    return ArrayComparison(
        name=reference.name,
        dtype=reference.dtype,
        elements=reference.size,
        equal=not difference.outside,
        outside=difference.outside,
        max_abs=difference.max_abs,
        worst_index=_index(difference.first, reference.shape),
        expected=difference.expected,
        got=difference.got,
        # One whole number that is zero is a count like any other.
        zero=reference.size > 1 and not difference.nonzero,
        problem=problem,
    )
