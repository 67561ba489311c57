"""At which places an array is sampled: the same ones for whoever asks.

Nothing about the places is stored. They follow from names, shape and the digest of
the frozen policy (spec.md, "Samples"), so neither side of a comparison can choose
them, and none knows them before the policy is frozen.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import numpy as np  # noqa: TID253 - this module is imported only to read arrays
from blake3 import blake3

from reprobundle.outputs.array_blocks import Array

PLACES_OF_ARRAY = 100_000
"""Most places that are sampled of one array."""

PLACES_OF_OUTPUT = 1_000_000
"""Most places that are sampled of all arrays of one output together."""

_RULE = "reprobundle places 1"
_PLACE_BYTES = 8


def counts(sizes: Iterable[int]) -> tuple[int, ...]:
    """Return at how many places each array of an output is sampled.

    Every array gets as many places as it has elements, but no more than one limit for
    all: the largest one up to `PLACES_OF_ARRAY` that keeps their sum within
    `PLACES_OF_OUTPUT`. The limit is never less than 1.

    Args:
        sizes: Number of elements of each array.
    """
    known = tuple(sizes)
    low, high = 1, PLACES_OF_ARRAY
    while low < high:
        middle = (low + high + 1) // 2
        if sum(min(size, middle) for size in known) <= PLACES_OF_OUTPUT:
            low = middle
        else:
            high = middle - 1
    return tuple(min(size, low) for size in known)


def places(
    key: str, output: str, array: str, shape: Sequence[int], *, size: int, count: int
) -> Array:
    """Return the sampled places of one array, ascending, as int64 in C order.

    The array is cut into `count` stretches of nearly equal length, and one place is
    drawn from each. So the sample covers the whole array evenly, and no place is
    taken twice.

    Args:
        key: Digest of the frozen policy.
        output: Name of the output.
        array: Name of the array, as its summary has it.
        shape: Its shape.
        size: Its number of elements, below 2**47.
        count: From `counts`.
    """
    if not count:
        return np.empty(0, "int64")
    text = json.dumps(
        [_RULE, key, output, array, list(shape)],
        ensure_ascii=False,
        separators=(",", ":"),
    )
    stream = blake3(text.encode("utf-8", "surrogatepass")).digest(_PLACE_BYTES * count)
    drawn = np.frombuffer(stream, "<u8")
    edges = np.arange(count + 1, dtype="uint64") * np.uint64(size) // np.uint64(count)
    found: Array = (edges[:-1] + drawn % np.diff(edges)).astype("int64")
    return found
