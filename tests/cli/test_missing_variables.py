"""A variable of the author's that a result hangs on is told before a replay of it."""

from __future__ import annotations

import json

from tests.cli.conftest import reprobundle

SCRIPT = """\
import json, os
json.dump({"plant": len(os.environ.get("PLANT", ""))}, open("plant.json", "w"))
"""


def test_pack_and_verify_name_a_variable_that_a_replay_will_not_have(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    pack = ("pack", "-o", "p.rpb.zip", "--seed", "1", "--passes", "measured")
    secret = {"PLANT": "rose-hip-and-hawthorn"}
    done = reprobundle(*pack, "--", "python", "train.py", cwd=tmp_path, env=secret)
    assert done.status == 0, done.err
    words = " ".join(done.out.split())
    place = "variable-not-in-bundle {project}/train.py:2: "
    assert f"{place}the command read PLANT" in words
    judged = reprobundle("verify", "p.rpb.zip", cwd=tmp_path)
    assert "the command read PLANT" in " ".join(judged.out.split())
    told = reprobundle("verify", "p.rpb.zip", "--json", cwd=tmp_path).out
    assert "variable-not-in-bundle" in told
    assert "rose-hip" not in done.out + done.err + judged.out + told
    assert b"rose-hip" not in (tmp_path / "p.rpb.zip").read_bytes()


NEEDS = """\
import json, os
json.dump({"plant": len(os.environ["PLANT"])}, open("plant.json", "w"))
"""
COPIES = """\
import json, os
own = {**os.environ, "MODE": "fast"}
json.dump({"mode": own["MODE"]}, open("mode.json", "w"))
"""


def packed(folder, script, *options):
    (folder / "train.py").write_text(script)
    pack = ("pack", "-q", "--offline", "-o", "p.rpb.zip", "--seed", "1", *options)
    return reprobundle(
        *pack, "--", "python", "train.py", cwd=folder, env={"PLANT": "rose"}
    )


def test_the_repeat_pass_finds_a_variable_that_a_replay_will_lack(tmp_path):
    failed = packed(tmp_path, NEEDS)
    assert failed.status == 20
    assert not (tmp_path / "p.rpb.zip").exists()
    assert "KeyError: 'PLANT'; it ran without PLANT, as a replay does" in failed.err
    assert "-- env NAME=VALUE COMMAND" in failed.err
    other = packed(tmp_path, SCRIPT)
    assert other.status == 0, other.err
    assert "the repeat pass differs, and it ran without PLANT" in other.err


def test_a_copy_of_all_variables_warns_unless_a_repeat_gave_the_same(tmp_path):
    def told(*options):
        assert packed(tmp_path, COPIES, "--force", *options).status == 0
        report = json.loads(
            reprobundle("inspect", "p.rpb.zip", "--json", cwd=tmp_path).out
        )
        remarks = report["runs"][0]["record"]["remarks"]
        (one,) = [one for one in remarks if one["id"] == "environment-copied"]
        return one["severity"], one["where"], one["text"]

    assert told("--passes", "measured")[:2] == ("warning", "{project}/train.py:2")
    severity, _, text = told()
    assert severity == "gap"
    assert text.endswith("the repeat pass ran without them and gave the same")
