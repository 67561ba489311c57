"""Count the Python processes of a run from outside.

The recorder sees only processes it entered; ``python -I``, ``env -i`` or a replaced
``PYTHONPATH`` keep it out without a trace. So the launcher watches the process tree
itself, and a Python that was seen here but left no events is a finding.

On Linux the tree is read from ``/proc`` every few milliseconds, and at once whenever
an interpreter file is opened (inotify): that is the moment before it is executed, and
the shortest Python lives ten times longer than one look takes. Elsewhere nothing is
watched and the record says so; the ``child`` events of entered processes are the only
count there.
"""

from __future__ import annotations

import contextlib
import os
import select
import sys
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

INTERVAL_SECONDS = 0.008
# After an interpreter file was opened its process still has to replace itself by it;
# for this long the tree is read again and again.
ALERT_SECONDS = 0.03
ALERT_INTERVAL_SECONDS = 0.001

_IN_OPEN = 0x20
_IN_NONBLOCK = 0o4000
_IN_CLOEXEC = 0o2000000


@dataclass(frozen=True)
class SeenProcess:
    """A Python process that was seen running.

    Attributes:
        pid: Its process id.
        parent_pid: The process that started it.
        argv: Its command line.
    """

    pid: int
    parent_pid: int
    argv: tuple[str, ...]


def is_python(executable: str) -> bool:
    """Tell whether `executable` is a Python interpreter, by its name."""
    name = executable.rpartition("/")[2].removesuffix(" (deleted)").lower()
    stem = name.removesuffix(".exe")
    for prefix in ("python", "pypy"):
        if stem.startswith(prefix):
            return stem[len(prefix) :].strip("0123456789.twm") == ""
    return False


def interpreters(search_path: str) -> frozenset[Path]:
    """Return the files of all interpreters on a search path, links followed.

    Args:
        search_path: Folders joined by colons, as in ``PATH``.
    """
    found = {Path(sys.executable).resolve()}
    for folder in search_path.split(os.pathsep):
        with contextlib.suppress(OSError):
            found.update(
                path.resolve()
                for path in Path(folder).iterdir()
                if is_python(path.name)
            )
    return frozenset(found)


class ProcessWatch:
    """Watch the descendants of one process for Python interpreters.

    Args:
        root_pid: The process whose tree is watched.
        alerts: Interpreter files whose opening calls for a look at once.
    """

    def __init__(self, root_pid: int, alerts: Iterable[Path] = ()) -> None:
        self.supported = sys.platform == "linux" and _children_file(root_pid).exists()
        self._root = root_pid
        self._seen: dict[int, SeenProcess] = {}
        self._alarm = _Alarm(alerts) if self.supported else None
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=self._poll, name="process-watch", daemon=True
        )
        if self.supported:
            self._thread.start()

    def stop(self) -> tuple[SeenProcess, ...]:
        """Stop watching and return the Python processes that were seen, by pid."""
        self._stop.set()
        if self.supported:
            self._thread.join()
        if self._alarm is not None:
            self._alarm.close()
        return tuple(self._seen[pid] for pid in sorted(self._seen))

    def _poll(self) -> None:
        alert_until = 0.0
        while not self._stop.is_set():
            self._visit(self._root, 0)
            alert = time.monotonic() < alert_until
            pause = ALERT_INTERVAL_SECONDS if alert else INTERVAL_SECONDS
            if self._alarm is not None and self._alarm.wait(pause):
                alert_until = time.monotonic() + ALERT_SECONDS

    def _visit(self, pid: int, parent_pid: int) -> None:
        try:
            executable = str(Path(f"/proc/{pid}/exe").readlink())
            children = [
                int(child)
                for task in Path(f"/proc/{pid}/task").iterdir()
                for child in (task / "children").read_text().split()
            ]
            argv = _argv(pid)
        except (OSError, ValueError):
            return  # It ended while it was being read.
        parent = self._seen.get(parent_pid)
        if not is_python(executable):
            self._seen.pop(pid, None)  # It was a Python only until it ran exec.
        elif parent is None or parent.argv != argv:
            self._seen[pid] = SeenProcess(pid=pid, parent_pid=parent_pid, argv=argv)
        # An equal command line is a fork of the parent, which the recorder follows by
        # itself, or the instant between fork and exec.
        for child in children:
            self._visit(child, pid)


class _Alarm:
    """Tells when one of some files is opened, by inotify(7)."""

    def __init__(self, files: Iterable[Path]) -> None:
        import ctypes  # a twentieth of a start-up, and few commands start a program

        libc = ctypes.CDLL(None, use_errno=True)
        self._fd = libc.inotify_init1(_IN_NONBLOCK | _IN_CLOEXEC)
        for file in files:
            # A file that cannot be watched only costs the early look.
            if self._fd >= 0:
                libc.inotify_add_watch(self._fd, os.fsencode(file), _IN_OPEN)

    def wait(self, seconds: float) -> bool:
        """Wait for at most `seconds`; return whether a file was opened."""
        if self._fd < 0:
            time.sleep(seconds)
            return False
        ready, _, _ = select.select([self._fd], [], [], seconds)
        if ready:
            with contextlib.suppress(BlockingIOError):
                while os.read(self._fd, 1 << 16):
                    pass
        return bool(ready)

    def close(self) -> None:
        """Give the descriptor back."""
        if self._fd >= 0:
            os.close(self._fd)


def _children_file(pid: int) -> Path:
    return Path(f"/proc/{pid}/task/{pid}/children")


def _argv(pid: int) -> tuple[str, ...]:
    raw = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0")
    return tuple(part.decode(errors="replace") for part in raw.split(b"\0"))
