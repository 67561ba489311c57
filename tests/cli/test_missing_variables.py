"""A variable of the author's that a result hangs on is told before a replay of it."""

from __future__ import annotations

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
