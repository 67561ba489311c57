import math

import pytest

from reprobundle.format.findings import ArrayComparison, OutputComparison
from reprobundle.format.policy import OutputRule, Tolerance
from reprobundle.verify.defaults import default_policy, is_widened, widen
from reprobundle.verify.rules import tolerance_for


def rows(policy=None):
    policy = policy or default_policy()
    return {(row.dtype, row.devices): row for row in policy.tolerances}


def part(*, max_abs, max_rel, scale, dtype="float32", **changes):
    fields = {
        "name": "",
        "dtype": dtype,
        "elements": 10,
        "equal": False,
        "outside": 1,
        "rtol": 1.3e-6,
        "atol": 1e-5,
        "max_abs": max_abs,
        "max_rel": max_rel,
        "scale": scale,
    }
    return ArrayComparison(**{**fields, **changes})


def compared(*parts, name="out/a.npy"):
    return OutputComparison(
        name=name, kind="arrays", format="npy", result="outside-tolerance", parts=parts
    )


def test_same_device_figures_are_those_of_assert_close():
    testing = pytest.importorskip("torch.testing._comparison")
    for dtype, (rtol, atol) in testing._DTYPE_PRECISIONS.items():
        row = rows().get((str(dtype).removeprefix("torch."), "same"))
        if row is not None:
            assert (row.tolerance.rtol, row.tolerance.atol) == (rtol, atol)


def test_every_tolerance_names_its_source():
    assert all(row.source for row in default_policy().tolerances)


def test_no_tolerance_for_two_devices_is_tighter_than_for_one():
    known = rows()
    for (dtype, devices), row in known.items():
        other = known.get((dtype, "different"))
        if devices == "same" and other is not None:
            assert other.tolerance.rtol >= row.tolerance.rtol
            assert other.tolerance.atol >= row.tolerance.atol


def test_no_dtype_and_device_pair_stands_twice():
    policy = default_policy()
    assert len(rows(policy)) == len(policy.tolerances)


def test_noise_widens_the_relative_bound_to_five_times_what_was_seen():
    comparison = compared(part(max_abs=2e-3, max_rel=1.0, scale=1.0))
    row = rows(widen(default_policy(), [comparison]))["float32", "same"]
    assert math.isclose(row.tolerance.rtol, 1e-2)
    assert (row.tolerance.atol, row.tolerance.floor) == (1e-5, 1.0)
    assert is_widened(row)
    assert "5 x 0.002" in row.source


def test_noise_of_one_output_does_not_depend_on_its_unit():
    small = compared(part(max_abs=2e-3, max_rel=1.0, scale=1.0))
    large = compared(part(max_abs=2e3, max_rel=1.0, scale=1e6))
    assert (
        rows(widen(default_policy(), [small]))["float32", "same"].tolerance
        == rows(widen(default_policy(), [large]))["float32", "same"].tolerance
    )


@pytest.mark.parametrize(
    "seen",
    [
        part(max_abs=0.0, max_rel=0.0, scale=1.0, equal=True),
        part(max_abs=1e-6, max_rel=1.0, scale=1e-9),
        part(max_abs=0.5, max_rel=0.5, scale=1.0),
        part(max_abs=None, max_rel=None, scale=None),
        part(max_abs=2.0, max_rel=1.0, scale=1.0, dtype="int64", rtol=None),
    ],
    ids=["equal", "within atol", "chaotic", "nothing finite", "exact kind"],
)
def test_nothing_is_widened_without_need_or_sense(seen):
    assert widen(default_policy(), [compared(seen)]) == default_policy()


def test_noise_widens_its_own_dtype_only():
    policy = widen(
        default_policy(), [compared(part(max_abs=2e-3, max_rel=1.0, scale=1.0))]
    )
    changed = {key for key, row in rows(policy).items() if row != rows()[key]}
    assert changed == {("float32", "same"), ("float32", "different")}


def test_an_output_with_a_rule_of_its_own_widens_nothing():
    own = OutputRule(
        match="out/*",
        tolerance=Tolerance(rtol=1e-9, atol=0.0),
        reason="exact by design",
    )
    policy = default_policy()
    policy = type(policy)(outputs=(own,), tolerances=policy.tolerances)
    noisy = compared(part(max_abs=2e-3, max_rel=1.0, scale=1.0))
    assert widen(policy, [noisy]) == policy
    assert tolerance_for(policy, "out/a.npy", "float32", "same") == own.tolerance
