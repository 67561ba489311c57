"""``handoff`` through the command line against a real sshd."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from reprobundle.format.reader import open_bundle

pytestmark = [pytest.mark.sshd, pytest.mark.linux]

REASON = "the committee agreed on 3 December"


def test_two_cuts_one_run_one_verdict(far, bundle, tmp_path):
    """The copy and the run are cut; what arrived counts, and nothing runs twice."""
    hold = far.home / "hold"
    hold.touch()
    done = tmp_path / "cut"
    usual = (
        *("--env", sys.executable, "--override-policy", REASON),
        *("--allow", "handoff-policy-overridden"),
    )
    # Inside the largest of the files that go there: the wheel of numpy.
    first = far.run(
        *("start", *far.to_it(bundle, *usual, "--retries", "0")),
        *far.cut_after(10_000_000, done),
    )
    assert done.exists()
    assert first.returncode == 20, first.stderr
    assert "was lost" in first.stderr
    assert "call again: it goes on from there" in first.stderr
    with subprocess.Popen(
        far.call(*far.to_it(bundle, *usual)),
        env=far.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        seen: list[str] = []
        for line in process.stderr:
            seen.append(line)
            if line == "begun\n":
                far.kill_sessions()
            if "was lost" in line:
                hold.unlink()
        out = process.stdout.read() if process.stdout else ""
        status = process.wait()
    told = "".join(seen)
    assert status == 0, told
    assert "goes on behind" in told, "the second copy began anew"
    assert "was lost" in told, "the run was not cut"
    assert out.rstrip().endswith("VERDICT  REPRODUCED, bit-identical (exit 0)")
    assert told.count("measured pass of claim 'main'") == 1
    assert not list(far.home.glob(".reprobundle/handoff/*/attempts"))
    _the_record_says_what_was_overridden(bundle)
    _another_terminal_sees_it(far)
    _calling_again_runs_nothing(far, bundle, usual)
    _clean_proves_it_gone(far)


def _the_record_says_what_was_overridden(bundle):
    with open_bundle(bundle) as opened:
        (replay,) = opened.replay_ids
        record = json.loads(opened.read_unsealed(f"replays/{replay}/record.json"))
    (remark,) = [one for one in record["remarks"] if one["id"].startswith("handoff-")]
    assert remark["id"] == "handoff-policy-overridden"
    assert remark["text"].endswith(f"overridden: {REASON}")


def _another_terminal_sees_it(far):
    (shown,) = json.loads(far.run("status", "--json").stdout)
    assert shown["state"] == "finished"
    assert shown["result"]["exit_status"] == 12
    assert shown["data_class"] == "clinical"
    assert shown["policy_overridden"] == REASON
    kinds = [place["kind"] for place in shown["places"]]
    assert {"bundle", "program", "run", "record"} == set(kinds)


def _calling_again_runs_nothing(far, bundle, usual):
    before = next(far.home.glob(".reprobundle/handoff/*/job/job.json")).read_bytes()
    again = far.run(*far.to_it(bundle, *usual))
    assert again.returncode == 0
    assert "there already: finished" in again.stderr
    assert "attached before" in again.stderr
    after = next(far.home.glob(".reprobundle/handoff/*/job/job.json")).read_bytes()
    assert after == before
    other = far.run(*far.to_it(bundle, *usual), "--device", "cpu")
    assert other.returncode == 20
    assert "was started with" in other.stderr
    later = far.run(*far.to_it(bundle, *usual, "--no-wait"))
    assert later.stdout.startswith("finished; bring it home: reprobundle handoff fetch")
    secret = far.run(*far.to_it(bundle, *usual, "--encrypt-to", "age1x"))
    assert secret.returncode == 20
    assert "lies there as it is, not encrypted" in secret.stderr


def _clean_proves_it_gone(far):
    listed = far.run("clean", "127.0.0.1", "--list").stdout
    assert "venv" in listed
    assert (far.home / ".reprobundle").exists()
    done = far.run("clean", "127.0.0.1")
    assert done.returncode == 0, done.stderr
    assert "looked again: nothing is left" in done.stdout
    assert list(far.home.iterdir()) == []
    (shown,) = json.loads(far.run("status", "--json").stdout)
    there = [one for one in shown["places"] if one["kind"] != "record"]
    assert all(one["removed"] for one in there)


def test_a_policy_against_it_is_refused_before_anything_travels(far, bundle):
    done = far.run(*far.to_it(bundle))
    assert done.returncode == 20
    assert "it forbids any transfer (approval 12/26)" in done.stderr
    assert "copying" not in done.stderr


def test_an_old_python_is_named_with_the_remedy(far, bundle, tmp_path):
    old = tmp_path / "python3"
    line = r"reprobundle-found\tpython\t3.8.10\tCPython\tx86_64\t%s\n"
    old.write_text(f"#!/bin/sh\nprintf '{line}' \"$0\"\n")
    old.chmod(0o755)
    done = far.run(
        *far.to_it(bundle, "--python", old, "--override-policy", REASON),
    )
    assert done.returncode == 20
    assert f"3.8.10 ({old})" in done.stderr
    assert "no CPython 3.10 or newer" in done.stderr
    assert "uv python install" in done.stderr


def test_an_interpreter_without_torch_is_told_before_anything_travels(far, tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    script = "import torch\ntorch.save(torch.ones(2), 'ones.pt')\n"
    (project / "train.py").write_text(script)
    target = tmp_path / "torch.rpb.zip"
    options = ("--passes", "measured", "--offline", "--seed", "1")
    subprocess.run(
        [
            *(sys.executable, "-m", "reprobundle", "pack", "-q", "-o", target),
            # The python of the path may have no torch.
            *(*options, "--", sys.executable, "train.py"),
        ],
        cwd=project,
        check=True,
        capture_output=True,
    )
    bare = tmp_path / "bare"
    make = (sys.executable, "-m", "venv", "--without-pip", bare)
    subprocess.run(make, check=True, capture_output=True)
    done = far.run(*far.to_it(target, "--env", bare / "bin" / "python"))
    assert done.returncode == 20
    assert "has no torch, and the command needs torch" in done.stderr
    assert "install torch there, or leave out --env" in done.stderr
    assert not (far.home / ".reprobundle").exists()


def test_an_interpreter_that_is_not_there_is_told(far, bundle):
    done = far.run(
        *far.to_it(bundle, "--env", "/nowhere/python", "--override-policy", REASON)
    )
    assert done.returncode == 20
    assert "there is no interpreter '/nowhere/python' on 127.0.0.1" in done.stderr


def test_a_key_that_is_refused_is_told_and_not_tried_again(far, bundle, tmp_path):
    key = tmp_path / "other"
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True
    )
    options = ("--ssh-option", f"IdentityFile={key}", "--ssh-option")
    arguments = [
        one.replace(f"{far.folder}/key", str(key)) if isinstance(one, str) else one
        for one in far.to_it(bundle, "--override-policy", REASON)
    ]
    done = far.run(*arguments, *options[:2])
    assert done.returncode == 20
    assert "cannot be reached" in done.stderr
    assert "Permission denied" in done.stderr
    assert "trying again" not in done.stderr


@pytest.mark.parametrize("name", ["-oProxyCommand=touch", "a b", ""])
def test_what_ssh_would_take_for_an_option_is_no_destination(far, bundle, name):
    done = far.run("start", "--yes", "--override-policy", REASON, "--", name, bundle)
    assert done.returncode == 20
    assert "is no destination of ssh" in done.stderr


def test_a_full_disk_is_told_before_the_copy(far, bundle, tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "none", small],
        check=False,
        capture_output=True,
    )
    if mounted.returncode != 0:
        pytest.skip("no rights to mount a small disk")
    try:
        done = far.run(
            *far.to_it(bundle, "--env", sys.executable, "--folder", f"{small}/h"),
            *("--override-policy", REASON),
        )
    finally:
        subprocess.run(["umount", small], check=True)
    assert done.returncode == 20
    assert "8.00 MiB are free in" in done.stderr
    assert not Path(f"{small}/h").exists()


def test_options_that_the_hand_off_sets_itself_are_refused(far, bundle):
    done = far.run(*far.to_it(bundle), "--", "--detach")
    assert done.returncode == 20
    assert "handoff sets --detach of replay itself; leave it out" in done.stderr
