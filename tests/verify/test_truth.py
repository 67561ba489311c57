"""Which side is worse is said only where the float64 run is a truth."""

from __future__ import annotations

import json

import numpy as np
import pytest

from reprobundle.format.record import (
    Devices,
    Drawn,
    LeftOperator,
    Outcome,
    Promotion,
    Randomness,
)
from tests.verify.builder import Run, npy

EXACT = np.linspace(1.0, 2.0, 1000)
GOOD = {name: f"{name}-end" for name in ("torch.cpu", "python")}
DRAWN = Randomness(seed=0, final=GOOD)
WHOLE = Promotion(operators=7)


def outputs(values, loss):
    table = f"step,loss\n1,{loss!r}\n".encode()
    return {"a.npy": npy(values), "loss.csv": table, "name.txt": b"x\n"}


def narrow(error, loss=0.5):
    return outputs((EXACT + error).astype("f4"), loss)


def bench_with(bench, truth, **changes):
    changes = {"promotion": WHOLE, "randomness": DRAWN, **changes}
    reference = {"randomness": changes.pop("reference", DRAWN)}
    if "devices" in changes:
        reference["devices"] = changes.pop("devices")
    bench.reference = Run(narrow(1e-6, 0.5 + 1e-6), reference)
    bench.repeat = None
    bench.truth = Run(truth, changes)
    return bench.pack()


@pytest.fixture
def told(bench):
    bench_with(bench, outputs(EXACT, 0.5))
    bench.replay(Run(narrow(1e-3, 0.5 + 1.5e-6)), randomness=DRAWN)
    return bench.verify()


def by_name(report):
    return {one.name: one for one in report.judgements[-1].truths}


def about(report):
    (found,) = [one for one in report.findings if one.id == "truth-made"]
    return found


def test_the_side_with_the_larger_error_is_named_for_each_output(told):
    found = by_name(told)
    assert set(found) == {"a.npy", "loss.csv"}  # A text has no distance.
    assert found["a.npy"].worse == "replay"
    scale = np.linalg.norm(EXACT) / np.sqrt(EXACT.size)
    assert found["a.npy"].replay_error == pytest.approx(1e-3 / scale, rel=1e-3)
    assert found["a.npy"].reference_error == pytest.approx(1e-6 / scale, rel=0.1)
    assert found["a.npy"].replay_max == pytest.approx(1e-3, rel=1e-3)
    assert found["a.npy"].elements == 1000


def test_two_errors_of_one_size_name_no_side(told):
    assert by_name(told)["loss.csv"].worse == "neither"
    assert by_name(told)["loss.csv"].replay_error == pytest.approx(3e-6)


def test_the_reference_can_be_the_worse_side(bench):
    bench_with(bench, outputs(EXACT, 0.5))
    bench.replay(Run(narrow(0.0)), randomness=DRAWN)
    assert by_name(bench.verify())["a.npy"].worse == "reference"


def test_a_truth_excuses_no_difference(told):
    assert told.verdict == "NOT REPRODUCED"
    assert about(told).outcome == "pass"
    nearer = [f for f in told.judgements[0].findings if f.id == "truth-nearer"]
    assert [one.outcome for one in nearer] == ["pass", "pass"]
    assert "the replay is worse" in nearer[0].reason


NO_TRUTH: dict[str, tuple[dict[str, object], str]] = {
    "left": (
        {
            "promotion": Promotion(
                operators=7,
                left=(LeftOperator(operator="add_.Tensor", why="it writes", count=3),),
            )
        },
        "3 calls of 1 operators were left in less than float64, such as add_.Tensor",
    ),
    "a process": (
        {
            "promotion": Promotion(
                operators=7,
                left=(LeftOperator(operator="", why="a process promoted no", count=1),),
            )
        },
        "a process promoted no",
    ),
    "nothing": ({"promotion": Promotion()}, "nothing was promoted"),
    "no account": ({"promotion": None}, "nothing was promoted"),
    "failed": ({"outcome": Outcome(exit_status=1)}, "the float64 run failed"),
    "other files": ({"files_digest": "0" * 64}, "started from other files"),
    "other draws": (
        {"randomness": Randomness(final={**GOOD, "torch.cpu": "another"})},
        "the generator torch.cpu was drawn from otherwise than in the reference",
    ),
    "unknown draws": (
        {"reference": Randomness(seed=0)},
        "the generators' states at the end of the reference are not known",
    ),
    "draws of a device": (
        {"devices": Devices(observed=("cuda",), fallback="none-seen")},
        "pack with --rng portable",
    ),
}


@pytest.mark.parametrize("case", NO_TRUTH)
def test_what_is_no_truth_is_not_checked_and_compares_nothing(bench, case):
    changes, reason = NO_TRUTH[case]
    bench_with(bench, outputs(EXACT, 0.5), **changes)
    bench.replay(Run(narrow(1e-3)), randomness=DRAWN)
    report = bench.verify()
    assert about(report).outcome == "not-checked"
    assert reason in about(report).reason
    assert "truth-made" in report.not_checked
    assert by_name(report) == {}


def test_portable_draws_of_a_device_can_have_a_truth(bench):
    portable = Randomness(seed=0, final=GOOD, drawn=Drawn(mode="portable"))
    devices = Devices(observed=("cuda",), fallback="none-seen")
    bench_with(bench, outputs(EXACT, 0.5), devices=devices, reference=portable)
    assert about(bench.verify()).outcome == "pass"


def test_a_generator_that_nobody_used_may_have_any_state(bench):
    unseeded = [
        Randomness(seed=0, initial={"numpy": state}, final={**GOOD, "numpy": state})
        for state in ("one", "two")
    ]
    bench_with(
        bench, outputs(EXACT, 0.5), reference=unseeded[0], randomness=unseeded[1]
    )
    assert about(bench.verify()).outcome == "pass"


def test_an_output_that_stayed_short_is_not_compared(bench):
    bench_with(bench, narrow(0.0))
    bench.replay(Run(narrow(1e-3)), randomness=DRAWN)
    one = by_name(bench.verify())["a.npy"]
    assert one.worse == "not-checked"
    assert "as float32: it was not promoted" in one.reason


def test_an_output_of_another_shape_is_not_compared(bench):
    bench_with(bench, outputs(EXACT[:-1], 0.5))
    bench.replay(Run(narrow(1e-3)), randomness=DRAWN)
    assert "other shapes" in by_name(bench.verify())["a.npy"].reason


def test_places_that_are_not_finite_on_one_side_do_not_count(bench):
    broken = EXACT.copy()
    broken[3] = np.nan
    bench_with(bench, outputs(broken, 0.5))
    bench.replay(Run(narrow(1e-3)), randomness=DRAWN)
    assert by_name(bench.verify())["a.npy"].elements == 999


def test_whole_numbers_have_no_distance_and_are_no_gap(bench):
    labels = {"labels.npy": npy(np.arange(4)), "n.json": b'{"n": 3}\n'}
    bench.reference, bench.repeat = Run(dict(labels), {"randomness": DRAWN}), None
    bench.truth = Run(dict(labels), {"promotion": WHOLE, "randomness": DRAWN})
    bench.pack().replay(Run(dict(labels)), randomness=DRAWN)
    report = bench.verify()
    assert by_name(report) == {}
    assert "truth-nearer" not in report.not_checked


def test_an_output_without_a_finite_number_is_not_compared(bench):
    nothing = {"a.npy": npy([np.nan])}
    bench.reference, bench.repeat = Run(dict(nothing), {"randomness": DRAWN}), None
    bench.truth = Run(dict(nothing), {"promotion": WHOLE, "randomness": DRAWN})
    bench.pack().replay(Run(dict(nothing)), randomness=DRAWN)
    reason = by_name(bench.verify())["a.npy"].reason
    assert reason == "no decimal number in it is finite on every side"


def test_a_bundle_without_one_says_that_none_was_asked_for(bench):
    found = about(bench.pack().verify())
    assert (found.outcome, found.reason) == (
        "not-applicable",
        "no float64 run was asked for",
    )


def test_every_repeat_counts_for_whether_the_result_repeats(bench):
    far = Run({"a.npy": npy(EXACT * 1.5), "loss.csv": b"l\n1\n", "name.txt": b"x\n"})
    same = {"a.npy": npy(EXACT), "loss.csv": b"l\n1\n", "name.txt": b"x\n"}
    bench.reference, bench.repeat = Run(dict(same)), Run(dict(same))
    bench.repeats = (Run(dict(same)), far)
    report = bench.pack().verify()
    (found,) = [one for one in report.findings if one.id == "reference-not-repeatable"]
    assert (found.outcome, found.where) == ("warn", "a.npy")
    assert found.reason.startswith("4 runs on one machine: ")


def test_json_has_the_errors(told):
    from reprobundle.report.json import report_json

    decoded = json.loads(report_json(told))
    truths = decoded["judgements"][0]["truths"]
    assert [one["worse"] for one in truths] == ["replay", "neither"]


def of_device(device, **changes):
    devices = Devices(
        requested=device,
        observed=(device,),
        fallback="none-possible",
        reason="no device with automatic CPU fallback was there",
    )
    return {"devices": devices, "phases": (), "randomness": DRAWN, **changes}


@pytest.fixture
def two_devices(bench):
    """Return a bundle with runs on CUDA, with its own draws, and on the CPU."""
    bench_with(bench, outputs(EXACT, 0.5))
    bench.reference = Run(narrow(1e-6, 0.5 + 1e-6), of_device("cuda"))
    bench.counterparts = (Run(narrow(1e-5, 0.5 + 1e-6), of_device("cpu")),)
    return bench.pack()


def test_a_replay_of_a_further_device_is_compared_with_the_truth_too(two_devices):
    two_devices.replay(Run(narrow(1e-3)), **of_device("cpu"))
    report = two_devices.verify()
    assert report.judgements[-1].against == 3
    found = by_name(report)["a.npy"]
    assert found.worse == "replay"
    # Not the error of run 1, which has no truth.
    assert found.reference_max == pytest.approx(1e-5, rel=0.1)


def test_each_sealed_run_is_asked_whether_the_truth_is_one_about_it(two_devices):
    two_devices.replay(Run(narrow(1e-3)), **of_device("cuda"))
    report = two_devices.verify()
    told = [one for one in report.findings if one.id == "truth-made"]
    assert [one.outcome for one in told] == ["not-checked", "pass"]
    assert told[0].reason.endswith("(run 1, on cuda)")
    assert told[1].reason.endswith("(run 3, on cpu)")
    assert report.judgements[-1].truths == ()


def test_what_the_generator_of_mps_was_left_at_says_nothing_about_the_cpus(bench):
    left = {**GOOD, "torch.mps": "m", "torch.cuda:0": "c"}
    drawn = Randomness(seed=0, final=left, drawn=Drawn(mode="portable"))
    on_mps = of_device("mps")["devices"]
    bench_with(bench, outputs(EXACT, 0.5), reference=drawn, devices=on_mps)
    assert about(bench.verify()).outcome == "pass"
