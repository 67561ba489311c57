"""``--restart-check``: stop after a checkpoint, resume, compare the results."""

from __future__ import annotations

import json
import shutil
import sys

import pytest

from reprobundle.format.canonical import decode
from reprobundle.format.reader import open_bundle
from reprobundle.format.record import Record
from tests.cli.conftest import reprobundle

pytestmark = pytest.mark.torch

# One argument plants a fault into the resume.
SCRIPT = """\
import os, pathlib, sys
import torch
import reprobundle

FAULT = sys.argv[1]
STATE = pathlib.Path("out") / "state.pt"
STATE.parent.mkdir(exist_ok=True)
torch.manual_seed(3)
data = torch.utils.data.TensorDataset(torch.randn(24, 4))
loader = torch.utils.data.DataLoader(data, batch_size=4, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
epoch = 0
if STATE.exists() and FAULT != "anew":
    state = torch.load(STATE, weights_only=True)
    epoch = state["epoch"]
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    if FAULT != "shuffle":
        torch.set_rng_state(state["generator"])
while epoch < 3:
    for (batch,) in loader:
        optimizer.zero_grad()
        loss = (model(batch) - batch.sum(1, keepdim=True)).square().mean()
        loss.backward()
        optimizer.step()
    epoch += 1
    reprobundle.record("loss", loss.item())
    if epoch == 2 and FAULT != "unsaved":
        state = {
            "epoch": epoch,
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "generator": torch.get_rng_state(),
        }
        torch.save(state, STATE.with_suffix(".part"))
        os.replace(STATE.with_suffix(".part"), STATE)
torch.save(model.state_dict(), "model.pt")
"""


def pack(folder, fault, *options):
    project = folder / "project"
    project.mkdir()
    (project / "train.py").write_text(SCRIPT)
    target = folder / "x.rpb.zip"
    done = reprobundle(
        *("pack", "-q", "-o", target, "--passes", "measured", "--restart-check"),
        *(*options, "--", sys.executable, "train.py", fault),
        cwd=project,
    )
    return target, done


def restart_of(bundle):
    with open_bundle(bundle) as opened:
        data = opened.read("runs/2/record.json")
    return decode(data, Record, where="record", rule="test")


def findings(bundle, *arguments):
    done = reprobundle("verify", "--json", bundle, *arguments)
    return [
        (one["id"], one["outcome"], one["reason"])
        for one in json.loads(done.out)["findings"]
        if one["check"] == "V22"
    ]


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    bundle, done = pack(tmp_path_factory.mktemp("good"), "none")
    assert done.status == 0, done.err
    words = " ".join(done.out.split())
    assert "restart agrees with the straight run: 3 outputs bit-identical" in words
    return bundle


@pytest.fixture(scope="module")
def forgetful(tmp_path_factory):
    bundle, done = pack(tmp_path_factory.mktemp("forgetful"), "shuffle")
    assert done.status == 0, done.err
    words = " ".join(done.out.split())
    assert "restart DIFFERS from the straight run in " in words
    return bundle


def test_the_record_says_what_was_stopped_and_resumed(good):
    record = restart_of(good)
    assert (record.role, record.pass_name) == ("restart", "restart")
    assert record.restart.checkpoint == "out/state.part"
    # Two epochs of six steps, the checkpoint, one step more; one epoch was left.
    assert (record.restart.steps_before, record.restart.steps_after) == (13, 6)


def test_a_correct_resume_passes_bit_for_bit(good):
    asked, differs = findings(good)
    assert asked[:2] == ("restart-asked", "pass")
    assert differs[:2] == ("restart-differs", "pass")
    # The model, the state, and the last of the three recorded losses.
    assert "3 outputs bit-identical" in differs[2]


def test_a_resume_that_forgets_the_shuffle_order_is_found(forgetful):
    found = [one for one in findings(forgetful) if one[0] == "restart-differs"]
    assert {outcome for _, outcome, _ in found} == {"warn"}
    assert "stopped and resumed, it comes out otherwise" in found[0][2]


def test_a_replayed_restart_that_differs_is_not_reproduced(forgetful, tmp_path):
    bundle = shutil.copy(forgetful, tmp_path / "x.rpb.zip")
    done = reprobundle(
        *("replay", bundle, "--yes", "-q", "--passes", "measured", "--restart-check")
    )
    assert done.status == 10, done.out
    assert "restart-differs" in done.out


@pytest.mark.slow
def test_a_replayed_restart_that_agrees_is_reproduced(good, tmp_path):
    bundle = shutil.copy(good, tmp_path / "x.rpb.zip")
    done = reprobundle(
        *("replay", bundle, "--yes", "-q", "--passes", "measured", "--restart-check")
    )
    assert "NOT REPRODUCED" not in done.out
    assert done.status == 0, done.out
    passed = [one for one in findings(bundle) if one[:2] == ("restart-differs", "pass")]
    assert len(passed) == 2


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("unsaved", "there is no place to stop it"),
        ("anew", "the second process did not read the checkpoint"),
    ],
)
def test_a_check_that_would_show_nothing_is_refused(tmp_path, fault, reason):
    bundle, done = pack(tmp_path, fault)
    assert done.status == 20
    assert reason in done.err
    assert not bundle.exists()


def test_a_bundle_whose_restart_nobody_checked_says_so(packed):
    ((name, outcome, _),) = findings(packed)
    assert (name, outcome) == ("restart-asked", "not-applicable")
