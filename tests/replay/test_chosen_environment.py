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
