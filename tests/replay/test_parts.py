"""One part of a bundle: what a replay lacks in it is told before anything else."""

from __future__ import annotations

import pytest

from reprobundle.errors import AbsentMemberError
from reprobundle.format.lock import PYLOCK_MEMBER
from reprobundle.format.manifest import Role
from reprobundle.format.parting import split_bundle
from reprobundle.format.reader import open_bundle
from reprobundle.format.writer import Source, write_bundle
from reprobundle.replay import replay as module
from reprobundle.replay.options import ReplayOptions

MEMBERS: dict[str, Role] = {
    "project/train.py": "project",
    "inputs/data.csv": "input",
    "stand-ins/sample.csv": "stand-in",
    "external/1/weights.bin": "external",
    "runs/1/outputs/y.txt": "output",
    PYLOCK_MEMBER: "lock",
}


class PlannedError(Exception):
    """The planning was reached: nothing that is needed was found to be elsewhere."""


@pytest.fixture
def planned_without(tmp_path, monkeypatch):
    """Plan a replay of a part that lacks one member."""
    whole, parts = tmp_path / "x.rpb.zip", (tmp_path / "1.zip", tmp_path / "2.zip")
    write_bundle(
        whole, [Source(path, role, path.encode()) for path, role in MEMBERS.items()]
    )

    def plan(path, environment="current"):
        with open_bundle(whole) as bundle:
            split_bundle(bundle, {path}, first=parts[0], rest=parts[1])
        return module.inspect_plan(
            ReplayOptions(bundle=parts[0], environment=environment)
        )

    def reached(*_, **__):
        raise PlannedError

    monkeypatch.setattr(module, "make_plan", reached)
    return plan


@pytest.mark.parametrize("path", [p for p in MEMBERS if "outputs" not in p][:-1])
def test_what_a_run_starts_from_has_to_be_in_this_part(planned_without, path):
    with pytest.raises(AbsentMemberError, match=rf"{path}.*one part of a bundle"):
        planned_without(path)


def test_the_lock_has_to_be_here_for_a_fresh_environment(planned_without):
    with pytest.raises(AbsentMemberError, match=PYLOCK_MEMBER):
        planned_without(PYLOCK_MEMBER, "fresh")


@pytest.mark.parametrize("path", ["runs/1/outputs/y.txt", PYLOCK_MEMBER])
def test_what_no_run_starts_from_may_lie_elsewhere(planned_without, path):
    with pytest.raises(PlannedError):
        planned_without(path)
