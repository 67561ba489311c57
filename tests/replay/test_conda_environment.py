"""A conda environment is made again by conda, or there is a clear word why not.

conda itself is played by a script that notes its call and makes a plain environment.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from reprobundle.errors import InstallFailedError
from reprobundle.replay import conda_environment
from reprobundle.replay.conda_environment import NoCondaError
from reprobundle.replay.environment import build_fresh
from tests.replay.test_environment import lock

EXPLICIT = b"@EXPLICIT\nhttps://conda.example.org/linux-64/a-1-0.conda#1\n"
PLAYED = """\
#!/bin/sh
echo "$@" > "{calls}"
if [ -n "{broken}" ]; then echo "archive is corrupt"; exit 3; fi
"{python}" -m venv --without-pip "$4"
"""


@pytest.fixture
def conda(tmp_path, monkeypatch):
    """Put a conda on the path; a test may break it."""

    def play(*, broken=""):
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        program, calls = folder / "micromamba", tmp_path / "calls"
        program.write_text(
            PLAYED.format(calls=calls, broken=broken, python=sys.executable)
        )
        program.chmod(0o755)
        monkeypatch.setattr(conda_environment, "find_conda", lambda: program)
        return calls

    return play


def build(tmp_path, **options):
    target = tmp_path / "environment"
    return build_fresh(lock(), conda=EXPLICIT, target=target, **options)


def test_conda_makes_it_from_the_explicit_list(tmp_path, conda):
    calls = conda()
    built = build(tmp_path)
    target = tmp_path / "environment"
    assert calls.read_text().split() == [
        "create",
        "--yes",
        "--prefix",
        f"{target}/venv",
        "--file",
        f"{target}/conda-explicit.txt",
    ]
    assert (target / "conda-explicit.txt").read_bytes() == EXPLICIT
    assert built.python.exists()
    assert built.installer == "micromamba"
    assert str(tmp_path) not in str(built.commands)
    assert build(tmp_path).reused


def test_a_conda_that_fails_leaves_no_complete_environment(tmp_path, conda):
    conda(broken="yes")
    with pytest.raises(InstallFailedError, match="ended with status 3") as caught:
        build(tmp_path)
    assert "corrupt" in Path(caught.value.log).read_text()
    conda()
    assert not build(tmp_path).reused


def test_without_conda_nothing_else_is_taken_in_its_place(tmp_path, monkeypatch):
    monkeypatch.setattr(conda_environment, "find_conda", lambda: None)
    with pytest.raises(NoCondaError, match="conda environment of 1 packages") as caught:
        build(tmp_path)
    assert caught.value.stop == "platform"
    assert "--env" in caught.value.advice


def test_on_another_kind_of_machine_the_list_does_not_hold(tmp_path, conda):
    calls = conda()
    other = lock(architecture="riscv64")
    build_fresh(other, conda=EXPLICIT, target=tmp_path / "environment")
    assert not calls.exists()
