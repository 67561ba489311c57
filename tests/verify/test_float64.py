"""What is said about float64 when a result is to count on MPS."""

import msgspec
import pytest

from reprobundle.format.policy import Intent
from reprobundle.format.record import Devices, Float64Search, Float64Site
from reprobundle.verify.defaults import default_policy
from tests.verify.builder import Run, found

SITE = Float64Site(
    how="moved", dtype="float64", where="{project}/train.py:9", phase="data", count=12
)


def judged(bench, search, *platforms):
    intent = Intent(accepting_platforms=platforms)
    bench.policy = msgspec.structs.replace(default_policy(), intent=intent)
    if search is not None:
        devices = Devices(observed=("cpu",), fallback="none-possible", float64=search)
        bench.evidence = Run(changes={"devices": devices})
    bench.pack().replay()
    report = bench.verify()
    return found(report, "float64-on-mps"), report


def test_a_place_is_a_warning_where_the_result_is_to_count_on_mps(bench):
    search = Float64Search(operators=40, sites=(SITE,))
    (one,), report = judged(bench, search, "linux-cpu", "macos-mps")
    assert (one.outcome, one.where) == ("warn", "{project}/train.py:9")
    assert "float64 is moved to the device in data ×12" in one.reason
    assert ".cpu()" in one.advice
    assert any("float64" in reason for reason in report.reasons)


def test_elsewhere_it_is_told_and_takes_nothing_away(bench):
    (one,), report = judged(bench, Float64Search(operators=40, sites=(SITE,)))
    assert one.outcome == "not-applicable"
    assert "on MPS these places would raise: {project}/train.py:9" in one.reason
    assert report.exit_status == 0


@pytest.mark.parametrize(
    ("search", "outcome"),
    [
        (Float64Search(operators=40), "pass"),
        (Float64Search(), "not-checked"),
        (Float64Search(operators=40, reason="1 compiled graphs"), "not-checked"),
        (None, "not-checked"),
    ],
)
def test_what_was_not_looked_at_never_passes(bench, search, outcome):
    ones, _ = judged(bench, search, "macos-mps")
    assert {one.outcome for one in ones} == {outcome}
