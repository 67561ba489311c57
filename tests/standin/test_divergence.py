"""Runs on two kinds of device, whose operators differ, are laid side by side."""

import json

import pytest

from reprobundle.format.reader import open_bundle

SCRIPT = """\
import json, sys
import torch

device = sys.argv[1]
torch.manual_seed(0)
# Attention is one fused operator on the CPU and several on the device.
model = torch.nn.Sequential(
    torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True),
    torch.nn.Linear(8, 2),
).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for step in range(3):
    if device == "mps" and step == 1:
        with torch.no_grad():
            model[1].weight.mul_(1.001)
    loss = 100 * model(torch.randn(8, 5, 8).to(device)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
json.dump(losses, open("losses.json", "w"))
"""


@pytest.fixture(scope="module")
def judged(standin, tmp_path_factory):
    """Pack on the CPU, replay on the device, where one layer is off by 0.1 %."""
    folder = tmp_path_factory.mktemp("divergence")
    (folder / "project").mkdir()
    (folder / "project/train.py").write_text(SCRIPT)
    bundle = folder / "case.rpb.zip"
    packed = standin.call(
        *("pack", "--offline", "-o", bundle, "-q", "--passes", "measured,evidence"),
        *("--device", "cpu", "--", "python", "train.py", "{device}"),
        cwd=folder / "project",
        plain=True,
    )
    assert packed.status == 0, packed.err
    done = standin.call(
        *("replay", bundle, "--env", standin.python, "--yes", "-q", "--json"),
        *("--device", "mps"),
    )
    assert done.out, done.err
    return done, bundle


def operators(bundle, member, read):
    lines = read(member).splitlines()[1:]
    entries = [json.loads(line) for line in lines]
    return [e["operator"] for e in entries if e["operator"]]


def test_the_operators_of_the_two_devices_differ(judged):
    _, bundle = judged
    with open_bundle(bundle) as opened:
        here = operators(bundle, "runs/2/fingerprints.jsonl", opened.read)
        (there,) = [
            operators(bundle, f"replays/{one}/fingerprints.jsonl", opened.read_unsealed)
            for one in opened.replay_ids
            if f"replays/{one}/fingerprints.jsonl" in opened.replay_entries(one)
        ]
    assert here != there
    assert here
    assert there


def test_a_fault_in_one_layer_is_found_there_on_another_device(judged):
    done, _ = judged
    (found,) = [
        one
        for judgement in done.report["judgements"]
        for one in judgement["findings"]
        if one["id"] == "first-divergence" and one["outcome"] == "fail"
    ]
    assert found["where"].startswith("step 1, ")
    assert " 0.1, " in found["where"]
    assert "its inputs agreed" in found["reason"]
