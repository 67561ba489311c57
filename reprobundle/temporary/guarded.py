"""Temporary folders that go even when this process is killed."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from reprobundle.temporary import guard


@contextlib.contextmanager
def guarded_folder(prefix: str, *half_written: Path) -> Iterator[Path]:
    """Give a new temporary folder; at the end it is removed.

    If this process is killed, a process beside it ends the commands that were launched
    below the folder, removes it, and every `owned_folder` that is nobody's any more. If
    that process was killed too, as at a loss of power, the next one does so.

    Args:
        prefix: How its name begins, as ``reprobundle-pack-``.
        half_written: Files elsewhere that are removed if this process is killed.
    """
    guard.remove_leftovers(Path(tempfile.gettempdir()))
    folder = tempfile.TemporaryDirectory(prefix=prefix)
    where = Path(folder.name)
    with contextlib.ExitStack() as stack:
        owner = guard.claim(where)
        stack.callback(os.close, owner)
        stack.callback(_dismiss, _start([where, *half_written], owner))
        # Removed first: until it is gone there is something to guard.
        stack.callback(folder.cleanup)
        yield where


@contextlib.contextmanager
def owned_folder(prefix: str, within: Path | None = None) -> Iterator[Path]:
    """Give a new temporary folder in which no command of the user runs.

    At the end it is removed. If this process is killed, the guard of its
    `guarded_folder` removes it, or the next start of either kind.

    Args:
        prefix: How its name begins; ``reprobundle-`` first.
        within: Where it is made; the system's temporary folder by default.
    """
    where = Path(tempfile.gettempdir()) if within is None else within
    guard.remove_leftovers(where)
    with tempfile.TemporaryDirectory(prefix=prefix, dir=where) as name:
        owner = guard.claim(Path(name)) if guard.CAN_LOCK else None
        try:
            yield Path(name)
        finally:
            if owner is not None:
                os.close(owner)


@contextlib.contextmanager
def told_to_guard(pid: int, folder: Path) -> Iterator[None]:
    """Tell which process is to be ended if this one is killed in the block.

    Args:
        pid: The first process of a command.
        folder: In a `guarded_folder`, or an `owned_folder`.
    """
    told = folder / guard.LAUNCHED_NAME
    with contextlib.suppress(OSError):  # A full disk is told by what needs the room.
        told.write_text(f"{pid} {os.getpid()}")
    yield
    # Its number may soon be that of another process.
    with contextlib.suppress(OSError):
        told.unlink()


def _start(paths: Sequence[Path], owner: int) -> subprocess.Popen[bytes] | None:
    """Start the guard; without one only the next start clears up."""
    absolute = [str(path.absolute()) for path in paths]
    command = [sys.executable, "-I", "-S", guard.__file__, str(os.getpid())]
    try:
        return subprocess.Popen(
            [*command, *absolute],
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
