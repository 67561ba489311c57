"""Which files of the project no run was seen to read."""

from __future__ import annotations

import msgspec
import pytest

from reprobundle.format.record import Command, FileRead
from reprobundle.run.unread import unread_members
from tests.verify.builder import Run

MEMBERS = ("project/a.py", "project/b.py", "project/sub/c.sh", "inputs/d.csv", "README")


@pytest.fixture
def record(tmp_path):
    made, _ = Run({}).build(tmp_path)
    return msgspec.structs.replace(
        made, command=Command(argv=("python", "-m", "x")), reads=(), sources=()
    )


def test_what_nothing_read_is_told_and_inputs_are_not(record):
    assert unread_members(MEMBERS, [record]) == [
        "project/a.py",
        "project/b.py",
        "project/sub/c.sh",
    ]


def test_a_read_or_a_source_of_any_run_counts(record):
    read = FileRead(
        path="project:a.py", member="project/a.py", size_bytes=1, blake3="00" * 32
    )
    first = msgspec.structs.replace(record, reads=(read,))
    second = msgspec.structs.replace(record, sources=("b.py",))
    assert unread_members(MEMBERS, [first, second]) == ["project/sub/c.sh"]


@pytest.mark.parametrize(
    ("argv", "folder"),
    [
        (("bash", "sub/c.sh"), "."),
        (("bash", "./c.sh"), "sub"),
        (("bash", "-c", "sh {project}/sub/c.sh | tee log"), "."),
        (("tool", "--script=sub/c.sh"), "."),
        (("bash", "-c", "sh 'sub/c.sh'"), "."),
    ],
)
def test_what_the_command_names_counts_too(record, argv, folder):
    command = Command(argv=argv, working_directory=folder)
    named = msgspec.structs.replace(record, command=command)
    assert unread_members(MEMBERS, [named]) == ["project/a.py", "project/b.py"]
