"""Read and write at a position of an open file, on systems without such calls too.

Windows has neither ``pread`` nor some flags of ``open``. What stands for them here lets
a bundle be read there. A change of a bundle needs locks as well, which are left to
Linux and macOS (`reprobundle.format.exclusive`).
"""

from __future__ import annotations

import os
import threading
from functools import cache

# Where reading means moving first, no other thread may move in between.
_moving = threading.Lock()


def read_at(descriptor: int, count: int, offset: int) -> bytes:
    """Return at most `count` bytes from `offset` on, from several threads at once."""
    if hasattr(os, "pread"):
        return os.pread(descriptor, count, offset)
    with _moving:
        os.lseek(descriptor, offset, os.SEEK_SET)
        return os.read(descriptor, count)


def write_at(descriptor: int, data: bytes | memoryview, offset: int) -> int:
    """Write from `offset` on and return how many bytes were written."""
    if hasattr(os, "pwrite"):
        return os.pwrite(descriptor, data, offset)
    with _moving:
        os.lseek(descriptor, offset, os.SEEK_SET)
        return os.write(descriptor, data)


@cache
def flags(*names: str) -> int:
    """Return those of the flags of ``open`` that this system has, for bytes.

    Args:
        names: Such as ``O_NOFOLLOW``. Windows opens as text unless told otherwise.
    """
    wanted = (*names, "O_CLOEXEC", "O_BINARY", "O_NOINHERIT")
    total = 0
    for name in wanted:
        total |= getattr(os, name, 0)
    return total
