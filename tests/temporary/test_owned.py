"""No kill leaves a temporary folder for longer than until the next start."""

from __future__ import annotations

import ast
import subprocess
import sys
import time
from pathlib import Path

import reprobundle
from reprobundle.temporary.guarded import owned_folder

PACKAGE = Path(reprobundle.__file__).parent
WITH_A_NAME = {"TemporaryDirectory", "NamedTemporaryFile", "mkdtemp", "mkstemp"}
INSIDE_ANOTHER = {"verify/selftest/selftest.py"}
DEADLINE_SECONDS = 60


def named_temporaries(source: str) -> set[str]:
    """Return the calls in a module that make something temporary with a name."""
    if not any(name in source for name in WITH_A_NAME):
        return set()  # Most modules: parsing all of them takes seconds.
    calls = (
        one.func for one in ast.walk(ast.parse(source)) if isinstance(one, ast.Call)
    )
    names = {
        one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "")
        for one in calls
    }
    return names & WITH_A_NAME


def test_every_temporary_folder_has_an_owner():
    ours = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if named_temporaries(path.read_text("utf-8"))
    }
    ours = {one for one in ours if not one.startswith(("temporary/", "recorder/"))}
    assert ours == INSIDE_ANOTHER


def test_one_without_an_owner_would_be_seen():
    assert named_temporaries("import tempfile\ntempfile.mkdtemp()")
    assert named_temporaries("with TemporaryDirectory() as name: pass")
    assert not named_temporaries("tempfile.TemporaryFile()")


def test_what_a_killed_reader_of_standard_input_leaves_goes_at_the_next_start(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "reprobundle", "verify", "-"],
        stdin=subprocess.PIPE,
        env={"TMPDIR": str(tmp_path), "PATH": ""},
    )
    assert process.stdin
    # More than the reader holds back, and no end: it waits for the rest.
    process.stdin.write(b"PK\3\4" + bytes(4 << 20))
    process.stdin.flush()
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not list(tmp_path.glob("*/*.zip")) and time.monotonic() < deadline:
        time.sleep(0.02)
    with owned_folder("reprobundle-test-", tmp_path):
        assert list(tmp_path.glob("reprobundle-stdin-*/*.zip"))
    process.kill()
    process.wait()
    process.stdin.close()
    assert list(tmp_path.glob("reprobundle-stdin-*"))
    with owned_folder("reprobundle-test-", tmp_path) as mine:
        assert list(tmp_path.iterdir()) == [mine]
