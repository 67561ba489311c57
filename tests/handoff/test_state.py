"""What this machine knows of hand-offs: found by name, forgotten where nothing is."""

from __future__ import annotations

import pytest

from reprobundle.errors import BadCallError
from reprobundle.handoff.state import State, find, handoffs_root, known, save
from tests.cli.conftest import reprobundle


@pytest.fixture(autouse=True)
def _own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def handed(name, python="/usr/bin/python3"):
    return save(
        State(
            name=name,
            bundle="ab" * 32,
            path="/lab/x.rpb.zip",
            destination="mac",
            root="~/.reprobundle/handoff",
            python=python,
            began="2026-12-04T03:00:00Z",
        )
    )


def test_one_that_reached_nobody_stands_in_no_ones_way():
    handed("abab-mac-1", python="")
    reached = handed("abab-mac")
    assert find("mac") == find("abab") == find("") == reached
    handed("abab-mac-2")
    with pytest.raises(BadCallError, match="may be any of"):
        find("mac")


def test_one_that_reached_nobody_is_forgotten():
    handed("abab-mac-1", python="")
    assert reprobundle("handoff", "clean", "mac", "--list").status == 0
    assert len(known()) == 1
    done = reprobundle("handoff", "clean", "mac")
    assert done.status == 0, done.err
    assert done.out.endswith("nothing was copied there\nforgotten here\n")
    assert list(handoffs_root().iterdir()) == []
