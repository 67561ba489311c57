import ml_dtypes
import numpy as np
import pytest

from reprobundle.verify.ulps import UlpHistogram, distances

ONE = np.float32(1.0)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ml_dtypes.bfloat16])
def test_neighbours_are_one_apart_also_across_zero(dtype):
    bits = {2: "u2", 4: "u4", 8: "u8"}[np.dtype(dtype).itemsize]
    smallest = np.array([1], bits).view(dtype)
    assert distances(smallest, -smallest).tolist() == [2]
    assert distances(np.zeros(1, dtype), -np.zeros(1, dtype)).tolist() == [0]
    one = np.ones(1, dtype)
    above = (one.view(bits) + 1).view(dtype)
    assert distances(one, above).tolist() == distances(above, one).tolist() == [1]


def test_the_whole_range_of_float64_does_not_wrap_round():
    largest = np.array([np.finfo("f8").max])
    expected = 2 * int(largest.view("u8")[0])
    assert distances(largest, -largest).tolist() == [expected]


def test_buckets_double_and_leave_out_what_is_not_finite():
    reference = np.ones(6, "f4")
    replay = (np.ones(6, "f4").view("u4") + np.array([0, 1, 2, 3, 4, 0], "u4")).view(
        "f4"
    )
    replay[5] = np.nan
    histogram = UlpHistogram()
    histogram.add(reference, replay)
    same = np.array([1.0, np.inf], "f4")
    histogram.add(same, same)
    assert histogram.buckets == (2, 1, 2, 1)
