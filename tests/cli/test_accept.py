"""``accept`` assesses a bundle, keeps a record, and asks this machine."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.cli.conftest import reprobundle

# Not accepted where packing and replaying found other packages, else not decided.
OPEN = (10, 11)
SAID = ("--by", "A. Tester", "--where", "lab 1")


@pytest.fixture(scope="module")
def accepted(replayed, tmp_path_factory):
    """Return a bundle with an attached acceptance record; not to be changed."""
    folder = tmp_path_factory.mktemp("accepted")
    target = folder / "points.rpb.zip"
    shutil.copy(replayed, target)
    scanned = folder / "scan.json"
    scanned.write_text(reprobundle("scan", target, "--json").out)
    done = reprobundle(
        *("accept", target, *SAID, "--as", "evaluator", "--second-person", "B. Second"),
        *("--scan", scanned, "--attach"),
    )
    assert done.status in OPEN, done.err
    assert "attached acceptance record" in done.err
    assert "recommended" in done.out
    return target


def test_without_a_statement_it_only_shows(replayed):
    before = replayed.read_bytes()
    done = reprobundle("accept", replayed)
    assert done.status in OPEN
    said = " ".join(done.out.split())
    words = {10: "NOT ACCEPTED", 11: "NOT DECIDED"}[done.status]
    assert f"{words}, verdict REPRODUCED, bit-identical (exit 0)" in said
    assert "✔ The model loads without a change of path or code." in done.out
    assert "undecided (rule evidence-missing)" in done.out
    assert replayed.read_bytes() == before


def test_an_attached_record_is_shown_and_changes_no_id(accepted, replayed):
    report = json.loads(reprobundle("verify", accepted, "--json").out)
    before = json.loads(reprobundle("verify", replayed, "--json").out)
    (one,) = report["acceptances"]
    assert (one["by"], one["where"], one["role"]) == ("A. Tester", "lab 1", "evaluator")
    assert (one["second_person"], one["state"]) == ("B. Second", "holds")
    assert report["bundle"] == before["bundle"]
    assert (report["verdict"], report["exit_status"]) == (
        before["verdict"],
        before["exit_status"],
    )
    assert report["assessment"] is None
    shown = reprobundle("verify", accepted, "--acceptance").out
    assert "HOLDS" in shown
    assert "Acceptance objects:" in shown


def test_the_scan_is_kept_in_the_record_and_used_again(accepted):
    shown = json.loads(reprobundle("verify", accepted, "--acceptance", "--json").out)
    answers = shown["assessment"]["recommendation"]["answers"]
    assert {one["rule"]: one["answer"] for one in answers}["needs-cuda"] == "no"


def test_a_record_travels_alone(accepted, replayed, tmp_path):
    bundle, record = tmp_path / "points.rpb.zip", tmp_path / "accepted.json"
    shutil.copy(replayed, bundle)
    done = reprobundle("accept", bundle, *SAID, "-o", record, "--json")
    assert done.status in OPEN, done.err
    assert json.loads(done.out)["by"] == "A. Tester"
    assert done.out.encode() == record.read_bytes()
    attached = reprobundle("attach", bundle, record)
    assert attached.status == 0, attached.err
    identifier = attached.out.split()[-1]
    assert identifier[:12] in reprobundle("inspect", bundle).out
    assert reprobundle("detach", bundle, identifier).status == 0
    assert bundle.read_bytes() == replayed.read_bytes()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--attach",), "give --by and --where"),
        (("--by", "A"), "add --attach or -o"),
        ((*SAID, "--attach", "--scan", "{json}"), "is about no bundle"),
        (("--check",), "no sound acceptance record"),
    ],
)
def test_a_bad_call_says_what_to_do(bundle, tmp_path, arguments, words):
    report = tmp_path / "scan.json"
    (tmp_path / "code").mkdir()
    (tmp_path / "code/a.py").write_text("import torch\n")
    report.write_text(reprobundle("scan", tmp_path / "code", "--json").out)
    given = [str(one).replace("{json}", str(report)) for one in arguments]
    done = reprobundle("accept", bundle, *given)
    assert done.status == 20
    assert words in done.err
    assert "Traceback" not in done.err


def test_a_record_of_another_bundle_is_not_attached(accepted, project, tmp_path):
    record = tmp_path / "accepted.json"
    reprobundle("accept", accepted, *SAID, "-o", record)
    other = tmp_path / "other.rpb.zip"
    packed = reprobundle(
        *("pack", "-o", other, "-q", "--seed", "8", "--", "python", "train.py"),
        cwd=project,
    )
    assert packed.status == 0, packed.err
    done = reprobundle("attach", other, record)
    assert done.status == 20
    assert "is of bundle" in done.err


def test_what_is_no_acceptance_record_is_not_attached(bundle, tmp_path):
    record = tmp_path / "accepted.json"
    record.write_text('{"bundle": ""}\n')
    before = bundle.read_bytes()
    done = reprobundle("attach", bundle, record)
    assert done.status == 21
    assert bundle.read_bytes() == before


def test_an_altered_bundle_is_not_assessed(accepted, tmp_path):
    bundle = tmp_path / "points.rpb.zip"
    data = bytearray(accepted.read_bytes())
    data[data.index(b"import csv")] ^= 1
    bundle.write_bytes(data)
    done = reprobundle("accept", bundle, *SAID, "--attach")
    assert done.status == 21
    assert "not assessed: TAMPERED" in done.err
    assert bundle.read_bytes() == bytes(data)


def test_this_machine_is_asked_whether_it_holds(accepted, tmp_path):
    done = reprobundle("accept", accepted, "--check", "--json")
    answer = json.loads(done.out)
    # The command of this bundle loads no torch, so no version of it decides.
    assert (answer["state"], answer["reasons"]) == ("holds", []), done.err
    assert done.status == 0
    newer = tmp_path / "points.rpb.zip"
    shutil.copy(accepted, newer)
    again = reprobundle("replay", newer, "--yes", "-q", "--passes", "measured")
    assert again.status == 0, again.err
    assert "HOLDS" in reprobundle("verify", newer).out
