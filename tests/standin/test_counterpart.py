"""One bundle with a run for each device: replays are judged by that of their own."""

from __future__ import annotations

import json

import pytest

TRAIN = """\
import json, sys, torch
torch.manual_seed(0)
model = torch.nn.Linear(4, 2).to(sys.argv[1])
x = torch.ones(3, 4).to(sys.argv[1])
loss = model(x).square().mean().item()
json.dump({"loss": loss, "device": sys.argv[1]}, open("loss.json", "w"))
"""


@pytest.fixture(scope="module")
def both(standin, tmp_path_factory):
    """Return a bundle packed on mps and the CPU, and the report of a replay on both."""
    folder = tmp_path_factory.mktemp("both")
    (folder / "project").mkdir()
    (folder / "project/train.py").write_text(TRAIN)
    bundle = folder / "x.rpb.zip"
    packed = standin.call(
        *("pack", "-o", bundle, "-q", "--passes", "measured", "--offline"),
        *("--device", "mps,cpu", "--", "python", "train.py", "{device}"),
        cwd=folder / "project",
    )
    assert packed.status == 0, packed.err
    done = standin.call(
        *("replay", bundle, "--env", standin.python, "--yes", "-q", "--json"),
        *("--device", "mps,cpu", "--passes", "measured"),
    )
    assert done.out, done.err
    return packed, done, bundle


def test_each_replay_is_judged_against_the_run_of_its_device(both):
    _, done, _ = both
    judged = done.report["judgements"]
    assert [(one["device"], one["against"]) for one in judged] == [
        ("mps-standin", 1),
        ("cpu", 2),
    ]
    results = {o["result"] for one in judged for o in one["outputs"]}
    # The file holds the device's name: the other run would not be equal.
    assert results == {"bit-identical"}


def test_what_it_was_judged_against_is_said(both, standin):
    packed, done, bundle = both
    assert "the same on cpu: exit 0" in packed.out
    reasons = [
        found["reason"]
        for one in done.report["judgements"]
        for found in one["findings"]
        if found["id"] == "same-run"
    ]
    assert reasons == [
        "judged against the sealed run on mps-standin",
        "judged against the sealed run on cpu",
    ]
    shown = standin.call("verify", bundle, plain=True).out
    assert "against run 2" in shown
    listed = standin.call("inspect", bundle, plain=True).out
    assert "counterpart" in listed


def test_that_the_two_sealed_runs_differ_is_said_by_verify(both):
    _, done, _ = both
    (found,) = [f for f in done.report["findings"] if f["id"] == "references-differ"]
    assert found["outcome"] == "warn"
    assert "the sealed runs on mps-standin and cpu differ" in found["reason"]
    assert "loss.json" in found["reason"]


def test_both_runs_can_be_set_side_by_side(both, standin):
    _, _, bundle = both
    done = standin.call("diff", "--json", f"{bundle}:1", f"{bundle}:2", plain=True)
    axes = json.loads(done.out)["axes"]
    assert "device" in axes
