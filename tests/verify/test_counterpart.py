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
    report = packed.verify(allow=("references-differ",))
    (judged,) = report.judgements
    assert (judged.device, judged.against) == ("cpu", 2)
    assert judged.verdict == "REPRODUCED, bit-identical", report.reasons
    assert report.exit_status == 0
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
    assert "no pass of the main command on another device" in one.reason


def test_a_bundle_with_one_run_says_nothing_new(bench):
    bench.pack().replay(devices=on("cuda"), phases=())
    report = bench.verify()
    assert report.judgements[0].against == 1
    assert not found(report, "same-run", "pass")[0].reason


def of_cpu(pass_name: str, **values):
    """Return a pass on the CPU, as a further device of a bundle made on CUDA."""
    changes = {"devices": used("cpu"), "phases": (), "pass_name": pass_name}
    return Run(outputs(**values), changes)


@pytest.fixture
def both(bench):
    """Return a bench whose runs on CUDA and the CPU agree, with a repeat of each."""
    on_cuda = {"devices": used("cuda"), "phases": ()}
    bench.reference = Run(changes=on_cuda)
    bench.repeat = Run(changes=on_cuda)
    bench.counterparts = (of_cpu("measured"), of_cpu("repeat"))
    return bench


def test_two_sealed_runs_that_agree_are_said_to(both):
    (one,) = found(both.pack().verify(), "references-differ", "pass")
    assert one.reason.startswith("the sealed runs on cuda and cpu agree: ")
    assert "bit-identical" in one.reason
    assert one.where == "runs/3"


def test_two_sealed_runs_are_compared_as_runs_on_different_devices(both):
    both.counterparts = (of_cpu("measured", logits=NEAR), of_cpu("repeat", logits=NEAR))
    (one,) = found(both.pack().verify(), "references-differ", "pass")
    assert "within tolerance where out/logits.npy differs by up to" in one.reason


def test_two_sealed_runs_that_differ_are_a_warning_that_names_the_output(both):
    both.counterparts = (of_cpu("measured", metrics=HALF), of_cpu("repeat"))
    both.pack().replay(devices=used("cuda"), phases=())
    report = both.verify()
    (one,) = found(report, "references-differ", "warn")
    assert "the sealed runs on cuda and cpu differ in 1 of" in one.reason
    assert "metrics.json" in one.reason
    assert one.advice == (
        "reprobundle diff digits.rpb.zip:1 digits.rpb.zip:3 shows both"
    )
    assert report.verdict == "REPRODUCED WITH WARNINGS"
    assert report.judgements[0].verdict == "REPRODUCED, bit-identical"


def test_with_one_device_there_is_nothing_to_agree(bench):
    report = bench.pack().verify()
    assert found(report, "references-differ", "not-applicable")
    (one,) = found(
        bench.verify(integrity_only=True), "references-differ", "not-checked"
    )
    assert one.reason


def test_each_device_is_asked_whether_its_run_repeats(both):
    both.counterparts = (of_cpu("measured"), of_cpu("repeat", metrics=HALF))
    report = both.pack().verify()
    (good,) = found(report, "reference-not-repeatable", "pass")
    (bad,) = found(report, "reference-not-repeatable", "warn")
    assert good.reason.endswith("(run 1, on cuda)")
    assert bad.reason.endswith("(run 3, on cpu)")
    both.counterparts = (of_cpu("measured"),)
    (gap,) = found(both.pack().verify(), "reference-not-repeatable", "not-checked")
    assert gap.reason.endswith("its own machine (run 3, on cpu)")


def test_each_device_is_asked_whether_tracing_changed_its_run(both):
    both.counterparts = (
        of_cpu("measured"),
        of_cpu("evidence", metrics=HALF),
    )
    (one,) = found(both.pack().verify(), "tracing-changed-reference", "warn")
    assert one.where == "runs/4"


def test_a_repeat_on_a_further_device_is_judged_by_the_repeat_there(both):
    both.pack().replay(
        devices=used("cpu"), phases=(), runs=2, pass_name="repeat", occasion="b"
    )
    (judged,) = both.verify().judgements
    assert judged.against == 4
    (one,) = found(both.verify(), "same-run", "pass")
    assert one.reason == "judged against the sealed run on cpu"


def test_a_repeat_of_another_claim_is_not_judged_by_the_main_command(both):
    on_cuda = {"devices": used("cuda"), "phases": ()}
    both.claims = {"ablation": Run(changes=dict(on_cuda))}
    both.claim_repeats = {"ablation": (Run(changes=dict(on_cuda)),)}
    both.pack().replay(
        devices=used("cpu"),
        phases=(),
        runs=4,
        claim="ablation",
        pass_name="repeat",
        occasion="c",
    )
    (judged,) = both.verify().judgements
    assert judged.against == 4


def test_a_claim_without_a_run_on_the_device_says_where_it_was_judged(both):
    both.claims = {"ablation": Run(changes={"devices": used("cuda"), "phases": ()})}
    both.pack().replay(
        devices=used("cpu"), phases=(), runs=3, claim="ablation", occasion="c"
    )
    (one,) = found(both.verify(), "same-run", "pass")
    assert one.reason == (
        "claim 'ablation' has no sealed run on cpu: judged against the one on cuda"
    )
