"""On a Mac: pack on the CPU, replay on its GPU, and know that it was the GPU."""

import json
import os
import shutil
from pathlib import Path

import msgspec
import pytest

from reprobundle.format.reader import open_bundle
from reprobundle.format.record import Record
from tests.cli.conftest import reprobundle

TRAIN = """\
import json, sys
import torch

device = sys.argv[1]
torch.manual_seed(0)
model = torch.nn.Linear(16, 4)
model = model.to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for _ in range(30):
    x = torch.randn(32, 16).to(device)
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
json.dump(losses, open("losses.json", "w"))
"""


MODE = """\
import json, sys
import torch

x = torch.arange(6.0, device=sys.argv[1])
json.dump(torch.mode(x).values.item(), open("mode.json", "w"))
"""
pytestmark = pytest.mark.mps


@pytest.fixture(autouse=True, scope="module")
def _apple_gpu():
    torch = pytest.importorskip("torch")
    if not torch.backends.mps.is_available():
        pytest.skip("there is no Apple GPU here")


def packed(folder, script):
    """Pack a script on the CPU; return the bundle."""
    (folder / "project").mkdir()
    (folder / "project/train.py").write_text(script)
    bundle = folder / f"{folder.name}.rpb.zip"
    done = reprobundle(
        *("pack", "-o", bundle, "--seed", "0", "--device", "cpu", "-q"),
        *("--", "python", "train.py", "{device}"),
        cwd=folder / "project",
    )
    assert done.status == 0, done.err
    return bundle


def on_the_gpu(bundle, *options):
    done = reprobundle(
        *("replay", bundle, "--device", "mps", "--yes", "-q", "--json"), *options
    )
    kept = os.environ.get("REPROBUNDLE_BUNDLES")
    if kept:
        Path(kept).mkdir(parents=True, exist_ok=True)
        shutil.copy(bundle, kept)
    return done, json.loads(done.out)


@pytest.fixture(scope="module")
def replayed(tmp_path_factory):
    """One bundle, replayed on the GPU; the answer, the report, the measured record."""
    bundle = packed(tmp_path_factory.mktemp("linear"), TRAIN)
    done, report = on_the_gpu(bundle)
    with open_bundle(bundle) as opened:
        content = [
            opened.read_unsealed(f"replays/{number}/record.json")
            for number in opened.replay_ids
        ]
    records = [msgspec.json.decode(one, type=Record) for one in content]
    (record,) = (one for one in records if one.pass_name == "measured")
    return done, report, record


def outcomes(report, name):
    return {
        one["outcome"]
        for judged in report["judgements"]
        for one in judged["findings"]
        if one["id"] == name
    }


def test_a_replay_on_the_gpu_of_a_mac_is_known_to_be_one(replayed):
    done, report, _ = replayed
    assert {judged["device"] for judged in report["judgements"]} == {"mps"}
    assert done.status in (0, 12), report["reasons"]
    assert outcomes(report, "cpu-fallback") == {"pass"}


def test_every_time_was_waited_for_and_the_clock_was_checked(replayed):
    _, report, record = replayed
    assert outcomes(report, "unsynchronised-timing") <= {"pass", "not-applicable"}
    (phase,) = (one for one in record.phases if one.name == "forward")
    assert (phase.synchronized, phase.synchronizations) == ("mps", 2 * phase.count)
    assert phase.unwaited_median_ns is not None
    assert phase.unwaited_median_ns <= phase.median_ns
    assert phase.unwaited_ratio is not None
    assert 0 < phase.unwaited_ratio <= 1


def test_the_facts_about_the_gpu_are_known(replayed):
    facts = replayed[2].environment
    for name in ("torch.mps.name", "torch.mps.core_count", "mps.graph_version"):
        assert facts[name].value, facts[name].unknown
    assert facts["torch.mps.missing"].unknown == "MPS is there"
    assert replayed[2].memory.peak_device_bytes.value


def test_a_missing_operator_stops_the_replay_and_is_named(tmp_path):
    bundle = packed(tmp_path, MODE)
    done, report = on_the_gpu(bundle)
    assert (done.status, report["verdict"]) == (11, "NOT RUN HERE")
    assert "aten::mode" in report["reasons"][0]
    done, report = on_the_gpu(bundle, "--fallback", "diagnose")
    assert "warn" in outcomes(report, "cpu-fallback")
    assert done.status != 0
