"""On a real GPU: one bundle with a sealed run on CUDA and one on the CPU."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.cuda
torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

from tests.cuda.test_bundles import call, reference  # noqa: E402 - skips without a GPU

DIGITS = Path(__file__).parents[2] / "examples" / "digits"


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """Return the digits example, packed on CUDA with the CPU beside it."""
    folder = tmp_path_factory.mktemp("two")
    project = folder / "digits"
    shutil.copytree(DIGITS, project)
    bundle = folder / "digits.rpb.zip"
    done = call(
        *("pack", "-o", bundle, "--project", ".", "--seed", "7", "--offline"),
        *("--device", "cuda,cpu", "--truth", "--rng", "portable"),
        *("--", sys.executable, "train.py", "--device", "{device}"),
        cwd=project,
    )
    assert bundle.exists(), done.stderr
    sys.stderr.write(done.stdout)
    return bundle


@pytest.fixture(scope="module")
def replayed(packed):
    """Return the report of a replay on both, and what a person sees of it."""
    done = call(
        *("replay", packed, "--yes", "-q", "--json", "--device", "cuda,cpu"),
        *("--passes", "measured"),
    )
    assert done.stdout, done.stderr
    shown = call("verify", packed).stdout
    sys.stderr.write(shown)
    return json.loads(done.stdout), shown


def findings(report, name):
    return [one for one in report["findings"] if one["id"] == name]


def test_each_device_has_a_repeat_a_traced_run_and_an_answer(replayed):
    report, _ = replayed
    for name in ("reference-not-repeatable", "tracing-changed-reference"):
        assert [one["outcome"] for one in findings(report, name)] == ["pass", "pass"]
    (one,) = findings(report, "references-differ")
    sys.stderr.write(f"references-differ: {one['outcome']}: {one['reason']}\n")
    assert one["outcome"] in ("pass", "warn")


def test_each_replay_equals_the_sealed_run_of_its_device(replayed):
    judged = replayed[0]["judgements"]
    assert [one["device"] for one in judged] == ["cuda", "cpu"]
    assert judged[0]["against"] == 1
    assert judged[1]["against"] > 1
    for one in judged:
        results = {output["result"] for output in one["outputs"]}
        assert results <= {"bit-identical", "within-tolerance"}, one["device"]


def test_both_are_compared_with_the_float64_truth(replayed):
    report, _ = replayed
    outcomes = {one["outcome"] for one in findings(report, "truth-made")}
    reasons = [one["reason"] for one in findings(report, "truth-made")]
    sys.stderr.write("\n".join(reasons) + "\n")
    assert len(reasons) == 2
    for one in report["judgements"]:
        assert bool(one["truths"]) == (outcomes == {"pass"})


def test_the_sealed_runs_stand_side_by_side(packed, replayed):
    report, shown = replayed
    number = report["judgements"][1]["against"]
    (heading,) = [line for line in shown.splitlines() if "claim main" in line]
    assert "run 1, cuda" in heading
    assert f"run {number}, cpu" in heading
    done = call("diff", "--json", f"{packed}:1", f"{packed}:{number}")
    assert "device" in json.loads(done.stdout)["axes"]


def test_the_record_of_cuda_holds_the_ratio_of_its_self_check(packed):
    record, _ = reference(packed)
    phases = {one.name: one for one in record.phases}
    for name in ("forward", "backward", "optimizer"):
        phase = phases[name]
        assert phase.unwaited_ratio is not None
        assert phase.unwaited_ratio == phase.unwaited_median_ns / phase.median_ns
        sys.stderr.write(
            f"{name}: {phase.unwaited_ratio:.4f} of {phase.median_ns} ns\n"
        )
    assert record.environment["torch.mps.missing"].value == "not-macos"
