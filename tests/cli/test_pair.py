"""``replay --ab`` and ``--with`` make a pair of runs that differ in one thing."""

from __future__ import annotations

import json

from tests.cli.conftest import reprobundle
from tests.replay.wheels import make_wheel

REPLAY = ("--yes", "-q", "--json", "--passes", "measured")


def test_a_pair_is_made_in_one_command_and_its_difference_shown(bundle):
    done = reprobundle("replay", bundle, *REPLAY, "--ab", "", "--set threads=1")
    report = json.loads(done.out)
    assert (done.status, report["axes"]) == (10, ["threads"]), done.err
    rules = [one["rule"] for one in report["conclusions"]]
    assert rules == ["one-change", "one-change-agrees"]


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
