"""`pack --rng recorded`: which pass takes the kept draws, and which must not."""

import json
import sys

import pytest

from reprobundle.format.reader import open_bundle
from tests.cli.conftest import reprobundle

pytestmark = pytest.mark.torch

SCRIPT = """\
import json, torch
torch.manual_seed(0)
json.dump(torch.randn(5).tolist(), open("drawn.json", "w"))
"""


def test_the_repeat_pass_draws_by_itself(tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text(SCRIPT)
    bundle = tmp_path / "draws.rpb.zip"
    passes = ("--passes", "measured,repeat,evidence")
    done = reprobundle(
        *("pack", "-o", bundle, "-q", "--rng", "recorded", *passes),
        *("--", sys.executable, "train.py"),
        cwd=project,
    )
    assert done.status == 0, done.err
    with open_bundle(bundle) as opened:
        records = [
            json.loads(opened.read(f"runs/{number}/record.json"))
            for number in (1, 2, 3)
        ]
    drawn = {one["pass_name"]: one["randomness"]["drawn"] for one in records}
    assert {name: one.get("mode") for name, one in drawn.items()} == {
        "measured": "recorded",
        "repeat": "portable",
        "evidence": "recorded",
    }
    assert drawn["repeat"].get("taken", 0) == 0 < drawn["evidence"]["taken"]
    outputs = [one["outputs"][0]["blake3"] for one in records]
    assert len(set(outputs)) == 1
