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
