"""On a Mac: pack on the CPU, replay on its GPU, and know that it was the GPU."""

import json
import os
import shutil
from pathlib import Path

import pytest

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
for _ in range(5):
    x = torch.randn(32, 16).to(device)
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
json.dump(losses, open("losses.json", "w"))
"""


@pytest.mark.mps
def test_a_replay_on_the_gpu_of_a_mac_is_known_to_be_one(tmp_path):
    torch = pytest.importorskip("torch")
    if not torch.backends.mps.is_available():
        pytest.skip("there is no Apple GPU here")
    (tmp_path / "train.py").write_text(TRAIN)
    bundle = tmp_path / "linear.rpb.zip"
    done = reprobundle(
        *("pack", "-o", bundle, "--seed", "0", "--device", "cpu", "-q"),
        *("--", "python", "train.py", "{device}"),
        cwd=tmp_path,
    )
    assert done.status == 0, done.err
    done = reprobundle("replay", bundle, "--device", "mps", "--yes", "-q", "--json")
    kept = os.environ.get("REPROBUNDLE_BUNDLES")
    if kept:
        Path(kept).mkdir(parents=True, exist_ok=True)
        shutil.copy(bundle, kept)
    report = json.loads(done.out)
    assert {judged["device"] for judged in report["judgements"]} == {"mps"}
    assert done.status in (0, 12), report["reasons"]
    fallback = [
        one["outcome"]
        for judged in report["judgements"]
        for one in judged["findings"]
        if one["id"] == "cpu-fallback"
    ]
    assert set(fallback) == {"pass"}
