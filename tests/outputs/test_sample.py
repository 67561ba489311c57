"""Samples: digests of everything, values at the places, read back or refused."""

from __future__ import annotations

import io
import math

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy
from blake3 import blake3

from reprobundle.errors import UnreadableOutputError
from reprobundle.outputs.arrays import read_arrays
from reprobundle.outputs.places import counts, places
from reprobundle.outputs.sample import BLOCK_BYTES, read_sample, write_sample
from reprobundle.outputs.summary import summarise

KEY = "ab" * 32
RNG = np.random.default_rng(5)


def sampled(tmp_path, array, name="out.npy"):
    """Write `array`, sample it, and return file, sample file and summaries."""
    path, target = tmp_path / "whole.npy", tmp_path / "sample.safetensors"
    np.save(path, array, allow_pickle=False)
    write_sample(path, "npy", target, key=KEY, output=name)
    return target, summarise(name, path).arrays


def read(target, arrays, name="out.npy", key=KEY):
    with target.open("rb") as stream:
        return read_sample(stream, arrays, key=key, output=name)


@pytest.mark.parametrize(
    "dtype",
    ["?", "u1", "i8", "u8", "f2", "f4", "f8", ">f8", "c8", "c16", "M8[ns]"],
)
def test_values_are_the_elements_at_the_places(tmp_path, dtype):
    array = (np.arange(250_000) % 999).reshape(500, 500).astype(dtype)
    target, arrays = sampled(tmp_path, array)

    (one,) = read(target, arrays)

    shape, size = array.shape, array.size
    where = places(KEY, "out.npy", "", shape, size=size, count=counts([size])[0])
    little = array.reshape(-1)[where].astype(array.dtype.newbyteorder("<"))
    assert np.array_equal(one.places, where)
    assert one.values.tobytes() == little.tobytes()


def test_block_digests_are_those_of_the_canonical_bytes(tmp_path):
    array = RNG.standard_normal(2_500_000, dtype="f4").reshape(500, 5000)
    target, arrays = sampled(tmp_path, np.asfortranarray(array))

    (one,) = read(target, arrays)

    data = array.tobytes()
    expected = [
        blake3(data[start : start + BLOCK_BYTES]).digest()
        for start in range(0, len(data), BLOCK_BYTES)
    ]
    assert len(expected) == 3
    assert [bytes(row) for row in one.blocks] == expected


def test_a_small_array_is_in_its_sample_whole_bit_for_bit(tmp_path):
    array = np.array([-0.0, 0.0, np.nan, np.inf, -np.inf, 5e-324, 2.0**53 + 2])
    target, arrays = sampled(tmp_path, array)
    assert read(target, arrays)[0].values.tobytes() == array.tobytes()


@pytest.mark.parametrize("array", [np.empty((0, 3), "f4"), np.float64(1.5)])
def test_arrays_without_elements_or_axes_have_samples(tmp_path, array):
    target, arrays = sampled(tmp_path, array)
    (one,) = read(target, arrays)
    assert one.values.tobytes() == np.asarray(array).tobytes()
    assert len(one.blocks) == math.ceil(np.asarray(array).nbytes / BLOCK_BYTES)


def test_text_has_digests_and_no_values(tmp_path):
    target, arrays = sampled(tmp_path, np.array(["a", "bc"]))
    (one,) = read(target, arrays)
    assert one.places.size == 0
    assert len(one.blocks) == 1


def test_other_tools_can_read_a_sample(tmp_path):
    array = RNG.standard_normal(1000).astype(ml_dtypes.bfloat16)
    whole, target = tmp_path / "w.safetensors", tmp_path / "s.safetensors"
    whole.write_bytes(safetensors.numpy.save({"w": array}))
    write_sample(whole, "safetensors", target, key=KEY, output="w.safetensors")

    with target.open("rb") as stream:
        held = {one.name: one.dtype for one in read_arrays(stream, "safetensors")}
    assert held == {"0.values": "bfloat16", "0.blocks": "uint8"}
    loaded = safetensors.numpy.load_file(target)
    assert loaded["0.values"].tobytes() == array.tobytes()


def repacked(target, change):
    tensors = safetensors.numpy.load_file(target)
    change(tensors)
    return io.BytesIO(safetensors.numpy.save(tensors))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.update({"0.values": t["0.values"][:-1]}), "lacks values"),
        (lambda t: t.update({"0.blocks": t["0.blocks"][:-1]}), "1 digests"),
        (lambda t: t.pop("0.blocks"), "1 tensors for 1 arrays"),
        (lambda t: t.update({"9.blocks": t.pop("0.blocks")}), "no tensor '0.blocks'"),
    ],
)
def test_a_damaged_sample_is_refused(tmp_path, change, message):
    target, arrays = sampled(tmp_path, np.zeros(1_500_000, "f4"))
    with pytest.raises(UnreadableOutputError, match=message):
        read_sample(repacked(target, change), arrays, key=KEY, output="out.npy")


def test_a_shape_that_no_file_can_have_is_refused(tmp_path):
    import msgspec

    target, (array,) = sampled(tmp_path, np.zeros(10, "f4"))
    huge = msgspec.structs.replace(array, shape=(1 << 50,))
    with pytest.raises(UnreadableOutputError, match="which nobody stores"):
        read(target, (huge,))
