"""What an array holds, in one reading and without moments: NaN, infinities, zeros."""

from __future__ import annotations

import numpy as np  # noqa: TID253 - this module is imported only to read arrays

from reprobundle.format.findings import ArrayComparison
from reprobundle.outputs.arrays import NamedArray
from reprobundle.verify.held import part_of
from reprobundle.verify.summaries import is_float

_BLOCK_ELEMENTS = 1 << 18


def looked_at(array: NamedArray) -> ArrayComparison:
    """Return an array as a part that is equal on both sides."""
    has_nan = is_float(array.dtype)
    nan = infinite = 0
    # A text, a date or a mask is never "zero": only numbers can be.
    is_zero = array.size > 0 and (has_nan or array.dtype.startswith(("int", "uint")))
    for block in array.blocks(_BLOCK_ELEMENTS):
        is_zero = is_zero and not np.any(block != 0)
        if has_nan:
            odd = ~np.isfinite(block)
            count = int(np.count_nonzero(odd))
            of_nan = int(np.count_nonzero(np.isnan(block[odd]))) if count else 0
            nan, infinite = nan + of_nan, infinite + count - of_nan
    # One whole number that is zero is a count like any other.
    zero = is_zero and (has_nan or array.size > 1)
    return part_of(array.name, array.dtype, array.shape, odd=(nan, infinite), zero=zero)
