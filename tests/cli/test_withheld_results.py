"""Results that stay with their author: by digest only, or with a sample of the form."""

from __future__ import annotations

import json
import zipfile

import pytest

from tests.cli.conftest import reprobundle

# Three results, one of them personal; the table follows a variable that replays get.
SCRIPT = """\
import os
from pathlib import Path

import numpy as np

Path("out").mkdir(exist_ok=True)
share = os.environ.get("LC_SHARE", "1")
rows = "".join(f"p{i}@clinic.example,{share}.{i}\\n" for i in range(60))
Path("out/risk.csv").write_text("email,risk\\n" + rows)
np.save("out/scores.npy", np.linspace(0.25, 0.75, 99))
Path("open.json").write_text('{"patients": 60}')
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results") / "project"
    (folder / "out").mkdir(parents=True)
    (folder / "study.py").write_text(SCRIPT)
    (folder / "out/risk.csv").write_text("an older result\n")
    (folder.parent / "form.csv").write_text("email,risk\nnobody,0.5\n")
    return folder


def pack(project, name, *options):
    target = project.parent / name
    command = ("--", "python", "study.py")
    common = ("-o", target, "--seed", "7", "-q", *options, *command)
    return target, reprobundle("pack", *common, cwd=project)


@pytest.fixture(scope="module")
def packed(project):
    options = (
        "--hash-only",
        "out/scores.npy",
        "--stand-in",
        "out/risk.csv=../form.csv",
    )
    target, done = pack(project, "x.rpb.zip", *options)
    assert done.status == 0, done.err
    return target, done


def replay(bundle, name, **variables):
    target = bundle.parent / name
    options = ("--yes", "-q", "--record", target)
    return target, reprobundle("replay", bundle, *options, env=variables)


def outputs_of(archive, path):
    record = json.loads(archive.read(path))
    return record, {output["name"]: output for output in record["outputs"]}


def last_line(done):
    return done.out.strip().splitlines()[-1]


def test_no_run_of_the_bundle_holds_content_or_statistics(packed):
    with zipfile.ZipFile(packed[0]) as archive:
        names = archive.namelist()
        assert not any(b"p59@clinic" in archive.read(name) for name in names)
        for run in ("runs/1", "runs/2"):
            record, outputs = outputs_of(archive, f"{run}/record.json")
            for name in ("out/risk.csv", "out/scores.npy"):
                assert outputs[name]["stored"] == "withheld"
                assert outputs[name]["size_bytes"] > 0
                assert len(outputs[name]["blake3"]) == 64
                told = [outputs[name][key] for key in ("arrays", "rows", "member")]
                assert told == [[], None, ""]
            assert outputs["open.json"]["stored"] in ("here", "sealed")
            assert not any("risk" in one["name"] for one in record["members"])
    assert "runs/1/outputs/open.json" in names
    assert "stand-ins/out/risk.csv" in names


def test_the_older_result_in_the_project_is_no_input(packed):
    with zipfile.ZipFile(packed[0]) as archive:
        record, _ = outputs_of(archive, "runs/1/record.json")
        assert "project/out/risk.csv" not in archive.namelist()
    assert record["withheld"] == []
    assert "its content stays here" in packed[1].out


def test_the_same_bytes_are_compared_by_digest_and_the_replay_withholds_too(packed):
    target, done = replay(packed[0], "same.rpr.zip")
    assert last_line(done) == "VERDICT  REPRODUCED WITH WARNINGS (exit 12)", done.out
    words = " ".join(done.out.split())
    assert "out/risk.csv: byte for byte the same by digest" in words
    assert "output-withheld" in words
    with zipfile.ZipFile(target) as archive:
        names = archive.namelist()
        assert not any(b"p59@clinic" in archive.read(name) for name in names)
        (record,) = (name for name in names if name.endswith("record.json"))
        assert outputs_of(archive, record)[1]["out/risk.csv"]["stored"] == "withheld"


def test_other_bytes_are_not_checked_with_the_reason(packed):
    _, done = replay(packed[0], "other.rpr.zip", LC_SHARE="2")
    assert last_line(done) == "VERDICT  INCOMPLETE (exit 11)", done.out + done.err
    words = " ".join(done.out.split())
    assert (
        "output-not-compared (out/risk.csv): the bytes differ, and the author" in words
    )


def test_inspect_says_what_is_withheld(packed):
    done = reprobundle("inspect", packed[0])
    assert done.out.count("withheld") == 2


def test_the_message_about_personal_data_leads_to_a_call_that_works(project):
    target, refused = pack(project, "y.rpb.zip", "--hash-only", "out/scores.npy")
    assert refused.status == 20
    assert "outputs/out/risk.csv:1 column email" in refused.err
    assert not target.exists()
    options = ("--hash-only", "outputs/out/risk.csv", "--keep-summaries")
    target, done = pack(project, "y.rpb.zip", *options, "--passes", "measured")
    assert done.status == 0, done.err
    with zipfile.ZipFile(target) as archive:
        _, outputs = outputs_of(archive, "runs/1/record.json")
    assert outputs["out/risk.csv"]["rows"] == 60


def test_a_name_that_is_neither_file_nor_output_is_refused(project):
    options = (
        "--hash-only",
        "out/rusk.csv",
        "--allow-sensitive",
        "outputs/out/risk.csv",
    )
    target, done = pack(project, "z.rpb.zip", *options)
    assert done.status == 20
    assert "names no file of the project and no output of the run" in done.err
    assert "out/risk.csv" in done.err
    assert not target.exists()
