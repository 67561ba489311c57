"""Which sealed run a replay is judged against, where there is one for each device."""

from __future__ import annotations

import msgspec
import pytest

from tests.verify.builder import NEAR, Run, found, on, outputs

HALF = b'{"accuracy": 0.5, "epochs": 3, "train_seconds": 1.0}\n'


def used(device: str, **changes: object):
    """Return the devices of a run that asked for one and used it."""
    return msgspec.structs.replace(
        on(device, "none-possible"), requested=device, **changes
    )


@pytest.fixture
def packed(bench):
    """Return a bundle with a run on CUDA and another result on the CPU."""
    bench.reference = Run(changes={"devices": used("cuda"), "phases": ()})
    bench.repeat = None
    other = {"devices": used("cpu"), "phases": ()}
    bench.counterparts = (Run(outputs(metrics=HALF), other),)
    return bench.pack()


@pytest.mark.parametrize("named", [1, 2])
def test_a_replay_is_judged_by_its_device_whatever_run_it_names(packed, named):
    packed.replay(
        Run(outputs(metrics=HALF)), devices=used("cpu"), phases=(), runs=named
    )
    report = packed.verify()
    (judged,) = report.judgements
    assert (judged.device, judged.against) == ("cpu", 2)
    assert report.verdict == "REPRODUCED, bit-identical", report.reasons
    (one,) = found(report, "same-run", "pass")
    assert one.reason == "judged against the sealed run on cpu"


def test_the_result_of_another_device_is_no_excuse(packed):
    packed.replay(Run(outputs(metrics=HALF)), devices=used("cuda"), phases=(), runs=2)
    report = packed.verify()
    assert report.judgements[0].against == 1
    assert report.verdict == "NOT REPRODUCED"


def test_a_device_that_no_run_has_is_judged_by_the_first_and_says_so(packed):
    packed.replay(devices=on("mps"), phases=(), platform="darwin")
    (one,) = found(packed.verify(), "same-run", "pass")
    assert one.reason == (
        "no run on mps is sealed: judged against the sealed run on cuda"
    )


def test_tolerances_are_those_of_the_pair_that_is_compared(packed):
    near = outputs(metrics=HALF, logits=NEAR)
    packed.replay(Run(near), devices=used("cpu"), phases=())
    (judged,) = packed.verify().judgements
    (logits,) = [one for one in judged.outputs if one.name == "out/logits.npy"]
    rules = {
        (row.dtype, row.devices): row.tolerance for row in packed.policy.tolerances
    }
    assert logits.parts[0].rtol == rules["float32", "same"].rtol


@pytest.mark.parametrize(
    "changes",
    [
        {"devices": used("cuda")},
        {"devices": used("cpu"), "claim": "another"},
        {"devices": used("cpu"), "pass_name": "repeat"},
    ],
)
def test_a_run_that_is_no_counterpart_is_refused(bench, changes):
    bench.reference = Run(changes={"devices": used("cuda")})
    bench.counterparts = (Run(changes=changes),)
    (one,) = found(bench.pack().verify(), "sealed-document", "fail")
    assert "no measured pass of the main command on another device" in one.reason


def test_a_bundle_with_one_run_says_nothing_new(bench):
    bench.pack().replay(devices=on("cuda"), phases=())
    report = bench.verify()
    assert report.judgements[0].against == 1
    assert not found(report, "same-run", "pass")[0].reason
