"""Clear up after a process that was killed: end its commands, remove its folder.

This file is run by itself, beside the process that it guards, and uses the standard
library alone. It waits on a pipe whose other end only that process holds. The word
``done`` means that there is nothing to do; an end without it, that the process is dead:
the kernel closes the pipes of a killed process, and nothing else tells of its death
on every system.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

LAUNCHED_NAME = "launched.pid"
"""A file below a temporary folder that holds two process ids while a command runs:
its own and that of the process that started it."""

SESSION_VARIABLE = "REPROBUNDLE_SESSION"
"""Tells a command, and whatever it starts, the folder in which it is recorded."""

OWNER_NAME = ".owner"
"""A file in a temporary folder, locked as long as its process or its guard lives."""

PREFIX = "reprobundle-"
"""How the names of all temporary folders begin."""

CAN_LOCK = importlib.util.find_spec("fcntl") is not None
"""Whether this system has locks; without them nobody knows whose a folder is."""

DONE = b"done"
REMOVE_SECONDS = 30.0
GRACE_SECONDS = 5.0
_POLL_SECONDS = 0.05
_ROUNDS = 5
_PROC = Path("/proc")

Process = tuple[int, int, int]
"""Ids: of a process, of its parent, of its session."""


def launched_in(folder: Path, starter: int) -> set[int]:
    """Return the ids of the commands that run for the process that was killed.

    Args:
        folder: Where it says so.
        starter: Its id: what another one left there tells of long ago.
    """
    found = set()
    for where, _, files in os.walk(folder):
        if LAUNCHED_NAME in files:
            with contextlib.suppress(OSError, ValueError):
                pid, by = (Path(where) / LAUNCHED_NAME).read_text().split()
                if int(by) == starter:
                    found.add(int(pid))
    return found


def running_in(folder: Path) -> set[int]:
    """Return the ids of processes that a run below this folder started, on Linux.

    They are known by the variable that every recorded command has and hands on, so
    also where whoever started them is dead and their number may be another's by now.
    """
    mark = f"{SESSION_VARIABLE}={folder}{os.sep}".encode(errors="surrogateescape")
    found = set()
    for one in _PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):  # Another user's, or it has just ended.
            variables = (one / "environ").read_bytes().split(b"\0")
            if any(variable.startswith(mark) for variable in variables):
                found.add(int(one.name))
    return found


def processes() -> Iterator[Process]:
    """Yield every process that can be seen and has not ended."""
    if (_PROC / "self" / "stat").exists():
        yield from _from_proc()
        return
    done = subprocess.run(
        ["/bin/ps", "-axo", "pid=,ppid=,state="],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    for line in done.stdout.splitlines():
        pid, parent, state = line.split()[:3]
        with contextlib.suppress(OSError):
            if not state.startswith("Z"):
                yield int(pid), int(parent), os.getsid(int(pid))


def _from_proc() -> Iterator[Process]:
    for one in _PROC.iterdir():
        if not one.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            text = (one / "stat").read_text(errors="replace")
            # The command's name, in brackets, may hold blanks itself.
            state, parent, _, session, *_ = text.rpartition(")")[2].split()
            if state not in "ZX":
                yield int(one.name), int(parent), int(session)


def family(commands: set[int], seen: list[Process]) -> set[int]:
    """Return the processes of these commands: their sessions, and all below them.

    Args:
        commands: Each the first process of a session of its own.
        seen: From `processes`.
    """
    found = {pid for pid, _, session in seen if pid in commands or session in commands}
    while True:
        below = {pid for pid, parent, _ in seen if parent in found} - found
        if not below:
            return found
        found |= below


def end(
    commands: set[int],
    look: Callable[[], Iterator[Process]] = processes,
    *,
    grace_seconds: float = GRACE_SECONDS,
) -> None:
    """End the commands with all that they started: ask first, then kill.

    Args:
        commands: From `launched_in`.
        look: Returns the processes there are.
        grace_seconds: How long they may take to end by themselves.
    """
    if not commands:
        return
    known = family(commands, list(look()))
    _signal(known, signal.SIGTERM)
    deadline = time.monotonic() + grace_seconds
    while known and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
        known = family(commands | known, list(look()))
    for _ in range(_ROUNDS):  # What is started while others die.
        _signal(known, signal.SIGKILL)
        time.sleep(_POLL_SECONDS)
        known = family(commands | known, list(look()))


def _signal(pids: set[int], number: signal.Signals) -> None:
    for pid in pids - {os.getpid()}:
        with contextlib.suppress(OSError):
            os.kill(pid, number)


def remove_unlocked(path: Path) -> None:
    """Remove a file that was being written, unless somebody else writes it by now."""
    # Not at the top: `inspect` imports this module, on Windows too.
    import fcntl

    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
        finally:
            os.close(descriptor)


def claim(folder: Path) -> int:
    """Return the open file whose lock says that a temporary folder is in use."""
    import fcntl

    owner = os.open(folder / OWNER_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with contextlib.suppress(OSError):  # Not every file system can lock.
        os.write(owner, os.uname().nodename.encode())
        fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return owner


def remove_leftovers(where: Path) -> list[Path]:
    """Remove temporary folders whose process is gone, and end what runs there.

    Something still runs only if the process and its guard were killed at once.

    Args:
        where: The folder that they lie in.

    Returns:
        The folders.
    """
    if not CAN_LOCK:
        return []
    removed = []
    for folder, owner in abandoned_in(where):
        end(running_in(folder))
        shutil.rmtree(folder, ignore_errors=True)
        os.close(owner)
        removed.append(folder)
    return removed


def abandoned_in(where: Path) -> list[tuple[Path, int]]:
    """Return folders whose process is gone, with their locks, which are ours now."""
    found = ((folder, _abandoned(folder)) for folder in where.glob(f"{PREFIX}*"))
    return sorted((folder, owner) for folder, owner in found if owner >= 0)


def _abandoned(folder: Path) -> int:
    """Return the lock of a folder of ours that nobody holds; -1 if it is another's."""
    import fcntl

    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        seen = folder.lstat()
        if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.geteuid():
            return -1
        owner = os.open(folder / OWNER_NAME, flags)
    except OSError:
        return -1  # Of a release without owners, not ours, or just made.
    try:
        # Of a folder that machines share the locks may be seen by one of them only.
        ours = os.read(owner, 1024) == os.uname().nodename.encode()
        fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        ours = False
    if not ours:
        os.close(owner)
        return -1
    return owner


def _remove(folder: Path) -> None:
    """Remove a folder, also while somebody who does not know yet writes into it."""
    deadline = time.monotonic() + REMOVE_SECONDS
    while folder.exists() and time.monotonic() < deadline:
        shutil.rmtree(folder, ignore_errors=True)
        time.sleep(_POLL_SECONDS)


def main(starter: int, folder: Path, half_written: list[Path]) -> None:
    """Wait for the end of the guarded process; clear up unless it did so itself.

    Args:
        starter: Its id, which cannot be asked for: it may be dead by now.
        folder: Its temporary folder.
        half_written: What it may have been writing elsewhere.
    """
    os.chdir("/")
    if sys.stdin.buffer.read().strip() == DONE:
        return
    others = [left for left, _ in abandoned_in(folder.parent)]
    commands = [launched_in(one, starter) for one in (folder, *others)]
    running = [running_in(one) for one in (folder, *others)]
    end(set().union(*commands, *running))
    for one in (folder, *others):
        _remove(one)
    for path in half_written:
        remove_unlocked(path)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), [Path(path) for path in sys.argv[3:]])
