"""Array files that look alike and must not pass for one another."""

import io
import zipfile

import numpy as np
import pytest

from reprobundle.errors import UnreadableOutputError
from reprobundle.format.policy import Tolerance
from reprobundle.outputs.arrays import read_arrays
from reprobundle.verify.compare_arrays import compare_arrays
from tests.outputs import files

BOUNDLESS = Tolerance(rtol=1.0, atol=1e300, share=1.0)


def npy(values):
    stream = io.BytesIO()
    np.save(stream, values)
    return stream.getvalue()


def npz(**arrays):
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def tensors(**arrays):
    codes = {"float32": "F32", "float64": "F64", "int64": "I64"}
    return files.safetensors(
        {
            name: (codes[one.dtype.name], one.shape, one.tobytes())
            for name, one in arrays.items()
        }
    )


def problems(reference, replay, file_format):
    left, right = (
        read_arrays(io.BytesIO(data), file_format) for data in (reference, replay)
    )
    parts = compare_arrays(left, right, lambda dtype: BOUNDLESS)
    return [part.problem for part in parts if part.problem]


ONE, TWO = np.ones(3, "f4"), np.full(3, 2.0, "f4")
FIELDS = np.dtype([("x", "f4"), ("n", "i8")])

PAIRS = {
    "an array more": (npz(a=ONE), npz(a=ONE, b=ONE), "npz", "not in the reference"),
    "an array less": (npz(a=ONE, b=ONE), npz(a=ONE), "npz", "missing in the replay"),
    "a tensor more": (
        tensors(a=ONE),
        tensors(a=ONE, b=np.zeros(0, "f4")),
        "safetensors",
        "not in the reference",
    ),
    "names swapped": (
        tensors(a=ONE, b=ONE.astype("f8")),
        tensors(b=ONE, a=ONE.astype("f8")),
        "safetensors",
        "dtype",
    ),
    "empty of another dtype": (
        npy(np.zeros(0, "f4")),
        npy(np.zeros(0, "i4")),
        "npy",
        "dtype int32",
    ),
    "empty of another shape": (
        npy(np.zeros((0, 3))),
        npy(np.zeros((3, 0))),
        "npy",
        "shape",
    ),
    "a number in an array": (npy(np.float32(1)), npy(ONE[:1]), "npy", "shape"),
    "only NaN against only zeros": (
        npy(np.full(3, np.nan)),
        npy(np.zeros(3)),
        "npy",
        "one side only in 3 of 3",
    ),
    "signed and unsigned": (
        npy(np.array([-1], "i8")),
        npy(np.array([2**64 - 1], "u8")),
        "npy",
        "dtype uint64",
    ),
    "a whole number beyond 2**53": (
        npy(np.array([2**53], "i8")),
        npy(np.array([2**53 + 1], "i8")),
        "npy",
        "compared exactly",
    ),
    "truth values as bytes": (
        npy(np.array([True])),
        npy(np.array([1], "u1")),
        "npy",
        "dtype uint8",
    ),
    "a whole number in a field": (
        npy(np.array([(1.0, 1)], FIELDS)),
        npy(np.array([(1.0, 2)], FIELDS)),
        "npy",
        "compared exactly",
    ),
    "fields in another order of names": (
        npy(np.array([(1.0, 1)], FIELDS)),
        npy(np.array([(1.0, 1)], [("y", "f4"), ("n", "i8")])),
        "npy",
        "missing in the replay",
    ),
    "dates of another unit": (
        npy(np.array([1], "M8[D]")),
        npy(np.array([1], "M8[s]")),
        "npy",
        "dtype",
    ),
    "texts of another width": (
        npy(np.array(["a"])),
        npy(np.array(["a", "bb"])[:1]),
        "npy",
        "dtype",
    ),
    "a conjugate": (
        npy(np.array([complex(np.nan, 1)])),
        npy(np.array([complex(1, np.nan)])),
        "npy",
        "one side only",
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_no_tolerance_takes_one_for_the_other(name):
    reference, replay, file_format, expected = PAIRS[name]
    found = problems(reference, replay, file_format)
    assert any(expected in problem for problem in found), found


def test_both_byte_orders_hold_the_same_values():
    assert problems(npy(TWO.astype("<f4")), npy(TWO.astype(">f4")), "npy") == []


def test_both_memory_orders_hold_the_same_values():
    square = np.arange(6.0).reshape(2, 3)
    assert problems(npy(square), npy(np.asfortranarray(square)), "npy") == []
    turned = npy(np.asfortranarray(square.T))
    assert "shape" in problems(npy(square), turned, "npy")[0]


@pytest.mark.parametrize("member", ["a.npy", "evil.pkl"])
def test_a_pickled_member_is_never_read(member):
    stream = io.BytesIO(npz(b=ONE))
    with zipfile.ZipFile(stream, "a") as archive:
        pickled = io.BytesIO()
        np.save(pickled, np.array([{"a": 1}], object), allow_pickle=True)
        archive.writestr(member, pickled.getvalue())
    with pytest.raises(UnreadableOutputError, match=r"unpickled|is no array"):
        read_arrays(io.BytesIO(stream.getvalue()), "npz")


CODES = {
    "F64": 8, "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1,
    "F8_E8M0": 1, "C64": 8, "I64": 8, "I32": 4, "I16": 2, "I8": 1,
    "U64": 8, "U32": 4, "U16": 2, "U8": 1, "BOOL": 1,
}  # fmt: skip


@pytest.mark.parametrize("rule", [None, Tolerance(rtol=0.0, atol=0.0)])
@pytest.mark.parametrize("code", CODES)
def test_one_bit_is_a_difference_in_every_dtype(code, rule):
    """Random bits hold subnormal numbers, NaN, infinities and both zeros."""
    draw = np.random.default_rng(list(CODES).index(code))
    for _ in range(60):
        data = draw.bytes(5 * CODES[code])
        if code == "BOOL":
            data = bytes(value & 1 for value in data)
        place = int(draw.integers(len(data)))
        flipped = 1 if code == "BOOL" else 1 << int(draw.integers(8))
        other = bytearray(data)
        other[place] ^= flipped
        left, right = (
            read_arrays(
                io.BytesIO(files.safetensors({"x": (code, (5,), bytes(one))})),
                "safetensors",
            )
            for one in (data, other)
        )
        (part,) = compare_arrays(left, right, lambda dtype: rule)
        assert not part.equal
        element = place // CODES[code]
        b, a = (next(side[0].blocks(5))[element] for side in (left, right))
        # What is left: another payload of NaN, and the other sign of zero.
        assert part.problem or (b != b and a != a) or b == a == 0
