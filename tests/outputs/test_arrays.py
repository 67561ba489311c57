import io
import json
from typing import BinaryIO, cast

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from reprobundle.errors import UnreadableOutputError
from reprobundle.outputs.arrays import read_arrays
from tests.outputs import files


def read(data, file_format="npy"):
    return read_arrays(io.BytesIO(data), file_format)


def whole(array, elements=5):
    """Join the blocks, copied since a block is valid until the next one only."""
    blocks = [block.copy() for block in array.blocks(elements)]
    assert all(block.ndim == 1 and block.size <= elements for block in blocks)
    return np.concatenate(blocks) if blocks else np.zeros(0)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_reads_every_version_of_npy(version):
    data = files.npy(np.arange(12, dtype="i2").reshape(3, 4), version)
    (array,) = read(data)
    assert (array.name, array.dtype, array.shape) == ("", "int16", (3, 4))
    assert whole(array).tolist() == list(range(12))


@given(arrays_of.arrays(np.float32, arrays_of.array_shapes(max_dims=4, max_side=6)))
@settings(max_examples=60, deadline=None)
def test_fortran_order_gives_the_same_elements_in_c_order(values):
    (array,) = read(files.npy(np.asfortranarray(values)))
    assert array.shape == values.shape
    np.testing.assert_array_equal(whole(array), values.reshape(-1))


@given(
    arrays_of.arrays(
        arrays_of.floating_dtypes()
        | arrays_of.integer_dtypes()
        | st.just(np.dtype("?")),
        arrays_of.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5),
    )
)
@settings(max_examples=80, deadline=None)
def test_reads_back_what_numpy_wrote_in_any_byte_order(values):
    (array,) = read(files.npy(values))
    assert array.dtype == values.dtype.newbyteorder("=").name
    assert array.shape == values.shape
    assert array.size == values.size
    if values.size:
        np.testing.assert_array_equal(whole(array), values.reshape(-1))


def test_an_array_without_axes_has_one_element():
    (array,) = read(files.npy(np.float64(2.5)))
    assert (array.shape, whole(array).tolist()) == ((), [2.5])


def test_fields_of_a_structured_array_are_arrays_of_their_own():
    kind = np.dtype([("id", "i4"), ("at", [("x", "f4"), ("y", "f4", (2,))])])
    values = np.array([(1, (2.0, (3.0, 4.0))), (5, (6.0, (7.0, 8.0)))], kind)
    found = {array.name: array for array in read(files.npy(values))}
    assert {name: (a.dtype, a.shape) for name, a in found.items()} == {
        "[id]": ("int32", (2,)),
        "[at][x]": ("float32", (2,)),
        "[at][y]": ("float32", (2, 2)),
    }
    assert whole(found["[at][y]"], 10).tolist() == [3.0, 4.0, 7.0, 8.0]


def test_object_arrays_are_refused_and_never_unpickled():
    with pytest.raises(UnreadableOutputError, match="never unpickled"):
        read(files.pickled(np.array([{}], dtype=object)))


@pytest.mark.parametrize("cut", [3, 9, 40, -1])
def test_a_truncated_npy_is_refused(cut):
    data = files.npy(np.arange(10.0))
    with pytest.raises(UnreadableOutputError):
        [whole(array) for array in read(data[:cut])]


def test_bytes_after_the_array_are_refused():
    with pytest.raises(UnreadableOutputError, match="80 bytes of elements, 81 follow"):
        read(files.npy(np.arange(10.0)) + b"\0")


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': False}",
        "{'descr': '<f8', 'fortran_order': 0, 'shape': (1,)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (True,)}",
        "{'descr': '<U0', 'fortran_order': False, 'shape': (99999999999999,)}",
        "__import__('os').system('false')",
        "((((",
        "{'descr': 'nonsense', 'fortran_order': False, 'shape': (1,)}",
    ],
)
def test_a_header_that_is_no_header_is_refused(header):
    text = header.encode() + b"\n"
    data = b"\x93NUMPY\x01\0" + len(text).to_bytes(2, "little") + text + bytes(8)
    with pytest.raises(UnreadableOutputError):
        read(data)


def test_a_header_that_claims_more_than_there_is_allocates_nothing():
    text = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,)}\n"
    data = b"\x93NUMPY\x01\0" + len(text).to_bytes(2, "little") + text + bytes(8)
    with pytest.raises(UnreadableOutputError, match="8000000000000 bytes"):
        read(data)


def test_reads_each_array_of_an_npz_by_its_name():
    values = {"weight": np.arange(6.0), "bias": np.arange(3, dtype="i8")}
    found = {
        array.name: whole(array).tolist() for array in read(files.npz(**values), "npz")
    }
    assert found == {"weight": [0, 1, 2, 3, 4, 5], "bias": [0, 1, 2]}


def test_a_compressed_npz_is_read_too():
    stream = io.BytesIO()
    np.savez_compressed(stream, x=np.arange(1000.0))
    (array,) = read(stream.getvalue(), "npz")
    assert whole(array, 300).tolist() == list(range(1000))


def test_an_npz_with_something_else_inside_is_refused():
    with pytest.raises(UnreadableOutputError, match=r"'notes\.txt', which is no array"):
        read(files.zipped(**{"notes.txt": b"x"}), "npz")


def test_a_flipped_byte_inside_an_npz_is_noticed():
    data = bytearray(files.npz(x=np.zeros(100)))
    data[data.index(b"\x93NUMPY") + 300] ^= 1
    with pytest.raises(UnreadableOutputError, match="CRC"):
        [whole(array) for array in read(bytes(data), "npz")]


@pytest.mark.parametrize(
    ("stored", "dtype"),
    [
        ("BF16", ml_dtypes.bfloat16),
        ("F8_E4M3", ml_dtypes.float8_e4m3fn),
        ("F8_E5M2", ml_dtypes.float8_e5m2),
        ("F16", np.float16),
        ("C64", np.complex64),
        ("BOOL", np.bool_),
        ("U16", np.uint16),
    ],
)
def test_reads_every_dtype_of_safetensors(stored, dtype):
    values = np.array([0, 1, 1, 0]).astype(dtype)
    data = files.safetensors({"x": (stored, (2, 2), values.tobytes())})
    (array,) = read(data, "safetensors")
    assert (array.dtype, array.shape) == (np.dtype(dtype).name, (2, 2))
    assert whole(array).tolist() == values.tolist()


def test_agrees_with_the_safetensors_library():
    library = pytest.importorskip("safetensors.numpy")
    values = {"a": np.arange(6, dtype="f4").reshape(2, 3), "b": np.arange(3)}
    found = {a.name: a for a in read(library.save(values), "safetensors")}
    for name, value in values.items():
        assert found[name].shape == value.shape
        assert whole(found[name]).tolist() == value.reshape(-1).tolist()


def test_a_dtype_of_a_later_release_is_read_as_bytes():
    data = files.safetensors({"x": ("F4", (4,), b"\x12\x34")})
    (array,) = read(data, "safetensors")
    assert (array.dtype, whole(array).tolist()) == ("F4", [0x12, 0x34])


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (files.safetensors({"x": ("F32", (1,), bytes(4))}, tail=b"\0"), "5 follow"),
        (files.safetensors({"x": ("F32", (2,), bytes(4))}), "8 bytes of elements"),
        (files.safetensors({"x": ("F32", (1,), bytes(4))}, gap=4), "starts at 4"),
        ((1 << 40).to_bytes(8, "little") + b"{}", "header claims"),
        (b"\x02\0\0\0\0\0\0\0[]", "not a readable safetensors file"),
    ],
)
def test_a_safetensors_file_with_holes_or_lies_is_refused(data, words):
    with pytest.raises(UnreadableOutputError, match=words):
        read(data, "safetensors")


def test_one_tensor_named_twice_is_refused():
    entry = json.dumps({"dtype": "U8", "shape": [1], "data_offsets": [0, 1]})
    text = f'{{"x": {entry}, "x": {entry}}}'.encode()
    data = len(text).to_bytes(8, "little") + text + b"\0"
    with pytest.raises(UnreadableOutputError, match="twice"):
        read(data, "safetensors")


class OneByteAtATime(io.RawIOBase):
    """A stream that may return less than asked for, as raw streams do."""

    def __init__(self, data):
        self.inner = io.BytesIO(data)

    def readable(self):
        return True

    def seekable(self):
        return True

    def seek(self, offset, whence=0):
        return self.inner.seek(offset, whence)

    def readinto(self, buffer):
        return self.inner.readinto(memoryview(buffer)[:1])


def test_short_reads_lose_nothing():
    stream = OneByteAtATime(files.npy(np.arange(20.0)))
    (array,) = read_arrays(cast("BinaryIO", stream), "npy")
    assert whole(array).tolist() == list(range(20))
