"""Whether the reference is fit to be compared with."""

import msgspec

from reprobundle.format.policy import (
    Tolerance,
)
from reprobundle.format.record import (
    Outcome,
    Remark,
)
from reprobundle.verify.defaults import default_policy
from tests.verify.builder import (
    ENVIRONMENT,
    ERROR,
    FAR,
    NEAR,
    Run,
    found,
    outputs,
    reasons,
)


def test_a_reference_that_does_not_repeat_is_a_warning(bench):
    bench.repeat = Run(outputs(logits=FAR))
    bench.pack().replay()
    report = bench.verify()
    assert report.verdict == "REPRODUCED WITH WARNINGS"
    warning = found(report, "reference-not-repeatable", "warn")[0]
    assert (warning.where, "outside the tolerance" in warning.reason) == (
        "out/logits.npy",
        True,
    )


def test_a_repeat_within_tolerance_passes_with_figures(bench):
    bench.repeat = Run(outputs(logits=NEAR))
    report = bench.pack().verify()
    passed = found(report, "reference-not-repeatable", "pass")[0]
    assert "differs by up to" in passed.reason


def test_a_repeat_that_only_a_widened_tolerance_admits_is_a_warning(bench):
    rows = [
        msgspec.structs.replace(
            row,
            tolerance=Tolerance(rtol=0.05, atol=1e-5, floor=1.0),
            source=f"{row.source}; widened by the measured noise of two runs on one "
            "machine: 5 x 0.01",
        )
        if row.dtype == "float32"
        else row
        for row in default_policy().tolerances
    ]
    bench.policy = msgspec.structs.replace(default_policy(), tolerances=tuple(rows))
    bench.repeat = Run(outputs(logits=FAR))
    report = bench.pack().verify()
    warning = found(report, "reference-not-repeatable", "warn")[0]
    assert "widened by their own noise" in warning.reason


def test_a_repeat_that_failed_is_a_warning(bench):
    bench.repeat = Run({}, {"outcome": Outcome(exit_status=1, error=ERROR)})
    report = bench.pack().verify()
    assert found(report, "reference-not-repeatable", "warn")[0].where == "runs/2"
    assert found(report, "reference-ending", "fail")[0].where == "runs/2"


def test_a_reference_that_was_not_watched_completely_is_a_warning(bench):
    remark = Remark(id="network-used", severity="warning", text="it did", where="host")
    bench.reference = Run(changes={"remarks": (remark,)})
    bench.pack().replay()
    report = bench.verify()
    assert report.verdict == "REPRODUCED WITH WARNINGS"
    assert found(report, "reference-trouble", "warn")[0].where == "runs/1, host"


def test_a_reference_that_never_ended_is_incomplete(bench):
    cut = Outcome(exit_status=0, completed=False, stop_detail="the power failed")
    bench.reference = Run(changes={"outcome": cut})
    bench.pack().replay()
    report = bench.verify()
    assert report.verdict == "INCOMPLETE"
    assert "reference-ending (runs/1): the power failed" in reasons(report)


def test_a_reference_that_cannot_be_trusted_is_incomplete(bench):
    remark = Remark(id="masked-failure", severity="failure", text="status 1", where="x")
    bench.reference = Run(changes={"remarks": (remark,)})
    bench.pack().replay()
    assert bench.verify().verdict == "INCOMPLETE"


def test_a_traced_run_with_the_same_results_shows_that_tracing_changed_nothing(bench):
    bench.evidence = Run()
    report = bench.pack().verify()
    assert found(report, "tracing-changed-reference", "pass")


def test_a_traced_run_with_other_results_is_a_warning(bench):
    bench.evidence = Run(outputs(logits=FAR))
    bench.pack().replay()
    report = bench.verify()
    assert report.verdict == "REPRODUCED WITH WARNINGS"
    warning = found(report, "tracing-changed-reference", "warn")[0]
    assert "out/logits.npy" in warning.reason


def test_a_traced_run_that_failed_is_a_warning(bench):
    bench.evidence = Run(changes={"outcome": Outcome(exit_status=1)})
    report = bench.pack().verify()
    assert "failed" in found(report, "tracing-changed-reference", "warn")[0].reason


def test_a_reference_with_torch_that_nobody_traced_is_a_named_gap(bench):
    bench.pack().replay()
    report = bench.verify()
    assert "tracing-changed-reference" in report.not_checked
    assert report.exit_status == 0


def test_a_reference_without_torch_has_nothing_to_trace(bench):
    plain = {k: v for k, v in ENVIRONMENT.items() if not k.startswith("torch")}
    bench.reference = Run(changes={"environment": plain})
    report = bench.pack().verify()
    assert found(report, "tracing-changed-reference", "not-applicable")


def test_a_traced_replay_stands_against_the_measured_run(bench):
    bench.pack().replay(pass_name="evidence", phases=())
    report = bench.verify()
    assert report.judgements[0].exit_status == 0
    assert found(report, "same-run", "pass")
    bench.replay(pass_name="evidence", phases=(), runs=2, occasion="1" * 16)
    judged = bench.verify().judgements[-1]
    assert (judged.verdict, "pass 'measured'" in judged.reasons[0]) == (
        "NOT REPRODUCED",
        True,
    )
