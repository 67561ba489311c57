"""Sampled places: the same for everybody, even, and bounded in number."""

from __future__ import annotations

import json

import numpy as np
import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from reprobundle.outputs.places import (
    PLACES_OF_ARRAY,
    PLACES_OF_OUTPUT,
    counts,
    places,
)

KEY = "ab" * 32


def chosen(size, count, **changes):
    named = {"key": KEY, "output": "out.npy", "array": "w", "shape": (size,), **changes}
    return places(
        named["key"],
        named["output"],
        named["array"],
        named["shape"],
        size=size,
        count=count,
    )


def test_the_places_are_those_that_the_specification_describes():
    size, count = 1_000_003, 7
    text = json.dumps(
        ["reprobundle places 1", KEY, "out.npy", "w", [size]], separators=(",", ":")
    )
    stream = blake3(text.encode()).digest(8 * count)
    expected = []
    for i in range(count):
        low, high = i * size // count, (i + 1) * size // count
        drawn = int.from_bytes(stream[8 * i : 8 * i + 8], "little")
        expected.append(low + drawn % (high - low))

    assert chosen(size, count).tolist() == expected


@pytest.mark.parametrize(
    "change",
    [{"key": "cd" * 32}, {"output": "b.npy"}, {"array": "v"}, {"shape": (100, 10_000)}],
)
def test_every_part_of_the_description_moves_the_places(change):
    assert chosen(10**6, 100, **change).tolist() != chosen(10**6, 100).tolist()


@given(st.integers(1, 10**12), st.integers(1, 500))
def test_places_ascend_inside_the_array_one_in_each_stretch(size, count):
    count = min(size, count)
    found = chosen(size, count)
    assert found.size == count
    assert found[0] >= 0
    assert found[-1] < size
    assert np.all(np.diff(found) > 0)
    edges = [i * size // count for i in range(count + 1)]
    stretches = zip(edges, found.tolist(), edges[1:], strict=False)
    assert all(low <= place < high for low, place, high in stretches)


def test_an_array_with_no_more_elements_than_places_is_taken_whole():
    assert chosen(50, 50).tolist() == list(range(50))


def test_no_place_of_nothing():
    assert chosen(0, 0).size == 0


def test_one_large_array_gets_the_limit_of_an_array():
    assert counts([10**9, 12]) == (PLACES_OF_ARRAY, 12)


def test_many_arrays_share_the_limit_of_an_output():
    found = counts([10**6] * 300 + [5])
    assert found == (3333,) * 300 + (5,)
    assert sum(found) <= PLACES_OF_OUTPUT


def test_every_array_keeps_at_least_one_place():
    assert set(counts([3] * (PLACES_OF_OUTPUT + 1))) == {1}
