"""A lock out of a bundle is read, or refused in one line."""

from __future__ import annotations

import pytest

from reprobundle.errors import LockFileError
from reprobundle.format.lock import Interpreter
from reprobundle.run.pylock_file import parse_pylock, select
from reprobundle.run.targets import all_targets

PYTHON = Interpreter(
    version="3.11.7",
    implementation="CPython",
    architecture="x86_64",
    system="linux",
    platform="linux_x86_64",
)
LOCK = """lock-version = "1.0"
created-by = "uv"
environments = ["sys_platform == 'linux' or sys_platform == 'darwin'"]
[[packages]]
name = "a"
version = "1"
marker = "python_version >= '3.10'"
sdist = { name = "a-1.tar.gz", url = "https://x.org/a", hashes = { sha256 = "0" } }
"""


def selected(text: str) -> list[str]:
    lock = parse_pylock(text.encode())
    return [one.name for one in select(lock, all_targets(PYTHON)[0]).chosen]


def test_a_lock_selects_what_its_markers_say():
    assert selected(LOCK) == ["a"]
    assert selected(LOCK.replace(">= '3.10'", "< '3.10'")) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # Found by fuzzing: these parse, and compare what has no order.
        ("sys_platform == 'linux'", "sys_platform ~= 'linux'"),
        ("python_version >= '3.10'", "python_version >= '3.10' and os_name ~= 'x'"),
    ],
)
def test_a_marker_that_compares_nothing_is_refused_in_one_line(old, new):
    with pytest.raises(LockFileError, match="the lock cannot be evaluated") as caught:
        selected(LOCK.replace(old, new))
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 5_000, "", "a = 1", "\0", "a = 1\na = 2"]
)
def test_what_is_no_lock_is_refused(text):
    with pytest.raises(LockFileError):
        selected(text)
