"""A planted home, account and host stand in no text of ours, and replay compares."""

from __future__ import annotations

import json
import platform
import zipfile

import pytest

from tests.cli.conftest import reprobundle

SCRIPT = """\
import pathlib, platform, sys, warnings
home = str(pathlib.Path.home())
open(sys.argv[1]).read()
warnings.warn(f"cache of {home}/cache for alice@{platform.node()} at /scratch/alice/x")
open("out.txt", "w").write("1")
raise ValueError(f"no model in {home}/models and /scratch/alice/models")
"""


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("planted")
    project = folder / "project"
    project.mkdir()
    (project / "train.py").write_text(SCRIPT)
    home = folder / "home" / "alice"
    home.mkdir(parents=True)
    (home / "words.txt").write_text("alpha")
    target = folder / "x.rpb.zip"
    done = reprobundle(
        "pack",
        "-o",
        target,
        "-q",
        "--expect-failure",
        "--",
        "python",
        "train.py",
        home / "words.txt",
        cwd=project,
        env={"HOME": str(home), "USER": "alice", "LOGNAME": "alice"},
        online=True,
    )
    assert done.status == 0, done.err
    return target, home, project


def ours(target):
    """Return what we wrote: everything but the user's files, logs and outputs."""
    with zipfile.ZipFile(target) as archive:
        return {
            name: archive.read(name).decode()
            for name in archive.namelist()
            if name.endswith(("record.json", "policy.json", "memory.json"))
            or name.startswith("lock/")
        }


def test_no_text_of_ours_names_home_or_account(planted):
    target, home, project = planted
    for name, text in ours(target).items():
        assert str(home) not in text, name
        assert "/scratch/alice" not in text, name
        assert str(project) not in text, name
        assert f"alice@{platform.node()}" not in text, name


def test_the_log_of_the_user_is_as_it_was_and_a_gap_tells_of_it(planted):
    target, home, _ = planted
    with zipfile.ZipFile(target) as archive:
        assert str(home) in archive.read("runs/1/stderr.txt").decode()
        record = json.loads(archive.read("runs/1/record.json"))
    told = {one["where"] for one in record["remarks"] if one["id"] == "home-path"}
    assert any(where.startswith("stderr.txt:") for where in told)


def test_the_command_has_a_placeholder_that_inspect_shows(planted):
    target, _, _ = planted
    with zipfile.ZipFile(target) as archive:
        command = json.loads(archive.read("runs/1/record.json"))["command"]
    assert command["argv"] == ["python", "train.py", "{home}/words.txt"]
    assert command["placeholders"] == ["home"]
    shown = reprobundle("inspect", target).out
    assert "{home}/words.txt" in shown
    assert "{home} stands for your home folder" in " ".join(shown.split())


def test_another_account_with_another_home_gets_the_same_failure(planted, tmp_path):
    target, alices, _ = planted
    (alices / "words.txt").unlink()
    home = tmp_path / "bob"
    home.mkdir()
    done = reprobundle(
        "replay",
        target,
        "--yes",
        "-q",
        env={"HOME": str(home), "USER": "bob", "LOGNAME": "bob"},
    )
    verdict = done.out.strip().splitlines()[-1]
    assert "DIFFERENT FAILURE" not in verdict
    assert verdict.startswith("VERDICT  REPRODUCED"), done.out
    # The file came out of the bundle, and was seen being read there.
    assert "reduced-input" not in done.out
    with zipfile.ZipFile(target) as archive:
        names = [one for one in archive.namelist() if one.startswith("replays/")]
        replay = json.loads(archive.read(names[0]))
    assert replay["command"]["argv"] == ["python", "train.py", "{home}/words.txt"]
