import io
import math
import tracemalloc

import ml_dtypes
import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from reprobundle.format.policy import Tolerance
from reprobundle.outputs.arrays import NamedArray, read_arrays
from reprobundle.verify import deviation, samples
from reprobundle.verify.compare_arrays import (
    compare_array,
    compare_arrays,
    root_mean_square,
)
from tests.outputs import files

LOOSE = Tolerance(rtol=1e-3, atol=1e-6)
EXACT = Tolerance(rtol=0.0, atol=0.0)


def named(values, name=""):
    values = np.asarray(values)
    flat = np.ascontiguousarray(values).reshape(-1)

    def blocks(elements):
        for start in range(0, flat.size, elements):
            yield flat[start : start + elements]

    return NamedArray(name, values.dtype.name, values.shape, blocks)


def compare(reference, replay, tolerance=LOOSE):
    return compare_array(named(reference), named(replay), tolerance)


def test_equal_arrays_are_equal_and_have_no_error():
    result = compare(np.arange(5.0), np.arange(5.0), EXACT)
    assert (result.equal, result.outside, result.problem) == (True, 0, "")
    assert (result.max_abs, result.relative_l2) == (0.0, 0.0)
    assert result.cosine == pytest.approx(1.0)
    assert result.worst_index is None


def test_an_error_within_the_rule_is_inside_and_measured():
    result = compare([1.0, 2.0, 4.0], [1.0, 2.0, 4.002])
    assert (result.equal, result.outside, result.problem) == (False, 0, "")
    assert result.max_abs == pytest.approx(2e-3)
    assert result.max_rel == pytest.approx(5e-4)


def test_an_error_outside_names_its_place_and_both_values():
    reference = np.arange(12, dtype="f4").reshape(3, 4)
    replay = reference.copy()
    replay[2, 1] = 10.0
    result = compare(reference, replay)
    assert result.outside == 1
    assert result.worst_index == (2, 1)
    assert (result.expected, result.got) == ("9", "10")
    assert result.problem == "1 of 12 elements (8.33 %) outside the tolerance"


def test_the_worst_place_is_the_one_furthest_outside_not_the_largest_error():
    result = compare([1e6, 1.0], [1e6 + 100, 1.5])
    assert result.max_abs == 100.0
    assert result.worst_index == (1,)


@pytest.mark.parametrize(
    ("replay", "outside"), [(1.0 + 1e-3 + 1e-6, 0), (1.0 + 1.1e-3 + 1e-6, 1)]
)
def test_the_rule_is_atol_plus_rtol_times_the_reference(replay, outside):
    assert compare([1.0], [replay], LOOSE).outside == outside


def test_a_floor_scales_with_the_reference_array():
    rule = Tolerance(rtol=1e-3, atol=0.0, floor=1.0)
    reference = np.full(100, 1000.0)
    reference[0] = 0.0
    assert compare(reference, reference + 0.5, rule).outside == 0
    assert compare(reference / 1000, reference / 1000 + 0.5, rule).outside == 100


def test_a_share_admits_a_part_of_the_elements():
    reference, replay = np.zeros(100), np.zeros(100)
    replay[:2] = 1.0
    ok = compare(reference, replay, Tolerance(rtol=0.0, atol=0.1, share=0.02))
    bad = compare(reference, replay, Tolerance(rtol=0.0, atol=0.1, share=0.01))
    assert (ok.outside, ok.problem) == (2, "")
    assert "2 of 100" in bad.problem


# --- the classic false passes ---------------------------------------------------------


def test_nan_in_the_same_places_is_equal_but_counted():
    result = compare([np.nan, 1.0, np.inf], [np.nan, 1.0, np.inf])
    assert (result.problem, result.nan, result.infinite) == ("", 1, 1)
    assert result.equal


@pytest.mark.parametrize(
    ("reference", "replay"),
    [
        ([1.0, 2.0], [1.0, np.nan]),
        ([1.0, np.nan], [1.0, 2.0]),
        ([1.0, np.inf], [1.0, -np.inf]),
        ([1.0, np.inf], [1.0, np.nan]),
        ([1.0, np.inf], [1.0, 1e308]),
    ],
)
def test_nan_and_infinity_on_one_side_are_outside_whatever_the_tolerance(
    reference, replay
):
    boundless = Tolerance(rtol=1.0, atol=1e300, share=1.0)
    result = compare(reference, replay, boundless)
    assert "stands on one side only in 1 of 2 places" in result.problem
    assert result.worst_index == (1,)


def test_an_array_of_nan_has_no_statistics_to_hide_behind():
    result = compare([np.nan], [np.nan])
    assert (result.max_abs, result.cosine, result.p99_abs) == (None, None, None)


def test_a_shape_without_axes_is_another_shape_than_one_element():
    result = compare(np.float32(1.0), np.array([1.0], "f4"))
    assert result.problem == "shape [1], expected []"
    assert not result.equal


def test_shapes_that_broadcast_are_different():
    assert "shape [1, 3]" in compare(np.ones(3), np.ones((1, 3))).problem


def test_another_dtype_is_outside_even_with_equal_values():
    result = compare(np.ones(3, "f4"), np.ones(3, "f8"))
    assert result.problem == "dtype float64, expected float32"


def test_integers_and_booleans_are_exact_whatever_the_tolerance():
    boundless = Tolerance(rtol=1.0, atol=1e9, share=1.0)
    counts = compare(np.array([1, 2, 3]), np.array([1, 2, 5]), boundless)
    assert (counts.outside, counts.max_abs, counts.worst_index) == (1, 2.0, (2,))
    assert "compared exactly" in counts.problem
    flags = compare(np.array([True, False]), np.array([True, True]), boundless)
    assert (flags.outside, flags.expected, flags.got) == (1, "False", "True")


def test_large_integers_that_a_float_cannot_tell_apart_still_differ():
    result = compare(np.array([2**62], "i8"), np.array([2**62 + 1], "i8"))
    assert result.outside == 1


def test_negative_zero_is_within_tolerance_but_not_bit_identical():
    result = compare([0.0, 1.0], [-0.0, 1.0], EXACT)
    assert (result.equal, result.outside, result.problem) == (False, 0, "")


def test_texts_are_exact():
    result = compare(np.array(["ab", "cd"]), np.array(["ab", "ce"]))
    assert (result.outside, result.expected, result.got) == (1, "cd", "ce")


def test_not_a_time_equals_itself():
    dates = np.array(["NaT", "2020-01-01"], "M8[D]")
    assert compare(dates, dates).equal


def test_empty_arrays_compare_nothing():
    result = compare(np.zeros((0, 3)), np.zeros((0, 3)))
    assert (result.elements, result.zero, result.scale) == (0, False, None)


def test_an_array_of_zeros_is_marked():
    assert compare(np.zeros(4), np.zeros(4)).zero
    assert compare(np.zeros(4, "i4"), np.zeros(4, "i4")).zero
    assert compare(np.float32(0), np.float32(0)).zero
    assert not compare(np.int64(0), np.int64(0)).zero
    assert not compare([0.0, 1e-300], [0.0, 1e-300]).zero


def test_a_dtype_without_a_rule_is_exact():
    assert compare([1.0], [1.0 + 1e-15], None).outside == 1


# --- other number formats -------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype", [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, "f2"]
)
def test_short_floats_are_compared_as_numbers(dtype):
    reference = np.array([1.0, 2.0, np.nan]).astype(dtype)
    replay = np.array([1.0, 2.5, np.nan]).astype(dtype)
    near = compare(reference, replay, Tolerance(rtol=0.25, atol=0.0))
    far = compare(reference, replay, Tolerance(rtol=0.2, atol=0.0))
    assert (near.outside, near.nan, far.outside) == (0, 1, 1)
    assert near.max_abs == 0.5


def test_complex_errors_are_magnitudes():
    result = compare(
        np.array([3 + 4j]), np.array([3 + 4.5j]), Tolerance(rtol=0.1, atol=0)
    )
    assert (result.outside, result.max_abs, result.max_rel) == (0, 0.5, 0.1)


def test_complex_nan_must_stand_in_the_same_component():
    ok = compare(np.array([complex(np.nan, 1)]), np.array([complex(np.nan, 1)]))
    bad = compare(np.array([complex(np.nan, 1)]), np.array([complex(1, np.nan)]))
    assert (ok.problem, ok.nan) == ("", 1)
    assert "one side only" in bad.problem


def test_huge_and_tiny_values_keep_their_statistics():
    huge = compare([3e300, 4e300], [3e300, 4.4e300], Tolerance(rtol=0.2, atol=0))
    tiny = compare([3e-300, 4e-300], [3e-300, 4.4e-300], Tolerance(rtol=0.2, atol=0))
    for result in (huge, tiny):
        assert result.outside == 0
        assert result.relative_l2 == pytest.approx(0.08)
        assert result.max_rel == pytest.approx(0.1)
        assert 0.99 < float(result.cosine) < 1
    assert huge.scale == pytest.approx(math.sqrt(12.5) * 1e300)


def test_a_floor_over_huge_values_does_not_become_infinite():
    rule = Tolerance(rtol=1e-6, atol=0.0, floor=1.0)
    assert compare([1e200, 1e200], [1e200, 2e200], rule).outside == 1


def test_a_difference_that_overflows_is_infinite_and_outside():
    result = compare([1.7e308], [-1.7e308], Tolerance(rtol=0.5, atol=0))
    assert (result.outside, result.max_abs) == (1, "inf")


# --- files, statistics, memory --------------------------------------------------------


def test_arrays_of_a_file_are_matched_by_name():
    reference = [named([1.0], "a"), named([2.0], "b")]
    replay = [named([2.0], "b"), named([3.0], "c")]
    results = {r.name: r for r in compare_arrays(reference, replay, lambda _: LOOSE)}
    assert results["a"].problem == "missing in the replay"
    assert results["b"].equal
    assert results["c"].problem == "not in the reference"
    assert not results["a"].equal
    assert not results["c"].equal


finite = st.floats(-1e6, 1e6, width=32)


@given(
    arrays_of.arrays(np.float32, st.integers(1, 200), elements=finite),
    st.floats(0, 1e-2),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=60, deadline=None)
def test_every_statistic_agrees_with_the_formula(reference, noise, seed):
    draw = np.random.default_rng(seed)
    replay = (reference * (1 + noise * draw.standard_normal(reference.size))).astype(
        "f4"
    )
    rule = Tolerance(rtol=1e-3, atol=1e-5, floor=0.1)
    result = compare(reference, replay, rule)
    b, a = reference.astype("f8"), replay.astype("f8")
    scale = np.sqrt(np.mean(b**2))
    error = np.abs(a - b)
    bound = rule.atol + rule.rtol * np.maximum(np.abs(b), rule.floor * scale)
    assert (
        result.outside == np.count_nonzero(error > bound)
        or np.isclose(error, bound, rtol=1e-9).any()
    )
    assert result.max_abs == error.max()
    assert float(result.scale) == pytest.approx(scale)
    assert float(result.p50_abs) == np.quantile(error, 0.5, method="inverted_cdf")
    assert float(result.p99_abs) == np.quantile(error, 0.99, method="inverted_cdf")
    if scale:
        expected = np.linalg.norm(a - b) / np.linalg.norm(b)
        assert float(result.relative_l2) == pytest.approx(expected)
    assert result.equal == np.array_equal(reference.view("u4"), replay.view("u4"))


def test_blocks_and_steps_do_not_change_the_result(monkeypatch):
    draw = np.random.default_rng(5)
    reference = draw.standard_normal(1000)
    replay = reference + 1e-4 * draw.standard_normal(1000)
    replay[700] = np.nan
    whole = compare(reference, replay)
    monkeypatch.setattr(deviation, "STEP_ELEMENTS", 64)
    monkeypatch.setattr("reprobundle.verify.compare_arrays.BLOCK_ELEMENTS", 100)
    pieces = compare(reference, replay)
    assert pieces.worst_index == whole.worst_index == (700,)
    assert pieces.outside == whole.outside
    assert pieces.p99_abs == whole.p99_abs
    assert float(pieces.relative_l2) == pytest.approx(float(whole.relative_l2))


def test_quantiles_of_many_elements_keep_their_stated_error(monkeypatch):
    monkeypatch.setattr(samples, "SAMPLE_ELEMENTS", 1 << 14)
    draw = np.random.default_rng(7)
    error = draw.random(1 << 18)
    result = compare(np.ones(error.size), 1 + error, Tolerance(rtol=2.0, atol=0.0))
    assert 1 << 13 <= result.sampled <= 1 << 15
    assert abs((error <= float(result.p99_abs)).mean() - 0.99) < 0.004
    assert abs((error <= float(result.p50_abs)).mean() - 0.5) < 0.02
    assert float(result.max_abs) == pytest.approx(error.max())


def test_the_scale_ignores_what_is_not_finite():
    assert root_mean_square(named([3.0, 4.0, np.nan, np.inf])) == pytest.approx(
        math.sqrt(12.5)
    )


@pytest.mark.slow
def test_memory_stays_bounded_however_large_the_arrays_are(tmp_path):
    for name in ("a", "b"):
        np.save(tmp_path / f"{name}.npy", np.ones(16 << 20, "f4"))
    tracemalloc.start()
    with (tmp_path / "a.npy").open("rb") as b, (tmp_path / "b.npy").open("rb") as a:
        (left,), (right,) = read_arrays(b, "npy"), read_arrays(a, "npy")
        assert compare_array(left, right, LOOSE).equal
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 48 << 20


def test_reads_both_files_in_step():
    values = np.arange(12.0).reshape(3, 4)
    streams = [io.BytesIO(files.npy(v)) for v in (np.asfortranarray(values), values)]
    (reference,), (replay,) = (read_arrays(stream, "npy") for stream in streams)
    assert compare_array(reference, replay, EXACT).equal


# --- the scale that a record states ---------------------------------------------------


def pair_with_floor():
    draw = np.random.default_rng(5)
    reference = draw.standard_normal(5000).astype("f4")
    return reference, (reference * (1 + 1e-4 * draw.standard_normal(5000))).astype("f4")


def counted(values, read):
    """Return the array; each reading of it is added to `read`."""
    one = named(values)

    def blocks(elements):
        read.append(1)
        yield from one.blocks(elements)

    return one._replace(blocks=blocks)


def test_a_stated_scale_spares_readings_and_changes_no_figure():
    reference, replay = pair_with_floor()
    rule = Tolerance(rtol=1e-4, atol=0.0, floor=1.0)
    stated: list[int] = []
    unknown: list[int] = []
    scale = root_mean_square(named(reference))
    fast = compare_array(counted(reference, stated), named(replay), rule, scale)
    slow = compare_array(counted(reference, unknown), named(replay), rule)
    assert fast == slow
    assert slow.outside
    assert (len(stated), len(unknown)) == (1, 3)


def test_what_lies_within_without_its_floor_needs_no_scale():
    reference, replay = pair_with_floor()
    rule = Tolerance(rtol=1e-2, atol=0.0, floor=1.0)
    read: list[int] = []
    found = compare_array(counted(reference, read), named(replay), rule)
    scale = root_mean_square(named(reference))
    usual = compare_array(named(reference), named(replay), rule, scale)
    assert (len(read), found.outside, found.problem) == (1, 0, "")
    # Another of the elements that are all within may be the one nearest to its bound.
    apart = {name: getattr(usual, name) for name in ("worst_index", "expected", "got")}
    assert msgspec.structs.replace(found, **apart) == usual


@pytest.mark.parametrize("stated", [0.0, 1e6, 1.0001, math.inf, math.nan])
def test_a_wrong_stated_scale_loosens_nothing(stated):
    reference, replay = pair_with_floor()
    rule = Tolerance(rtol=1e-4, atol=0.0, floor=1.0)
    result = compare_array(named(reference), named(replay), rule, stated)
    assert result == compare_array(named(reference), named(replay), rule)
    assert result.outside


# --- against the plain definition -----------------------------------------------------


def plainly(b, a, rule):
    """Return the figures by their definitions, with no thought of speed or memory."""
    b, a = b.astype("f8"), a.astype("f8")
    both = np.isfinite(b) & np.isfinite(a)
    same = (b == a) | (np.isnan(b) & np.isnan(a))
    d, m = np.abs(a - b)[both], np.abs(b[both])
    finite = b[np.isfinite(b)]
    scale = math.sqrt(math.fsum(finite**2) / finite.size) if finite.size else 0.0
    bound = rule.atol + rule.rtol * np.maximum(m, rule.floor * scale)
    return {
        "outside": int((d > bound).sum() + (~both & ~same).sum()),
        "max_abs": d.max(initial=0.0) if d.size else None,
        "max_rel": (d[m > 0] / m[m > 0]).max(initial=0.0) if (m > 0).any() else None,
        "nan": int((np.isnan(b) & np.isnan(a)).sum()),
        "infinite": int((same & np.isinf(b)).sum()),
        "relative_l2": math.sqrt(math.fsum(d**2) / math.fsum(m**2))
        if m.any()
        else None,
        "p50_abs": np.sort(d)[max(0, math.ceil(d.size / 2) - 1)] if d.size else None,
    }


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "bfloat16", "float8_e5m2"])
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_every_figure_is_that_of_its_definition(dtype, data):
    draw = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    size = data.draw(st.integers(1, 400))
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    b = (draw.standard_normal(size) * 10.0 ** draw.integers(-3, 4, size)).astype(kind)
    relative = 10.0 ** data.draw(st.integers(-6, 0))
    a = (b.astype("f8") * (1 + relative * draw.standard_normal(size))).astype(kind)
    specials = [np.nan, np.inf, -np.inf, 0.0, -0.0]
    for side in (b, a):
        at = draw.integers(0, size, data.draw(st.integers(0, 4)))
        side[at] = draw.choice(specials, at.size).astype(kind)
    rule = Tolerance(rtol=1e-3, atol=1e-6, floor=data.draw(st.sampled_from([0.0, 0.3])))
    result = compare(b, a, rule)
    with np.errstate(all="ignore"):
        wanted = plainly(b, a, rule)
    if result.equal:
        wanted["outside"] = 0
    for name, value in wanted.items():
        got = getattr(result, name)
        exact = got is None or value is None or name in ("outside", "nan", "infinite")
        assert got == (value if exact else pytest.approx(value, rel=1e-9)), name
