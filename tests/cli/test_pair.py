"""``replay --ab`` and ``--with`` make a pair of runs that differ in one thing."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.cli.conftest import reprobundle
from tests.replay.wheels import make_wheel

REPLAY = ("--yes", "-q", "--json", "--passes", "measured")


def test_a_pair_is_made_in_one_command_and_its_difference_shown(bundle):
    done = reprobundle("replay", bundle, *REPLAY, "--ab", "", "--set threads=1")
    report = json.loads(done.out)
    assert (done.status, report["axes"]) == (10, ["threads"]), done.err
    rules = [one["rule"] for one in report["conclusions"]]
    assert rules == ["one-change", "one-change-agrees"]
    report = json.loads(reprobundle("verify", bundle, "--json").out)
    assert report["verdict"] == "INTACT, NOT YET REPLAYED"
    assert [one["side"] for one in report["experiments"]] == ["A", "B"]


def test_a_pair_of_equal_runs_ends_with_status_0(bundle):
    done = reprobundle("replay", bundle, *REPLAY, "--ab", "", "")
    assert (done.status, json.loads(done.out)["axes"]) == (0, []), done.err


def test_a_pair_in_a_pair_is_refused(bundle):
    done = reprobundle(
        *("replay", bundle, *REPLAY, "--shapes", "constant,dynamic"),
        *("--round", "full,minimal"),
    )
    assert done.status == 20
    assert "one pair at a time" in done.err


def test_another_version_of_a_package_is_laid_over_and_told(bundle, tmp_path):
    wheels = tmp_path / "wheels"
    make_wheel(wheels, "tiny-thing", "2.0")
    done = reprobundle(
        *("replay", bundle, *REPLAY, "--with", "tiny-thing==2.0"),
        *("--wheels", wheels),
    )
    assert done.status in (0, 12), done.err
    assert "laying over the environment: tiny-thing==2.0" in done.err
    shown = json.loads(reprobundle("diff", bundle, "--json").out)
    assert "asked.with.tiny-thing" in [one["name"] for one in shown["changes"]]
    assert shown["axes"] == ["version"]


def test_one_change_is_judged_by_itself_and_leaves_the_bundle_alone(bundle):
    done = reprobundle("replay", bundle, *REPLAY, "--set", "threads=1")
    report = json.loads(done.out)
    assert (done.status, report["verdict"]) == (12, "REPRODUCED WITH WARNINGS")
    assert "experiment" in " ".join(report["reasons"])
    report = json.loads(reprobundle("verify", bundle, "--json").out)
    assert report["verdict"] == "INTACT, NOT YET REPLAYED"
    assert [one["asked"] for one in report["experiments"]] == ["threads=1"]


PROGRAM = """\
import json
from pathlib import Path

import reprobundle

lengths = {"constant": [4] * 6, "dynamic": [4, 5, 6, 4, 7, 5]}[reprobundle.shapes()]
log = []
for length in lengths:
    value = sum(range(length))
    if not reprobundle.minimal():
        log.append("x" * 1000)
Path("out").mkdir(exist_ok=True)
Path("out/total.json").write_text(json.dumps({"value": value}))
if log:
    Path("out/log.txt").write_text("".join(log))
"""


@pytest.fixture(scope="module")
def listening(tmp_path_factory):
    """Return a bundle whose command asks for shapes and the kind of round."""
    folder = tmp_path_factory.mktemp("listening")
    project = folder / "project"
    project.mkdir()
    (project / "run.py").write_text(PROGRAM)
    target = folder / "run.rpb.zip"
    done = reprobundle(
        *("pack", "-o", target, "-q", "--", "python", "run.py"), cwd=project
    )
    assert done.status == 0, done.err
    return target


@pytest.mark.parametrize(
    ("option", "words", "axis"),
    [("--shapes", "constant,dynamic", "shape"), ("--round", "full,minimal", "keeping")],
)
def test_a_pair_of_requests_is_made_and_kept_as_experiments(
    listening, tmp_path, option, words, axis
):
    bundle = tmp_path / "run.rpb.zip"
    shutil.copy(listening, bundle)
    done = reprobundle("replay", bundle, *REPLAY, option, words)
    shown = json.loads(done.out)
    assert shown["axes"] == [axis], done.err
    assert "asked-not-heard" not in [one["rule"] for one in shown["conclusions"]]
    assert [one["requirement"] for one in shown["tables"]] == [
        {"shape": "C21", "keeping": "C30"}[axis]
    ]
    report = json.loads(reprobundle("verify", bundle, "--json").out)
    name = option.removeprefix("--")
    first, second = words.split(",")
    assert [(one["side"], one["asked"]) for one in report["experiments"]] == [
        ("A", f"{name}={first}"),
        ("B", f"{name}={second}"),
    ]
    assert len({one["pair"] for one in report["experiments"]}) == 1
    assert report["verdict"] == "INTACT, NOT YET REPLAYED"
    said = reprobundle("verify", bundle).out
    assert f"{name}={second}" in said
    assert "None of them counts for the verdict" in said
