"""Clear up after a process that was killed: end its commands, remove its folder.

This file is run by itself, beside the process that it guards, and uses the standard
library alone. It waits on a pipe whose other end only that process holds. The word
``done`` means that there is nothing to do; an end without it, that the process is dead:
the kernel closes the pipes of a killed process, and nothing else tells of its death
on every system.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

LAUNCHED_NAME = "launched.pid"
"""A file below the guarded folder that holds the id of a command while it runs."""

DONE = b"done"
GRACE_SECONDS = 5.0
_POLL_SECONDS = 0.05
_ROUNDS = 5
_PROC = Path("/proc")

Process = tuple[int, int, int]
"""Ids: of a process, of its parent, of its session."""


def launched_in(folder: Path) -> set[int]:
    """Return the ids of the commands that run for the process that was killed."""
    found = set()
    for where, _, files in os.walk(folder):
        if LAUNCHED_NAME in files:
            with contextlib.suppress(OSError, ValueError):
                found.add(int((Path(where) / LAUNCHED_NAME).read_text()))
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


def main(folder: Path, half_written: list[Path]) -> None:
    """Wait for the end of the guarded process; clear up unless it did so itself."""
    os.chdir("/")
    if sys.stdin.buffer.read().strip() == DONE:
        return
    end(launched_in(folder))
    shutil.rmtree(folder, ignore_errors=True)
    for path in half_written:
        remove_unlocked(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(path) for path in sys.argv[2:]])
