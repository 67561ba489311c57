"""Replays that are quick, detached, interrupted, or cannot run here."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.cli.conftest import reprobundle

SLOW = """\
import time
from pathlib import Path

Path("out.txt").write_text("started")
if Path("/proc/self/environ").read_bytes().find(b"LANG=slow") >= 0:
    time.sleep(60)
"""

SMOKE_POLICY = {
    "claims": [
        {"name": "main", "statement": "the whole run"},
        {"name": "smoke", "command": ["python", "train.py", "quick"], "minutes": 0.1},
    ]
}


def make(tmp_path, script, *options, policy=None):
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text(script)
    if policy:
        (project / "policy.json").write_text(json.dumps(policy))
        options = (*options, "--policy", "policy.json")
    target = tmp_path / "x.rpb.zip"
    done = reprobundle(
        "pack", "-o", target, "-q", *options, "--", "python", "train.py", cwd=project
    )
    assert done.status == 0, done.err
    return target


def last_line(done):
    return done.out.strip().splitlines()[-1]


def test_the_quick_claim_alone_is_partial(tmp_path):
    script = (
        "import sys, pathlib\npathlib.Path('out.txt').write_text(str(sys.argv[1:]))\n"
    )
    target = make(tmp_path, script, policy=SMOKE_POLICY)
    done = reprobundle("replay", target, "--yes", "-q", "--smoke")
    assert last_line(done) == "VERDICT  PARTIAL (exit 11)", done.out + done.err
    assert "not run" in done.err
    assert "main" in done.err


def test_all_claims_together_are_reproduced(tmp_path):
    script = (
        "import sys, pathlib\npathlib.Path('out.txt').write_text(str(sys.argv[1:]))\n"
    )
    target = make(tmp_path, script, policy=SMOKE_POLICY)
    done = reprobundle("replay", target, "--yes", "-q")
    assert last_line(done) == "VERDICT  REPRODUCED, bit-identical (exit 0)", done.out


def test_a_quick_claim_that_does_not_exist_is_a_bad_call(bundle):
    done = reprobundle("replay", bundle, "--yes", "--smoke")
    assert done.status == 20
    assert "no claim 'smoke'" in done.err


def test_an_interrupted_replay_is_incomplete_and_keeps_its_record(tmp_path):
    target = make(tmp_path, SLOW)
    process = subprocess.Popen(
        [sys.executable, "-m", "reprobundle", "replay", str(target), "--yes", "-q"],
        env={**os.environ, "LANG": "slow", "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    wait_for_file(tmp_path, "reprobundle-replay-*/**/project/out.txt")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 11, out + err
    assert out.strip().splitlines()[-1] == "VERDICT  INCOMPLETE (exit 11)"
    report = json.loads(reprobundle("verify", "--json", target).out)
    assert [j["verdict"] for j in report["judgements"]] == ["INCOMPLETE"]


def wait_for_file(folder, pattern):
    for _ in range(600):
        if any(folder.glob(pattern)):
            return
        time.sleep(0.1)
    pytest.fail(f"{pattern!r} never came")


def wait_until(state, environment, job):
    found = None
    for _ in range(300):
        done = reprobundle("status", "--json", job, env=environment)
        found = json.loads(done.out)[0]
        if found["state"] == state:
            return found, done
        time.sleep(0.1)
    pytest.fail(f"never {state}: {found}")


def test_a_detached_replay_goes_on_by_itself_and_can_be_asked(bundle, tmp_path):
    environment = {"XDG_STATE_HOME": str(tmp_path / "state")}
    done = reprobundle("replay", bundle, "--yes", "-q", "--detach", env=environment)
    assert done.status == 0, done.err
    job = done.out.split()[2].rstrip(";")
    found, asked = wait_until("finished", environment, job)
    assert found["verdict"] == "REPRODUCED, bit-identical"
    assert asked.status == 0
    assert reprobundle("verify", bundle).status == 0


def test_a_detached_replay_can_be_cancelled(tmp_path):
    target = make(tmp_path, SLOW)
    environment = {"XDG_STATE_HOME": str(tmp_path / "state"), "LANG": "slow"}
    done = reprobundle("replay", target, "--yes", "-q", "--detach", env=environment)
    job = done.out.split()[2].rstrip(";")
    wait_until("running", environment, job)
    again = reprobundle("replay", target, "--yes", "-q", "--detach", env=environment)
    assert again.status == 20
    assert job in again.err
    cancelled = reprobundle("status", job, "--cancel", env=environment)
    assert "cancelled" in cancelled.out
    assert cancelled.status == 11


def test_a_job_that_does_not_exist_is_a_bad_call(tmp_path):
    done = reprobundle("status", "x", env={"XDG_STATE_HOME": str(tmp_path)})
    assert done.status == 20
    assert "no job 'x'" in done.err


def test_without_jobs_status_says_so(tmp_path):
    done = reprobundle("status", env={"XDG_STATE_HOME": str(tmp_path)})
    assert (done.status, done.out.strip()) == (0, "no detached replays")


def test_an_external_file_that_is_not_here_is_not_run(tmp_path):
    data = tmp_path / "elsewhere.csv"
    data.write_text("1\n")
    script = (
        f"text = open({str(data)!r}).read()\n"
        "import pathlib; pathlib.Path('out.txt').write_text(text)\n"
    )
    target = make(tmp_path, script)
    data.unlink()
    done = reprobundle("replay", target, "--yes", "-q")
    assert last_line(done) == "VERDICT  NOT RUN HERE (exit 11)", done.out + done.err
    assert "elsewhere.csv" in done.out
    data.write_text("1\n")
    assert reprobundle("replay", target, "--yes", "-q").status in {0, 12}


def test_an_external_file_with_other_content_is_not_used(tmp_path):
    data = tmp_path / "elsewhere.csv"
    data.write_text("1\n")
    script = (
        f"text = open({str(data)!r}).read()\n"
        "import pathlib; pathlib.Path('out.txt').write_text(text)\n"
    )
    target = make(tmp_path, script)
    data.write_text("2\n")
    done = reprobundle("replay", target, "--yes", "-q")
    assert last_line(done) == "VERDICT  NOT RUN HERE (exit 11)", done.out


def test_an_external_file_named_in_the_command_comes_from_the_bundle(tmp_path):
    data = tmp_path / "elsewhere.csv"
    data.write_text("1\n")
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text(
        "import sys, pathlib\n"
        "pathlib.Path('out.txt').write_text(open(sys.argv[1]).read())\n"
    )
    target = tmp_path / "x.rpb.zip"
    done = reprobundle(
        "pack", "-o", target, "-q", "--", "python", "train.py", data, cwd=project
    )
    assert done.status == 0, done.err
    data.unlink()
    done = reprobundle("replay", target, "--yes", "-q")
    assert "NOT RUN HERE" not in done.out, done.out


def test_an_interpreter_that_does_not_exist_is_a_bad_call(bundle):
    done = reprobundle("replay", bundle, "--yes", "--env", "/nowhere/python")
    assert done.status == 20
    assert "no interpreter at '/nowhere/python'" in done.err


def test_the_drift_of_the_current_environment_is_listed(packed, tmp_path):
    """The lock names a package that this environment has not."""
    from reprobundle.format.canonical import encode
    from reprobundle.format.reader import open_bundle
    from reprobundle.format.writer import Source, write_bundle

    target = tmp_path / "drift.rpb.zip"
    with open_bundle(packed) as opened:
        sources = []
        for name, member in opened.members.items():
            if member.role in {"readme", "checksums"}:
                continue
            content = opened.read(name)
            if name == "lock/environment.json":
                lock = json.loads(content)
                for item in lock["distributions"]:
                    if item["name"] == "numpy":
                        item["version"] = "1.0.0"
                content = encode(lock)
            sources.append(Source(name, member.role, content))
    write_bundle(target, sources)
    done = reprobundle("replay", target, "--yes", "-q")
    assert "numpy" in done.err
    assert "1.0.0" in done.err
