"""An array in Fortran order in C order, by way of boxes that fit into memory."""

from __future__ import annotations

import io
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reprobundle.errors import UnreadableOutputError
from reprobundle.outputs.transposed import boxes, c_ordered_blocks

SHAPES = st.lists(st.integers(1, 7), min_size=1, max_size=4).map(tuple)


def blocks_of(values, elements, box_bytes):
    stream = io.BytesIO(values.tobytes(order="F"))
    return list(
        c_ordered_blocks(
            stream, values.dtype, values.shape, elements, box_bytes=box_bytes
        )
    )


@given(SHAPES, st.integers(1, 30), st.integers(1, 50))
@settings(max_examples=100, deadline=None)
def test_boxes_of_any_size_give_the_elements_in_c_order(shape, parts, elements):
    values = np.arange(math.prod(shape), dtype="i4").reshape(shape)
    found = blocks_of(values, elements, values.nbytes // parts)
    assert np.concatenate(found).tolist() == list(range(values.size))
    # Two sides of a comparison are read in step, whatever order each has.
    assert {block.size for block in found[:-1]} <= {elements}


@given(SHAPES, st.integers(1, 400))
@settings(max_examples=60, deadline=None)
def test_boxes_hold_what_they_may_and_are_few(shape, most):
    found = [math.prod(map(len, box)) for box in boxes(shape, most)]
    assert sum(found) == math.prod(shape)
    assert max(found) <= most
    # Each is at least half of one, but for one rest beside it.
    assert len(found) <= 4 * math.prod(shape) / most + 1


@pytest.mark.parametrize("dtype", ["M8[s]", "U3", "V5", ">f8", "i1,>i4"])
def test_every_type_of_element_comes_through(dtype):
    held = np.dtype(dtype)
    raw = np.random.default_rng(0).integers(48, 58, 30 * held.itemsize, "u1")
    if held.kind == "U":
        raw = np.array([f"{n}" for n in range(30)], held).view("u1")
    turned = raw.view(held).reshape((5, 6), order="F").copy()
    found = blocks_of(turned, 7, 4 * held.itemsize)
    assert {block.dtype for block in found} == {held}
    assert b"".join(block.tobytes() for block in found) == turned.tobytes(order="C")


def test_an_array_without_elements_has_no_blocks():
    assert blocks_of(np.zeros((0, 4)), 5, 8) == []


def test_a_stream_that_ends_too_early_is_refused():
    stream = io.BytesIO(bytes(11))
    with pytest.raises(UnreadableOutputError, match="1 bytes too early"):
        list(c_ordered_blocks(stream, np.dtype("u1"), (3, 4), 5, box_bytes=6))


def test_memory_does_not_grow_with_the_array():
    shape, dtype = (1 << 11, 1 << 12), np.dtype("u1")
    stream = io.BytesIO(bytes(math.prod(shape)))
    tracemalloc.start()
    for _ in c_ordered_blocks(stream, dtype, shape, 1 << 16, box_bytes=1 << 18):
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 << 18
