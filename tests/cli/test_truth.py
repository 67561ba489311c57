"""``pack --truth`` and ``--repeat``, as a user calls them."""

from __future__ import annotations

import json
import sys

import pytest

from reprobundle.format.canonical import decode
from reprobundle.format.reader import open_bundle
from reprobundle.format.record import Record
from tests.cli.conftest import reprobundle

pytestmark = pytest.mark.torch

# Asked for a device it sums in half precision, as a worse machine would.
SCRIPT = """\
import os
import numpy as np
import torch

torch.manual_seed(1)
values = torch.rand(5000)
if os.environ.get("REPROBUNDLE_DEVICE") == "cpu":
    values = values.half().float()
np.save("sums.npy", values.cumsum(0).numpy())
"""


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("truth")
    project = folder / "project"
    project.mkdir()
    (project / "run.py").write_text(SCRIPT)
    bundle = folder / "x.rpb.zip"
    done = reprobundle(
        *("pack", "-q", "-o", bundle, "--passes", "measured,repeat", "--repeat", "2"),
        *("--truth", "--", sys.executable, "run.py"),
        cwd=project,
    )
    assert done.status == 0, done.err
    return bundle, done


@pytest.fixture(scope="module")
def judged(packed, tmp_path_factory):
    bundle, _ = packed
    done = reprobundle(
        *("replay", bundle, "--yes", "-q", "--passes", "measured"),
        *("--device", "cpu", "--repeat", "2"),
    )
    assert done.status == 10, done.err
    return bundle


def record(bundle, number):
    with open_bundle(bundle) as opened:
        data = opened.read(f"runs/{number}/record.json")
    return decode(data, Record, where="record", rule="test")


def test_pack_says_that_the_truth_is_whole(packed):
    _, done = packed
    assert "operators ran in float64, none in less" in done.out
    assert "1 of 1 output bit-identical in 2 repeat passes" in done.out


def test_the_runs_are_the_reference_two_repeats_and_the_truth(packed):
    bundle, _ = packed
    roles = [record(bundle, number).role for number in range(1, 5)]
    assert roles == ["reference", "repeat", "repeat", "truth"]
    truth = record(bundle, 4)
    assert truth.outputs[0].arrays[0].dtype == "float64"
    assert truth.promotion.left == ()


def test_an_equal_output_of_a_repeat_is_not_stored_again(packed):
    bundle, _ = packed
    with open_bundle(bundle) as opened:
        stored = [path for path in opened.members if path.endswith("sums.npy")]
    assert stored == ["runs/1/outputs/sums.npy", "runs/4/outputs/sums.npy"]


def test_a_replay_can_run_the_command_several_times(judged):
    report = json.loads(reprobundle("verify", "--json", judged).out)
    passes = [(one["pass_name"], one["occasion"]) for one in report["judgements"]]
    assert len(passes) == 2
    assert len(set(passes)) == 1
    done = reprobundle("policy", "suggest", judged)
    # The reference, two repeats, two replays.
    assert "5 runs" in done.out + done.err


def test_repeats_without_the_repeat_pass_are_refused(tmp_path):
    done = reprobundle(
        *("pack", "--passes", "measured", "--repeat", "3", "--", sys.executable, "-V"),
        cwd=tmp_path,
    )
    assert done.status == 20
    assert "--repeat 3 asks for passes that --passes leaves out" in done.err


def test_a_replay_makes_no_truth(packed):
    bundle, _ = packed
    done = reprobundle("replay", bundle, "--yes", "--passes", "measured,truth")
    assert done.status == 20
    assert "unknown pass 'truth'" in done.err


def test_every_format_names_the_same_side(judged, tmp_path):
    report = json.loads(reprobundle("verify", "--json", judged).out)
    (truth,) = report["judgements"][0]["truths"]
    assert [truth] == report["judgements"][1]["truths"]
    assert (truth["name"], truth["worse"]) == ("sums.npy", "replay")
    assert truth["replay_error"] > 10 * truth["reference_error"]
    terminal = reprobundle("verify", judged).out
    assert "which side is worse" in terminal
    line, _ = [
        line
        for line in terminal.splitlines()
        if "sums.npy" in line and line.rstrip().endswith("replay")
    ]
    figure = line.split()[-2]
    assert float(figure) == pytest.approx(truth["replay_error"], rel=1e-3)
    for kind, ending in (("markdown", "| replay |"), ("html", "<td>replay</td>")):
        target = tmp_path / f"report.{kind}"
        done = reprobundle("report", judged, "--format", kind, "-o", target)
        assert done.status == 10, done.err
        text = target.read_text()
        assert figure in text
        assert ending in text
