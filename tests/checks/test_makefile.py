"""The Makefile refuses an interpreter it cannot use, and says which it wants."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="needs make")


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run make in the project, free of a make that runs these tests."""
    inherited = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES"}
    environment = {k: v for k, v in os.environ.items() if k not in inherited}
    return subprocess.run(
        ["make", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_refuses_a_python_older_than_3_10(tmp_path: Path):
    old = tmp_path / "python3"
    old.write_text("#!/bin/sh\necho Python 3.9.2\nexit 1\n", encoding="utf-8")
    old.chmod(0o755)
    ended = make("python", f"PYTHON={old}")
    assert ended.returncode == 2
    assert ended.stderr.splitlines()[0] == (
        f"Python 3.10 or newer is needed, {old} is Python 3.9.2; "
        "name another: make PYTHON=python3.12"
    )


def test_refuses_an_interpreter_that_does_not_exist(tmp_path: Path):
    ended = make("python", f"PYTHON={tmp_path / 'none'}")
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"no interpreter {tmp_path / 'none'} found")


def test_without_a_target_it_lists_the_targets():
    ended = make()
    assert ended.returncode == 0
    targets = [line.split()[1] for line in ended.stdout.splitlines()]
    assert targets == ["demo", "test", "test-slow", "clean"]
