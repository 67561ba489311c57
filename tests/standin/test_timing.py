"""The record's own check of its clock, on a device whose true times are known."""

import shutil

import msgspec
import pytest

from reprobundle.format.reader import open_bundle
from reprobundle.format.record import Record
from tests.standin.test_replay import findings

# One operator of the device each: the least that a forward and a step can be.
NS_PER_OP = 1_000_000
STEPS = 30
TRAIN = f"""\
import json, sys
import torch

device = sys.argv[1]
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
x = torch.randn(8, 4).to(device)
for step in range({STEPS}):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
json.dump(loss.item(), open("loss.json", "w"))
"""


@pytest.fixture(scope="module")
def timed(standin, tmp_path_factory):
    """Replay a loop that never waits by itself; return the answer and its phases."""
    folder = tmp_path_factory.mktemp("timed")
    (folder / "project").mkdir()
    (folder / "project/train.py").write_text(TRAIN)
    bundle = folder / "timed.rpb.zip"
    done = standin.call(
        *("pack", "--offline", "-o", bundle, "-q", "--passes", "measured"),
        *("--device", "cpu", "--seed", "0", "--", "python", "train.py", "{device}"),
        cwd=folder / "project",
        plain=True,
    )
    assert done.status == 0, done.err
    copy = folder / "copy.rpb.zip"
    shutil.copy(bundle, copy)
    done = standin.call(
        *("replay", copy, "--env", standin.python, "--yes", "-q", "--json"),
        *("--device", "mps", "--passes", "measured"),
        ns_per_op=NS_PER_OP,
    )
    with open_bundle(copy) as opened:
        (number,) = opened.replay_ids
        content = opened.read_unsealed(f"replays/{number}/record.json")
    record = msgspec.json.decode(content, type=Record)
    return done, {phase.name: phase for phase in record.phases}


@pytest.mark.parametrize("name", ["forward", "backward", "optimizer"])
def test_the_time_with_waits_is_the_devices_and_the_other_is_not(timed, name):
    _, phases = timed
    phase = phases[name]
    assert phase.count == STEPS
    assert phase.synchronizations == 2 * STEPS
    # The device's clock is exact from below, whatever the machine is busy with.
    assert phase.median_ns >= 2 * NS_PER_OP
    assert phase.unwaited_median_ns < phase.median_ns


def test_the_verdict_states_both_times_and_their_ratio(timed):
    done, phases = timed
    ((outcome, reason),) = findings(done, "timing-self-check")
    assert outcome == "pass"
    assert "ms with waits" in reason
    waited = sum(phases[n].median_ns for n in ("forward", "backward", "optimizer"))
    assert f"{waited / 1e6:.3f} ms" in reason
