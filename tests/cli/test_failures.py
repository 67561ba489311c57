"""Bundles whose result is an error."""

from __future__ import annotations

import pytest

from tests.cli.conftest import reprobundle

SCRIPT = """\
import os
from pathlib import Path

Path("partial.txt").write_text("before")
if os.environ["LANG"] == "C.UTF-8":
    raise RuntimeError("mat1 and mat2 shapes cannot be multiplied (4x3 and 5x6)")
if os.environ["LANG"] == "other":
    raise ModuleNotFoundError("No module named 'x'")
"""


@pytest.fixture
def failing(tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text(SCRIPT)
    target = tmp_path / "failing.rpb.zip"
    done = reprobundle(
        "pack",
        "-o",
        target,
        "-q",
        "--expect-failure",
        "--",
        "python",
        "train.py",
        cwd=project,
        env={"LANG": "C.UTF-8"},
    )
    assert done.status == 0, done.err
    return target


@pytest.mark.parametrize(
    ("language", "verdict", "status"),
    [
        ("C.UTF-8", "REPRODUCED, bit-identical", 0),
        ("none", "NOT REPRODUCED", 10),
        ("other", "DIFFERENT FAILURE", 10),
    ],
)
def test_an_expected_error_is_compared_by_type_message_and_place(
    failing, language, verdict, status
):
    done = reprobundle("replay", failing, "--yes", "-q", env={"LANG": language})
    assert done.out.strip().splitlines()[-1] == f"VERDICT  {verdict} (exit {status})"
    assert done.status == status


def test_a_replay_that_fails_where_the_reference_did_not_is_not_reproduced(tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text(SCRIPT)
    target = tmp_path / "x.rpb.zip"
    done = reprobundle(
        "pack",
        "-o",
        target,
        "-q",
        "--",
        "python",
        "train.py",
        cwd=project,
        env={"LANG": "none"},
    )
    assert done.status == 0, done.err
    done = reprobundle("replay", target, "--yes", "-q", env={"LANG": "other"})
    assert done.status == 10
    assert "No module named 'x'" in " ".join(done.out.split())
