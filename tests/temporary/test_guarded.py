"""A killed process leaves no command that runs on, and no folder."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from reprobundle.temporary import guard
from reprobundle.temporary.guard import OWNER_NAME, remove_leftovers
from reprobundle.temporary.guarded import guarded_folder, owned_folder

PREFIX = "reprobundle-test-"
DEADLINE_SECONDS = 60


@pytest.fixture(autouse=True)
def own_temporary_folder(tmp_path, monkeypatch):
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))


def waited(condition):
    """Return whether a condition comes true; no test asserts how fast."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def alive(pid):
    return pid in {one[0] for one in guard.processes()}


def test_a_block_that_ends_leaves_nothing(tmp_path):
    with guarded_folder(PREFIX) as folder:
        (folder / "copy").write_text("x")
    assert list(tmp_path.iterdir()) == []


def test_a_block_that_raises_leaves_nothing_and_no_process(tmp_path):
    before = {one[0] for one in guard.processes() if one[1] == os.getpid()}
    with pytest.raises(ValueError, match="bad"), guarded_folder(PREFIX):
        raise ValueError("bad")
    assert list(tmp_path.iterdir()) == []
    after = {one[0] for one in guard.processes() if one[1] == os.getpid()}
    assert after <= before


OWNER = textwrap.dedent(
    """
    import os, subprocess, sys, time
    from pathlib import Path
    from reprobundle.temporary.guarded import guarded_folder, told_to_guard
    part = Path(sys.argv[2])
    part.write_text("half")
    with guarded_folder(sys.argv[1], part) as folder:
        (folder / "deep" / "er").mkdir(parents=True)
        child = subprocess.Popen(
            ["sh", "-c", sys.argv[3]],
            env={**os.environ, "REPROBUNDLE_SESSION": str(folder / "deep")},
            start_new_session=True,
        )
        with told_to_guard(child.pid, folder / "deep"):
            print(folder, child.pid, flush=True)
            time.sleep(600)
    """
)


@contextlib.contextmanager
def owner(part, command):
    """Give a process that guards a folder while its command runs, and the two."""
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, PREFIX, part, command],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    try:
        folder, pid = process.stdout.readline().split()
        yield process, Path(folder), int(pid)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.parametrize(
    ("number", "first"), [(signal.SIGKILL, "trap '' TERM; "), (signal.SIGTERM, "")]
)
def test_a_killed_process_leaves_neither_command_nor_folder(tmp_path, number, first):
    part = tmp_path / ".x.part"
    # One child in a session of its own, as torchrun starts its workers; once all of
    # them do not hear what asks them to end.
    command = f"{first}setsid sleep 600 & sleep 601 & sleep 602"
    with owner(part, command) as (process, folder, pid):
        assert waited(lambda: len(guard.family({pid}, list(guard.processes()))) == 4)
        everybody = guard.family({pid}, list(guard.processes()))
        process.send_signal(number)
        assert waited(lambda: not folder.exists())
        assert waited(lambda: not part.exists())
        assert not [one for one in everybody if alive(one)]


@pytest.mark.linux
def test_what_runs_on_without_a_guard_is_ended_at_the_next_start(tmp_path):
    command = "setsid sleep 600 & sleep 601"
    with owner(tmp_path / ".x.part", command) as (process, folder, pid):
        assert waited(lambda: len(guard.family({pid}, list(guard.processes()))) == 3)
        everybody = guard.family({pid}, list(guard.processes()))
        (watcher,) = {
            one
            for one, parent, _ in guard.processes()
            if parent == process.pid and one != pid
        }
        os.kill(watcher, signal.SIGSTOP)  # It must not do anything in between.
        process.kill()
        os.kill(watcher, signal.SIGKILL)
        process.wait()
        assert waited(lambda: not alive(watcher))
        assert all(map(alive, everybody))
        assert guard.running_in(folder) == everybody
        assert guard.running_in(tmp_path / "reprobundle-test") == set()
        assert remove_leftovers(tmp_path) == [folder]
        assert not any(map(alive, everybody))
        assert not folder.exists()


def test_a_part_that_somebody_else_writes_by_now_is_left(tmp_path):
    part = tmp_path / ".x.part"
    part.write_text("mine")
    with part.open("rb") as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        guard.remove_unlocked(part)
        assert part.exists()
    guard.remove_unlocked(part)
    assert not part.exists()


def test_what_another_process_launched_long_ago_is_not_ended(tmp_path):
    (tmp_path / guard.LAUNCHED_NAME).write_text(f"7 {os.getpid()}")
    assert guard.launched_in(tmp_path, os.getpid()) == {7}
    assert guard.launched_in(tmp_path, 8) == set()
    (tmp_path / guard.LAUNCHED_NAME).write_text("7")
    assert guard.launched_in(tmp_path, os.getpid()) == set()


def test_only_the_family_of_a_command_is_ended():
    seen = [
        (1, 0, 1),
        (10, 1, 1),
        (20, 10, 20),
        (21, 20, 20),
        (22, 21, 22),
        (30, 1, 30),
    ]
    assert guard.family({20}, seen) == {20, 21, 22}
    assert guard.family({99}, seen) == set()


def test_the_next_start_removes_what_nobody_guards_any_more(tmp_path):
    (left := tmp_path / f"{PREFIX}left").mkdir()
    os.close(guard.claim(left))
    (old := tmp_path / f"{PREFIX}of-another-release").mkdir()
    (linked := tmp_path / f"{PREFIX}linked").symlink_to(old)
    (other := tmp_path / "other").mkdir()
    os.close(guard.claim(other))
    (far := tmp_path / f"{PREFIX}of-another-machine").mkdir()
    (far / OWNER_NAME).write_text("elsewhere")
    with guarded_folder(PREFIX) as mine:
        assert not left.exists()
        assert remove_leftovers(tmp_path) == []
        assert {mine, old, linked, other, far} == set(tmp_path.iterdir())


def test_a_folder_without_a_guard_goes_with_the_next_one(tmp_path):
    with owned_folder(PREFIX) as mine:
        assert remove_leftovers(tmp_path) == []
        assert mine.exists()
    assert list(tmp_path.iterdir()) == []
    (left := tmp_path / f"{PREFIX}lock-left").mkdir()
    os.close(guard.claim(left))
    with owner(tmp_path / ".x.part", "sleep 600") as (process, folder, _):
        assert not left.exists()
        left.mkdir()
        os.close(guard.claim(left))
        process.kill()
        assert waited(lambda: not folder.exists() and not left.exists())


def test_a_folder_whose_guard_lives_is_left(tmp_path):
    """The process may be dead and its guard still at work."""
    with owner(tmp_path / ".x.part", "sleep 600") as (process, folder, pid):
        assert remove_leftovers(tmp_path) == []
        process.kill()
        assert waited(lambda: not folder.exists() and not alive(pid))
