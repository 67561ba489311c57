"""A temporary folder that goes even when this process is killed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from reprobundle.format.exclusive import try_lock
from reprobundle.run import guard

OWNER_NAME = ".owner"
"""A file in the folder, locked as long as its process or the guard of it lives."""


@contextlib.contextmanager
def guarded_folder(prefix: str, *half_written: Path) -> Iterator[Path]:
    """Give a new temporary folder; at the end it is removed.

    If this process is killed, a process beside it ends the commands that were launched
    below the folder and removes it. If that was killed too, as at a loss of power, the
    next folder of the prefix takes the old one away.

    Args:
        prefix: How its name begins, as ``reprobundle-pack-``.
        half_written: Files elsewhere that are removed if this process is killed.
    """
    remove_leftovers(Path(tempfile.gettempdir()), prefix)
    folder = tempfile.TemporaryDirectory(prefix=prefix)
    where = Path(folder.name)
    with contextlib.ExitStack() as stack:
        owner = _claim(where)
        stack.callback(os.close, owner)
        stack.callback(_dismiss, _start([where, *half_written], owner))
        # Removed first: until it is gone there is something to guard.
        stack.callback(folder.cleanup)
        yield where


def _claim(folder: Path) -> int:
    owner = os.open(folder / OWNER_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with contextlib.suppress(OSError):  # Not every file system can lock.
        fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return owner


def _start(paths: Sequence[Path], owner: int) -> subprocess.Popen[bytes] | None:
    """Start the guard; without one only the next start clears up."""
    absolute = [str(path.absolute()) for path in paths]
    command = [sys.executable, "-I", "-S", guard.__file__, *absolute]
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[owner],
            start_new_session=True,
        )
    except OSError:
        return None


def _dismiss(watcher: subprocess.Popen[bytes] | None) -> None:
    if watcher is not None:
        with contextlib.suppress(OSError):
            watcher.communicate(guard.DONE)


def remove_leftovers(where: Path, prefix: str) -> list[Path]:
    """Remove folders whose process is gone; return them.

    Args:
        where: The folder that they lie in.
        prefix: How their names begin.
    """
    removed = []
    for folder in sorted(where.glob(f"{prefix}*")):
        owner = _abandoned(folder)
        if owner < 0:
            continue
        shutil.rmtree(folder, ignore_errors=True)
        os.close(owner)
        removed.append(folder)
    return removed


def _abandoned(folder: Path) -> int:
    """Return the lock of a folder of ours that nobody holds; -1 if it is another's."""
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        seen = folder.lstat()
        if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.geteuid():
            return -1
        owner = os.open(folder / OWNER_NAME, flags)
    except OSError:
        return -1  # Of a release without owners, not ours, or just made.
    try:
        if try_lock(owner):
            return owner
    except OSError:
        pass
    os.close(owner)
    return -1
