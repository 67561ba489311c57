"""Pack, verify, replay, verify, as a user types them."""

from __future__ import annotations

import json
import shlex

import pytest

from reprobundle.format.reader import open_bundle
from tests.cli.conftest import reprobundle


def last_line(text):
    return text.strip().splitlines()[-1]


def test_a_bundle_nobody_replayed_is_intact_and_not_reproduced(packed):
    done = reprobundle("verify", packed)
    assert done.status == 11
    assert last_line(done.out) == "VERDICT  INTACT, NOT YET REPLAYED (exit 11)"


def test_integrity_alone_answers_zero(packed):
    done = reprobundle("verify", "--integrity", packed)
    assert done.status == 0
    assert last_line(done.out).startswith("VERDICT  INTACT")


def test_a_replay_on_the_same_machine_is_bit_identical(replayed):
    done = reprobundle("verify", replayed)
    assert done.status == 0, done.out
    assert last_line(done.out) == "VERDICT  REPRODUCED, bit-identical (exit 0)"


def test_attaching_a_replay_keeps_the_bundle_id(packed, replayed):
    before = json.loads(reprobundle("verify", "--json", packed).out)
    after = json.loads(reprobundle("verify", "--json", replayed).out)
    assert before["bundle"] == after["bundle"]
    assert len(after["judgements"]) == 1


def test_every_output_was_compared(replayed):
    report = json.loads(reprobundle("verify", "--json", replayed).out)
    compared = {
        output["name"]: output["result"]
        for output in report["judgements"][0]["outputs"]
    }
    assert compared == {
        "out/curve.csv": "bit-identical",
        "out/metrics.json": "bit-identical",
    }


def test_packing_twice_gives_one_set_of_members_but_for_the_run(project, tmp_path):
    found = []
    for number in (1, 2):
        target = tmp_path / f"{number}.rpb.zip"
        done = reprobundle(
            "pack",
            "-o",
            target,
            "--seed",
            "7",
            "-q",
            "--",
            "python",
            "train.py",
            cwd=project,
            online=True,
        )
        assert done.status == 0, done.err
        with open_bundle(target) as opened:
            found.append({path: m.blake3 for path, m in opened.members.items()})
    first, second = found
    assert first.keys() == second.keys()
    differing = {path for path in first if first[path] != second[path]}
    assert all(path.startswith("runs/") or path == "B3SUMS" for path in differing)
    assert "runs/1/outputs/out/metrics.json" not in differing


def test_the_project_itself_is_not_touched(project, tmp_path):
    before = {p: p.read_bytes() for p in project.rglob("*") if p.is_file()}
    reprobundle(
        "pack",
        "-o",
        tmp_path / "x.rpb.zip",
        "-q",
        "--",
        "python",
        "train.py",
        cwd=project,
        online=True,
    )
    assert {p: p.read_bytes() for p in project.rglob("*") if p.is_file()} == before


def test_an_unseeded_run_is_not_repeatable_and_says_so(project, tmp_path):
    target = tmp_path / "x.rpb.zip"
    done = reprobundle(
        "pack", "-o", target, "-q", "--", "python", "train.py", cwd=project
    )
    assert done.status == 0
    assert "NOT REPEATABLE" in done.out


def test_extract_gives_back_what_was_packed(packed, project, tmp_path):
    done = reprobundle("extract", packed, "--into", tmp_path / "x")
    assert done.status == 0, done.err
    for name in ("train.py", "model.py"):
        assert (tmp_path / "x/project" / name).read_bytes() == (
            project / name
        ).read_bytes()
    assert (tmp_path / "x/inputs/data/points.csv").read_text() == "x\n1.5\n2.5\n3.5\n"


def test_extract_never_overwrites(packed, tmp_path):
    (tmp_path / "x").mkdir()
    (tmp_path / "x/README.txt").write_text("mine")
    done = reprobundle("extract", packed, "--into", tmp_path / "x")
    assert done.status == 20
    assert (tmp_path / "x/README.txt").read_text() == "mine"


def test_cat_prints_one_member(packed):
    done = reprobundle("cat", packed, "inputs/data/points.csv")
    assert (done.status, done.out) == (0, "x\n1.5\n2.5\n3.5\n")


def test_a_record_that_travels_alone_is_judged_and_attached(bundle, tmp_path):
    record = tmp_path / "points.rpr.zip"
    original = bundle.read_bytes()
    done = reprobundle("replay", bundle, "--yes", "-q", "--record", record)
    assert done.status == 0, done.out + done.err
    assert bundle.read_bytes() == original
    judged = reprobundle("verify", bundle, "--replay-file", record)
    assert judged.status == 0, judged.out
    attached = reprobundle("attach", bundle, record)
    assert attached.status == 0, attached.err
    assert reprobundle("verify", bundle).status == 0


def test_a_replay_without_consent_runs_nothing(bundle):
    before = bundle.read_bytes()
    done = reprobundle("replay", bundle)
    assert done.status == 20
    assert "--yes" in done.err
    assert bundle.read_bytes() == before


def test_a_changed_script_is_not_reproduced(packed, project, tmp_path):
    # The forger repacks with an edited script: the id differs, and so does the result.
    (project / "model.py").write_text("def fit(rows):\n    return sum(rows)\n")
    target = tmp_path / "forged.rpb.zip"
    reprobundle(
        "pack",
        "-o",
        target,
        "--seed",
        "7",
        "-q",
        "--",
        "python",
        "train.py",
        cwd=project,
    )
    identifier = json.loads(reprobundle("verify", "--json", packed).out)["bundle"]
    done = reprobundle("verify", target, "--expect-id", identifier)
    assert done.status == 21
    assert "TAMPERED" in done.out


SENSITIVE = """\
import json, os
from pathlib import Path

import numpy as np

scale = 1.0 + 0.01 * (os.environ["LANG"] != "C.UTF-8")
Path("out").mkdir(exist_ok=True)
np.save("out/x.npy", np.linspace(0, 1, 1000, dtype=np.float32) * np.float32(scale))
json.dump({"scale": scale}, open("out/metrics.json", "w"))
"""


@pytest.fixture
def sensitive(tmp_path):
    """A bundle whose result depends on the machine's language setting."""
    project = tmp_path / "sensitive"
    project.mkdir()
    (project / "train.py").write_text(SENSITIVE)
    target = tmp_path / "sensitive.rpb.zip"
    done = reprobundle(
        "pack",
        "-o",
        target,
        "-q",
        "--passes",
        "measured",
        "--",
        "python",
        "train.py",
        cwd=project,
        env={"LANG": "C.UTF-8"},
    )
    assert done.status == 0, done.err
    return target


def test_a_replay_that_gives_other_numbers_is_not_reproduced(sensitive):
    done = reprobundle("replay", sensitive, "--yes", "-q", env={"LANG": "de_DE.UTF-8"})
    assert done.status == 10, done.out + done.err
    assert last_line(done.out) == "VERDICT  NOT REPRODUCED (exit 10)"
    assert "out/x.npy" in done.out
    report = json.loads(reprobundle("verify", "--json", sensitive).out)
    (judgement,) = report["judgements"]
    parts = {output["name"]: output for output in judgement["outputs"]}
    array = parts["out/x.npy"]["parts"][0]
    assert array["outside"] == 999
    assert abs(float(array["max_rel"]) - 0.01) < 1e-4


def test_the_same_bundle_replayed_alike_is_bit_identical(sensitive):
    done = reprobundle("replay", sensitive, "--yes", "-q", env={"LANG": "C.UTF-8"})
    assert "bit-identical" in done.out


def test_the_next_command_can_be_pasted(project):
    target = project.parent / "my result; it's.rpb.zip"
    done = reprobundle(
        *("pack", "-o", target, "--passes", "measured", "--", "python", "train.py"),
        cwd=project,
    )
    assert done.status == 0, done.err
    (line,) = [one for one in done.out.splitlines() if one.startswith("next")]
    assert shlex.split(line)[1:] == ["reprobundle", "verify", str(target)]
