"""What the command line permits reaches the building of a fresh environment."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click.testing
import pytest

from reprobundle.cli.replay import replay
from reprobundle.errors import EnvironmentUnusableError
from reprobundle.replay import chosen_environment
from reprobundle.replay import replay as verb
from reprobundle.replay.options import ReplayOptions
from reprobundle.run.drift import Drift


@pytest.fixture
def permissions(monkeypatch):
    """Return a function that says what a call of the builder was permitted."""

    def of(**changes):
        seen = {}

        def build(lock, **given):
            seen.update(given)
            raise EnvironmentUnusableError("seen enough")

        monkeypatch.setattr(chosen_environment, "build_fresh", build)
        options = ReplayOptions(bundle=Path("x"), environment="fresh", **changes)
        plan: Any = SimpleNamespace(lock=None, pylock=None, conda=None)
        with pytest.raises(EnvironmentUnusableError, match="seen enough"):
            chosen_environment.choose_environment(
                options, plan, lambda line: None, folder=Path("overlay")
            )
        return seen["allow_other_build"], seen["allow_other_python"]

    return of


def test_nothing_else_is_taken_unless_it_is_permitted(permissions):
    assert permissions() == (False, False)


def test_each_permission_is_passed_on_by_itself(permissions):
    assert permissions(allow_other_build=True) == (True, False)
    assert permissions(allow_other_python=True) == (False, True)


@pytest.mark.parametrize("name", ["build", "python"])
def test_the_command_line_sets_it(monkeypatch, tmp_path, name):
    seen = []

    def plan(options):
        seen.append((options.allow_other_build, options.allow_other_python))
        raise EnvironmentUnusableError("seen enough")

    monkeypatch.setattr(verb, "inspect_plan", plan)
    bundle = tmp_path / "x.rpb.zip"
    bundle.touch()
    arguments = [str(bundle), f"--allow-other-{name}"]
    click.testing.CliRunner().invoke(replay, arguments)
    assert seen == [(name == "build", name == "python")]


def test_the_record_names_the_packages_that_change_numbers(monkeypatch):
    found = (
        Drift("scipy", "1.10.0", "1.13.1", "numeric"),
        Drift("mkl (files)", "blake3 a", "blake3 b", "numeric"),
        Drift("torch", "2.13.0", "2.12.0", "numeric"),
        Drift("triton", "3.7", "absent", "numeric"),
        Drift("python.libc", "2.36", "2.31", "numeric"),
        Drift("rich", "13.0", "14.0", "other"),
    )
    monkeypatch.setattr(chosen_environment, "check_current", lambda lock, python: found)
    plan: Any = SimpleNamespace(lock=None, pylock=None, conda=None)
    chosen = chosen_environment.choose_environment(
        ReplayOptions(bundle=Path("x")), plan, lambda line: None, folder=Path("overlay")
    )
    assert chosen.facts["replay.environment.differences"].value == 6
    assert chosen.facts["replay.environment.numeric"].value == (
        "scipy: 1.10.0 -> 1.13.1",
        "mkl (files): blake3 a -> blake3 b",
    )
