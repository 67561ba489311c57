"""Open a file for change while no other process of ours changes it."""

from __future__ import annotations

import os
import time
from pathlib import Path

from reprobundle.errors import BadCallError, EnvironmentUnusableError
from reprobundle.format.positions import flags

try:
    import fcntl
except ImportError:  # Windows
    HAS_LOCKS = False
else:
    HAS_LOCKS = True

LOCK_SECONDS = 60.0
"""How long a change waits for that of another process, which takes a moment."""

_POLL_SECONDS = 0.05


def open_exclusively(path: Path) -> int:
    """Return a descriptor of the file at `path`; whoever closes it lets others in.

    The kernel closes that of a dead process.

    Raises:
        BadCallError: Another process changes the file, and does not come to an end.
        EnvironmentUnusableError: This system has no such locks.
        OSError: As the system does.
    """
    if not HAS_LOCKS:
        raise EnvironmentUnusableError(
            f"{path.name} cannot be changed here: this system has no locks for it",
            advice="change it on Linux or macOS; reading it works everywhere",
        )
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        descriptor = os.open(path, flags("O_RDWR"))
        try:
            _lock(descriptor, path, deadline)
            if has_name(descriptor, path):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _lock(descriptor: int, path: Path, deadline: float) -> None:
    while not try_lock(descriptor):
        if time.monotonic() > deadline:
            raise BadCallError(
                f"{path.name} is being changed by another process",
                advice="wait until it has ended",
            )
        time.sleep(_POLL_SECONDS)


def try_lock(descriptor: int) -> bool:
    """Lock an open file or folder, unless another process has; return whether."""
    if not HAS_LOCKS:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def has_name(descriptor: int, path: Path) -> bool:
    """Whether the name is still that of the open file.

    It may have been given to another one while we waited, as `pack --force` does: to
    change the old one then would lose the change.
    """
    mine, named = os.fstat(descriptor), path.stat()
    return (mine.st_dev, mine.st_ino) == (named.st_dev, named.st_ino)
