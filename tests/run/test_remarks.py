"""Remarks that follow from the facts of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from reprobundle.run.accessed import Accesses
from reprobundle.run.events import EventFile, FactEvent
from reprobundle.run.launch import Launched
from reprobundle.run.remarks import of_run
from tests.run.test_accessed import START


def remarks_of(*facts, access=None):
    events = tuple(
        FactEvent(t_ns=1, name=name, value=value, source="environ")
        for name, value in facts
    )
    files = (EventFile(start=START, events=events, damaged_lines=0),)
    launched = Launched.__new__(Launched)
    object.__setattr__(launched, "exit_status", 0)
    object.__setattr__(launched, "watched", True)
    return of_run(files, launched, (), access or Accesses(), [], seed=1)


def named(*facts):
    return [one.where for one in remarks_of(*facts) if one.id.startswith("variable-")]


@pytest.mark.parametrize(
    "name", ["PYTORCH_MPS_ALLOC_CONF", "PYTORCH_MPS_GRAPH_CACHE_POLICY"]
)
def test_a_variable_that_no_release_reads_is_told(name):
    assert named((f"env.{name}", "1")) == [name]


def test_a_variable_that_is_not_set_or_is_read_is_not_told():
    assert named(("env.PYTORCH_MPS_ALLOC_CONF", None), ("env.OMP_NUM_THREADS", 1)) == []


def test_files_of_tools_that_were_read_are_counted():
    cache = Path.home() / ".cache/uv"
    found = remarks_of(access=Accesses(left_out={cache / "a", cache / "b"}))
    (told,) = [one for one in found if one.id == "tool-files-left-out"]
    assert told.severity == "gap"
    assert told.where == "~/.cache/uv"
    assert told.text.startswith("files read: 2;")
    assert "tool-files-left-out" not in {one.id for one in remarks_of()}
