"""What `pack` says about sources that keep more memory than they need."""

import json

from tests.cli.conftest import reprobundle

SCRIPT = """\
import json

def train(loader, model, history):
    for x in loader:
        loss = model(x)
        loss.backward()
        history.append(loss)

json.dump({"done": 1}, open("done.json", "w"))
"""


def test_pack_names_file_and_line_of_a_kept_loss_and_warns_of_nothing(tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text(SCRIPT)
    target = tmp_path / "kept.rpb.zip"
    command = ("python", "train.py")
    done = reprobundle("pack", "-q", "-o", target, "--", *command, cwd=project)
    assert done.status == 0, done.err
    record = json.loads(reprobundle("cat", target, "runs/1/record.json").out)
    (hint,) = (r for r in record["remarks"] if r["id"] == "keeps-loss-graph")
    assert (hint["where"], hint["severity"]) == ("train.py:7", "gap")
    repeat = json.loads(reprobundle("cat", target, "runs/2/record.json").out)
    assert "keeps-loss-graph" not in {remark["id"] for remark in repeat["remarks"]}
