"""The gap that programs which are not Python leave."""

from __future__ import annotations

import msgspec

from reprobundle.format.record import Process
from reprobundle.run.events import Child, EventFile
from reprobundle.run.launch import Launched
from reprobundle.run.unseen_programs import programs_not_seen
from tests.run.test_accessed import START

MAIN = Process(pid=1, parent_pid=0, argv=("train.py",), entered=True)


def where(*executables, argv=("python", "train.py"), processes=(MAIN,)):
    started = tuple(
        Child(t_ns=1, argv=(name,), executable=name) for name in executables
    )
    files = (EventFile(start=START, events=started, damaged_lines=0),)
    launched = Launched.__new__(Launched)
    object.__setattr__(launched, "pid", 1)
    found = list(programs_not_seen(files, launched, processes, argv))
    assert all(one.severity == "gap" for one in found)
    assert all(one.id == "programs-not-seen" for one in found)
    return [one.where for one in found]


def test_programs_that_are_not_python_are_named_once():
    assert where("cat", "/bin/sh", "/usr/bin/cat", "/opt/bin/python3.11") == ["cat, sh"]


def test_a_run_of_python_alone_has_no_gap():
    assert where() == where("python") == []


def test_a_command_that_is_itself_no_python_is_named():
    inner = msgspec.structs.replace(MAIN, pid=2, parent_pid=1)
    assert where(argv=("/bin/bash", "run.sh"), processes=(inner,)) == ["bash"]
    assert where(argv=("env", "python", "train.py")) == []  # It became the Python.


def test_a_started_script_that_was_seen_as_a_python_is_none():
    child = Process(pid=3, parent_pid=1, argv=("/v/bin/torchrun", "a.py"), entered=True)
    assert where("torchrun", processes=(MAIN, child)) == []
    assert where("torchrun") == ["torchrun"]


def test_many_names_are_cut_and_counted():
    assert where(*"abcdefghij") == ["a, b, c, d, e, f, g, h and 2 more"]
