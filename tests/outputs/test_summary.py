import numpy as np
import pytest

from tests.outputs import files


def test_counts_what_is_special_in_an_array(summary):
    values = np.array([np.nan, np.inf, -np.inf, -np.inf, -0.0, 0.0, 3.0, -4.0], "f4")
    (array,) = summary("a.npy", files.npy(values)).arrays
    assert (array.dtype, array.shape) == ("float32", (8,))
    assert (array.nan, array.positive_infinity, array.negative_infinity) == (1, 1, 2)
    assert array.negative_zero == 1
    assert (array.minimum, array.maximum) == (-4.0, 3.0)
    assert array.mean == -0.25
    assert array.l2 == 5.0


def test_moments_of_huge_and_tiny_numbers_neither_overflow_nor_vanish(summary):
    (huge,) = summary("a.npy", files.npy(np.array([3e300, 4e300]))).arrays
    (tiny,) = summary("a.npy", files.npy(np.array([3e-300, 4e-300]))).arrays
    assert huge.l2 == pytest.approx(5e300)
    assert huge.mean == pytest.approx(3.5e300)
    assert tiny.l2 == pytest.approx(5e-300)
    assert tiny.mean == pytest.approx(3.5e-300)


def test_an_array_without_finite_elements_has_no_moments(summary):
    (array,) = summary("a.npy", files.npy(np.array([np.nan, np.inf]))).arrays
    assert (array.minimum, array.maximum, array.mean, array.l2) == (None,) * 4


def test_texts_and_dates_have_no_moments(summary):
    (array,) = summary("a.npy", files.npy(np.array(["a", "bc"]))).arrays
    assert (array.dtype, array.l2) == ("U2", None)
    dates = np.array(["2020-01-01"], "M8[D]")
    (array,) = summary("a.npy", files.npy(dates)).arrays
    assert (array.dtype, array.mean) == ("datetime64[D]", None)


def test_complex_numbers_have_no_order_but_a_norm(summary):
    (array,) = summary("a.npy", files.npy(np.array([3 + 4j]))).arrays
    assert (array.minimum, array.mean, array.l2) == (None, None, 5.0)


def test_counts_rows_and_lines(summary):
    assert summary("a.csv", b"x,y\n1,2\n3,4\n").rows == 2
    assert summary("a.txt", b"one\ntwo\nthree").rows == 3
    assert summary("a.jsonl", b'{"a": 1}\n{"a": 2}\n').rows == 2
    assert summary("a.json", b'{"a": 1}').rows is None


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.npy", files.npy(np.arange(9.0))[:-1], "bytes of elements"),
        ("a.npy", files.pickled(np.array([{}], object)), "never unpickled"),
        ("a.npz", files.npz(x=np.zeros(9))[:-30], "not a readable npz file"),
        ("a.json", b'{"a": 1', "not readable json"),
        ("a.json", b'{"a": 1, "a": 2}', "'a' stands twice"),
        ("a.json", b"[" * 100_000, "not readable json"),
        ("a.csv", b'x,y\n1,"2\n', "not a readable table"),
        ("a.csv", b"x,y\n1,2,3\n", "row 0 has 3 cells"),
    ],
)
def test_a_damaged_file_counts_as_bytes_and_says_why(summary, name, data, words):
    told = summary(name, data)
    assert (told.kind, told.format, told.arrays) == ("bytes", "bytes", ())
    assert words in told.problem


def test_a_checkpoint_is_summarised_by_its_exported_tensors(summary):
    tensors = files.safetensors({"w": ("F32", (2,), np.array([3, 4], "f4").tobytes())})
    told = summary("a.pt", b"\x80\x02}.", tensors)
    assert (told.format, told.arrays[0].name, told.arrays[0].l2) == (
        "checkpoint",
        "w",
        5.0,
    )


def test_a_checkpoint_without_tensors_says_so(summary):
    told = summary("a.pt", b"\x80\x02}.")
    assert (told.format, told.arrays) == ("checkpoint", ())
    assert "not exported" in told.problem
