"""A policy that cannot say no is no policy."""

import msgspec
import numpy as np
import pytest

from reprobundle.format.policy import DtypeTolerance, OutputRule, Tolerance
from reprobundle.verify.defaults import NOISE_SOURCE, default_policy
from tests.verify.builder import Run, found, npy

LARGE = Tolerance(rtol=0.0, atol=0.7)  # The values run from -1 to 1: rms 0.6.
SMALL = Tolerance(rtol=0.0, atol=0.3)


def rule(tolerance=None, match="*", **changes):
    return OutputRule(match=match, tolerance=tolerance, reason="it says so", **changes)


def vacuous(bench, **changes):
    bench.policy = msgspec.structs.replace(default_policy(), **changes)
    return found(bench.pack().verify(), "vacuous-tolerance", "warn")


@pytest.mark.parametrize(
    "tolerance",
    [
        Tolerance(rtol=1.0, atol=0.0),
        Tolerance(rtol=0.1, atol=0.0, floor=10.0),
        Tolerance(rtol=0.0, atol=0.0, share=0.5),
    ],
)
@pytest.mark.parametrize("place", ["tolerance", "dtypes"])
def test_a_tolerance_that_admits_everything_is_said(bench, tolerance, place):
    own = tolerance if place == "tolerance" else {"float32": tolerance}
    (one,) = vacuous(bench, outputs=(rule(**{place: own}),))
    assert one.where == ("*" if place == "tolerance" else "*, float32")


def test_an_absolute_bound_beyond_the_values_is_said(bench):
    (one,) = vacuous(bench, outputs=(rule(LARGE),))
    assert (one.where, "zeros" in one.reason) == ("out/logits.npy", True)


def test_an_absolute_bound_below_the_values_is_not(bench):
    assert vacuous(bench, outputs=(rule(SMALL),)) == []


def row(source):
    return (
        DtypeTolerance(dtype="float32", devices="same", tolerance=LARGE, source=source),
    )


def test_a_row_that_somebody_stated_counts_and_the_measured_noise_does_not(bench):
    assert len(vacuous(bench, tolerances=row("a guess"))) == 1
    assert vacuous(bench, tolerances=row(NOISE_SOURCE)) == []


def test_the_default_is_no_fault_of_tiny_values(bench):
    tiny = Run({"g.npy": npy(np.full(9, 1e-9, "f4"))})
    bench.reference = bench.repeat = tiny
    assert vacuous(bench) == []


def test_an_output_that_a_rule_leaves_out_needs_no_bound(bench):
    assert vacuous(bench, outputs=(rule(LARGE, compare=False),)) == []
