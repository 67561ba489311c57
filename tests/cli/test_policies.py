"""Policies on the command line: the verifier's own, a suggested one, one change."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import reprobundle

# Writes a number that a variable of the numeric libraries changes, and a device that
# was asked for. The variable must not be set where it is packed, or it would belong to
# the command.
SCRIPT = """\
import json, os
usual = "1" if os.environ.get("REPROBUNDLE_DEVICE") == "cpu" else "4"
threads = int(os.environ.get("OPENBLAS_NUM_THREADS", usual))
json.dump({"loss": 0.5 + threads * 1e-4}, open("loss.json", "w"))
"""
NUMBER = {"dtype": "number", "devices": "same", "source": "habit"}
WIDE = {**NUMBER, "tolerance": {"rtol": 0.1, "atol": 0.0}}
SIGNED = {"author": "V. Erifier", "reason": "our habit"}


@pytest.fixture(scope="module")
def replayed(tmp_path_factory):
    """A bundle, replayed so that its number is another one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("OPENBLAS_NUM_THREADS", raising=False)
        folder = tmp_path_factory.mktemp("policies")
        project = folder / "project"
        project.mkdir()
        (project / "run.py").write_text(SCRIPT)
        target = folder / "x.rpb.zip"
        packing = ("pack", "-o", target, "-q", "--", "python", "run.py")
        packed = reprobundle(*packing, cwd=project)
        assert packed.status == 0, packed.err
        options = ("--device", "cpu", "--passes", "measured")
        done = reprobundle("replay", target, "--yes", "-q", *options)
        assert done.status == 10, done.out + done.err
    return target


def written(folder, **fields):
    path = folder / "mine.json"
    path.write_text(json.dumps(fields))
    return path


def test_a_setting_reaches_the_run_and_its_record(replayed, tmp_path):
    setting = ("--set", "OPENBLAS_NUM_THREADS=1", "--passes", "measured")
    alone = ("--record", tmp_path / "mine.rpr.zip", "--json")
    done = reprobundle("replay", replayed, "--yes", "-q", *setting, *alone)
    (judgement,) = json.loads(done.out)["judgements"]
    facts = {one["name"]: one for one in judgement["environment"]}
    threads = facts["env.OPENBLAS_NUM_THREADS"]
    assert (threads["reference"], threads["replay"]) == ("(unset)", "1")
    assert "same-command" not in " ".join(judgement["reasons"])
    first = judgement["causes"][0]
    assert first["id"] == "asked-otherwise"
    assert first["command"] == "reprobundle replay x.rpb.zip"


def test_a_setting_that_changes_no_numbers_is_refused(replayed):
    done = reprobundle("replay", replayed, "--yes", "--set", "PATH=/tmp")
    assert done.status == 20
    assert "--set takes NAME=VALUE of a switch or a library" in done.err


def test_a_looser_policy_is_shown_and_changes_no_exit_status(replayed, tmp_path):
    mine = written(tmp_path, tolerances=[WIDE], **SIGNED)
    done = reprobundle("verify", replayed, "--policy", mine)
    assert done.status == 10
    assert "NOT REPRODUCED (exit 10)" in done.out.splitlines()[-1]
    text = " ".join(done.out.split())
    assert "under mine.json by V. Erifier: REPRODUCED" in text
    assert "looser: number, same devices: rtol 0.1 instead of" in text


def test_an_unsigned_policy_is_refused(replayed, tmp_path):
    mine = written(tmp_path, tolerances=[WIDE])
    done = reprobundle("verify", replayed, "--policy", mine)
    assert done.status == 20
    assert 'add "author" and "reason"' in done.err


def test_a_suggested_policy_must_be_signed_before_it_is_used(replayed, tmp_path):
    target = tmp_path / "policy.json"
    done = reprobundle("policy", "suggest", replayed, "-o", target)
    assert done.status == 0, done.err
    fields = json.loads(target.read_text())
    assert fields["tolerances"][0]["dtype"] == "number"
    assert fields["tolerances"][0]["tolerance"]["rtol"] == pytest.approx(3e-3, rel=1e-2)
    refused = reprobundle("verify", replayed, "--policy", target)
    assert refused.status == 20
    target.write_text(json.dumps({**fields, "author": "A"}))
    signed = reprobundle("verify", replayed, "--policy", target)
    assert "REPRODUCED" in signed.out


def test_claims_are_chosen_by_name(replayed):
    done = reprobundle("replay", replayed, "--yes", "--claims", "table2")
    assert done.status == 20
    assert "no claim 'table2'" in done.err
    both = reprobundle("replay", replayed, "--smoke", "--claims", "main")
    assert both.status == 20


ENDS = """\
import os, random, sys
base = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
shift = 1.0 if os.environ.get("REPROBUNDLE_DEVICE") == "cpu" else 0.0
end = base + shift + random.random() * 1e-3
open("loss.csv", "w").write(f"step,loss\\n1,{base}\\n2,{end!r}\\n")
"""
LONG = {
    "name": "long",
    "statement": "It ends at two",
    "command": ["python", "run.py", "2"],
    "ends": [{"metric": "loss.csv#loss"}],
}
CHAOTIC = {"match": "loss.csv", "rows": 1, "reason": "chaotic from row 1 on"}


@pytest.fixture(scope="module")
def repeated(tmp_path_factory):
    """A bundle whose further claim has an end test, made of four runs of each."""
    folder = tmp_path_factory.mktemp("ends")
    (folder / "run.py").write_text(ENDS)
    fields = {"claims": [LONG], "outputs": [CHAOTIC], **SIGNED}
    policy = written(folder, **fields)
    target = folder / "ends.rpb.zip"
    done = reprobundle(
        *("pack", "-o", target, "--repeat", "3", "--policy", policy.name),
        *("--", "python", "run.py"),
        cwd=folder,
    )
    assert done.status == 0, done.err
    assert "repeat pass 3 of 3 of claim 'long'" in done.err
    return target


def test_a_claim_that_its_own_run_does_not_meet_is_told_when_it_is_packed(tmp_path):
    (tmp_path / "run.py").write_text(ENDS)
    bands = [
        {"metric": "loss.csv#loss", "most": 0.5},
        {"metric": "loss.csv#accuracy", "least": 0.5},
        {"metric": "loss.csv#step", "least": 1},
    ]
    policy = written(tmp_path, claims=[{"name": "main", "bands": bands}])
    call = ("pack", "-o", tmp_path / "x.rpb.zip", "--passes", "measured", "--policy")
    done = reprobundle(*call, policy.name, "--", "python", "run.py", cwd=tmp_path)
    assert done.status == 0, done.err
    told = [line for line in done.out.splitlines() if line.startswith("claim ")]
    assert "loss.csv#loss is 1.000" in told[0]
    assert "lies outside its own band" in " ".join(done.out.split())
    assert "the run holds no number loss.csv#accuracy: its outputs are loss.csv" in (
        " ".join(done.out.split())
    )
    assert "loss.csv#step" not in done.out


@pytest.mark.parametrize(
    ("options", "result", "status"),
    [((), "same", 11), (("--device", "cpu"), "other", 10)],
)
def test_a_further_claim_is_repeated_and_its_end_judged(
    repeated, tmp_path, options, result, status
):
    runs = ("--claims", "long", "--repeat", "4", "--passes", "measured")

    def replayed(name):
        alone = ("--record", tmp_path / name, "--json")
        done = reprobundle("replay", repeated, "--yes", "-q", *runs, *options, *alone)
        report = json.loads(done.out)
        claims = {one["name"]: one for one in report["claims"]}
        (end,) = claims["long"]["ends"]
        return report, claims["main"], end

    report, main, end = replayed("mine.rpr.zip")
    if end["result"] != result:
        # By chance four runs lie apart from four others once in 35 times; not twice.
        report, main, end = replayed("again.rpr.zip")
    assert (end["reference_runs"], end["replay_runs"]) == (4, 4)
    assert end["result"] == result
    assert main["result"] == "NOT RUN"
    assert report["exit_status"] == status


def test_a_policy_is_suggested_from_the_repeats_of_every_claim(repeated):
    done = reprobundle("policy", "suggest", repeated)
    fields = json.loads(done.out)
    assert fields["reason"] == "derived from 8 runs in ends.rpb.zip"
