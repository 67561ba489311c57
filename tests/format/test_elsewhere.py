"""A bundle is read where POSIX's own modules and calls are missing, as on Windows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BUNDLE = next(
    (Path(__file__).parents[1] / "vectors" / "verdict").glob("nan_in*/bundle.rpb.zip")
)

# The standard library decides by the system's name which calls it uses, so it is loaded
# before they go; `reprobundle` then finds what it would find on Windows.
WITHOUT_POSIX = """
import sys, os, signal, subprocess, tempfile, pathlib, shutil, zipfile, random, socket
import io, contextlib, json
for name in ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog"):
    sys.modules[name] = None
for name in (
    "fork", "forkpty", "pread", "pwrite", "preadv", "pwritev", "O_NOFOLLOW",
    "O_CLOEXEC", "O_NONBLOCK", "O_DIRECTORY", "sched_getaffinity", "killpg", "setsid",
    "getpgrp", "geteuid", "getuid", "getgid", "getloadavg", "sysconf", "wait4",
    "mkfifo", "chown", "fchmod", "openpty", "posix_spawn", "copy_file_range",
):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGKILL", "SIGHUP", "SIGALRM", "SIGUSR1", "SIGCHLD", "setitimer"):
    if hasattr(signal, name):
        delattr(signal, name)
from reprobundle.cli import run
for words in json.loads(sys.argv[1]):
    out, err = io.TextIOWrapper(io.BytesIO()), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = run(words)
        out.flush()
    shown = out.buffer.getvalue().decode()
    print(json.dumps([status, shown, err.getvalue()]))
"""


def without_posix(*calls, given=None):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_POSIX, json.dumps(calls)],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL if given is None else given,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("elsewhere")
    copy = folder / "x.rpb.zip"
    copy.write_bytes(BUNDLE.read_bytes())
    bundle, out = str(copy), str(folder / "out")
    calls = (
        ["inspect", bundle],
        ["verify", "--deep", bundle],
        ["report", bundle, "-o", str(folder / "r.html")],
        ["diff", bundle],
        ["extract", bundle, "--into", out],
        ["cat", bundle, "project/a.py"],
        ["detach", bundle, "0" * 64],
        ["replay", bundle, "--yes"],
    )
    return folder, {
        call[0]: answer
        for call, answer in zip(calls, without_posix(*calls), strict=True)
    }


def test_reading_gives_the_same_answers(answers):
    _, told = answers
    assert "VERDICT  REPRODUCED WITH WARNINGS (exit 12)" in told["verify"][1]
    assert told["inspect"][0] == 0
    assert told["report"][0] == 12
    assert told["diff"][0] in {0, 10}
    assert told["cat"] == [0, "import torch\n", ""]
    assert told["extract"][0] == 0


def test_a_bundle_comes_through_standard_input():
    with BUNDLE.open("rb") as given:
        ((status, shown, errors),) = without_posix(["verify", "-"], given=given)
    assert (status, errors) == (12, "")
    assert "VERDICT  REPRODUCED WITH WARNINGS" in shown


def test_files_are_written_whole(answers):
    folder, _ = answers
    assert (folder / "out" / "project" / "a.py").read_bytes() == b"import torch\n"
    assert (folder / "r.html").read_text("utf-8").rstrip().endswith("</html>")
    assert {one.name for one in folder.iterdir()} == {"out", "r.html", "x.rpb.zip"}


def test_what_needs_more_says_so_in_one_line(answers):
    folder, told = answers
    for verb, reason in (("detach", "no locks"), ("replay", "needs Linux or macOS")):
        status, shown, errors = told[verb]
        assert (status, shown) == (20, "")
        assert reason in errors
        assert len(errors.splitlines()) == 1
    assert (folder / "x.rpb.zip").read_bytes() == BUNDLE.read_bytes()
