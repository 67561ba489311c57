"""How two outputs stand to each other of which one side or both kept a sample only.

Equal digests of all blocks prove that an array is bit for bit equal. Where they
differ, the elements at the sampled places are compared under the tolerance, and the
record's counts and moments, which cover every element, have to agree as far as the
tolerance lets them differ (spec.md, "Samples"). A difference outside the sample that
moves no moment stays unseen; so the result names its number of places.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np  # noqa: TID253 - this module is imported only to compare arrays

from reprobundle.format.findings import ArrayComparison
from reprobundle.format.policy import Tolerance
from reprobundle.format.record import ArraySummary, as_float
from reprobundle.outputs.array_blocks import Array
from reprobundle.outputs.safetensors_file import CODES, dtype_of
from reprobundle.outputs.sample import ArraySample, BlockDigests
from reprobundle.verify.compare_arrays import describe
from reprobundle.verify.deviation import Deviation, show
from reprobundle.verify.sampled_moments import moments_problem, root_mean_square
from reprobundle.verify.summaries import compare_array_summaries, is_float

_DTYPES = frozenset((*CODES, "complex128"))


class Sampled(NamedTuple):
    """One array of one side: what its record says of it, and its sample."""

    summary: ArraySummary
    sample: ArraySample


def compare_samples(
    reference: Sequence[Sampled],
    replay: Sequence[Sampled],
    tolerance_of: Callable[[str], Tolerance | None],
) -> tuple[ArrayComparison, ...]:
    """Return one comparison for every array that either side holds.

    Args:
        reference: Arrays of the reference.
        replay: Arrays of the replay.
        tolerance_of: The tolerance of a dtype, None where the policy states none.
    """
    parts = compare_array_summaries(
        [one.summary for one in reference], [one.summary for one in replay], same=False
    )
    here = {one.summary.name: one for one in replay}
    sides = {one.summary.name: (one, here.get(one.summary.name)) for one in reference}
    result = []
    for part in parts:
        b, a = sides.get(part.name, (None, None))
        if part.problem or b is None or a is None:
            result.append(part)
        else:
            result.append(_Pair(b, a, part).result(tolerance_of(part.dtype)))
    return tuple(result)


class _Pair:
    """One array of both sides, of equal dtype and shape."""

    def __init__(self, b: Sampled, a: Sampled, structure: ArrayComparison) -> None:
        self.b = b
        self.a = a
        self.structure = structure
        self.size = math.prod(b.summary.shape)

    def result(self, tolerance: Tolerance | None) -> ArrayComparison:
        wrong = (
            _contradiction(self.b, "reference")
            or _contradiction(self.a, "replay")
            or self._other_places()
        )
        if wrong:
            return self._part(outside=1, problem=wrong)
        blocks = self._differing_blocks()
        if not blocks:
            return self._identical()
        exact = tolerance is None or not is_float(self.structure.dtype)
        if exact or self.structure.dtype not in _DTYPES:
            return self._differing_exactly(blocks)
        return self._under(tolerance or Tolerance(rtol=0.0, atol=0.0))

    def _part(self, **changes: object) -> ArrayComparison:
        return msgspec.structs.replace(self.structure, **changes)

    def _other_places(self) -> str:
        """Return what forbids to set both samples side by side."""
        if not np.array_equal(self.b.sample.places, self.a.sample.places):
            return "both samples were taken at different places"
        shapes = self.b.sample.blocks.shape, self.a.sample.blocks.shape
        if shapes[0] != shapes[1] or self.b.sample.values.shape != (
            self.a.sample.values.shape
        ):
            return "both samples differ in their form"
        equal = np.array_equal(self.b.sample.values, self.a.sample.values)
        if not equal and not self._differing_blocks():
            return "the digests of all blocks agree although sampled values differ"
        return ""

    def _differing_blocks(self) -> int:
        differs = (self.b.sample.blocks != self.a.sample.blocks).any(axis=1)
        return int(np.count_nonzero(differs))

    def _identical(self) -> ArrayComparison:
        problem = moments_problem(self.b.summary, self.a.summary, _EXACT)
        if problem:
            text = f"the digests of all blocks agree although {problem}"
            return self._part(outside=1, problem=text)
        return self._part(
            elements=self.size,
            equal=True,
            max_abs=0.0 if self.b.summary.l2 is not None else None,
        )

    def _differing_exactly(self, blocks: int) -> ArrayComparison:
        differs = (self.b.sample.values != self.a.sample.values).any(axis=1)
        count = int(np.count_nonzero(differs))
        problem = (
            f"{blocks:,} of {len(self.b.sample.blocks):,} blocks differ and "
            f"{count:,} of {differs.size:,} sampled elements; {self.structure.dtype} "
            "is compared exactly"
        )
        changes: dict[str, object] = {}
        if count and self.structure.dtype in _DTYPES:
            at = int(np.argmax(differs))
            left, right = (_elements(one)[at] for one in (self.b, self.a))
            where = np.unravel_index(self.b.sample.places[at], self.b.summary.shape)
            changes = {
                "worst_index": tuple(int(axis) for axis in where),
                "expected": show(left),
                "got": show(right),
            }
        return self._part(
            elements=differs.size,
            sampled_from=self.size,
            outside=max(1, count),
            problem=problem,
            **changes,
        )

    def _under(self, tolerance: Tolerance) -> ArrayComparison:
        deviation = Deviation(
            tolerance,
            elements=self.b.sample.places.size,
            scale=root_mean_square(self.b.summary),
            wide=self.structure.dtype.startswith("complex"),
        )
        deviation.add(_elements(self.b), _elements(self.a), self.b.sample.places)
        measured = describe(
            deviation,
            self.b.summary.name,
            self.structure.dtype,
            self.b.summary.shape,
            equal=False,
        )
        moments = moments_problem(self.b.summary, self.a.summary, tolerance)
        return msgspec.structs.replace(
            measured,
            sampled_from=self.size,
            outside=measured.outside or (1 if moments else 0),
            nan=self.structure.nan,
            infinite=self.structure.infinite,
            zero=self.structure.zero,
            problem=measured.problem or moments,
        )


_EXACT = Tolerance(rtol=0.0, atol=0.0)


def _elements(one: Sampled) -> Array:
    """Return the sampled values as elements of their dtype."""
    name = one.summary.dtype
    dtype = np.dtype(name) if name == "complex128" else dtype_of(name)
    raw = np.ascontiguousarray(one.sample.values)
    return np.frombuffer(raw.tobytes(), dtype.newbyteorder("<")).astype(dtype)


def _contradiction(one: Sampled, side: str) -> str:
    """Return how a sample contradicts the summary beside it, or an empty string."""
    summary, sample = one
    if summary.dtype not in _DTYPES:
        return ""
    if sample.places.size == math.prod(summary.shape):
        digests = BlockDigests()
        digests.update(sample.values)
        if not np.array_equal(digests.finish(), sample.blocks):
            return f"the {side}'s sample holds the whole array, with other digests"
    if summary.dtype.startswith("complex"):
        return ""
    values = _elements(one).astype("float64")
    if int(np.count_nonzero(np.isnan(values))) > summary.nan:
        return f"the {side}'s sample holds more NaN than its summary states"
    finite = values[np.isfinite(values)]
    if finite.size and not _covers(summary, float(finite.min()), float(finite.max())):
        return f"the {side}'s sample holds values outside the range of its summary"
    return ""


def _covers(summary: ArraySummary, lowest: float, highest: float) -> bool:
    if summary.minimum is None or summary.maximum is None:
        return False
    return as_float(summary.minimum) <= lowest and highest <= as_float(summary.maximum)
