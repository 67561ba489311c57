"""Which shared libraries of the system the process has loaded.

A lock of Python packages says nothing about them: the C library, a GPU driver, an
OpenMP runtime that a wheel expects to find.
"""

from __future__ import annotations

import os
import sys

from .facts import UnknownFactError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MAPS = "/proc/self/maps"
# Where systems and their package managers put libraries; what lies elsewhere belongs
# to an environment or a person.
_SYSTEM = ("/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/", "/usr/local/lib/", "/opt/")


def loaded() -> list[str]:
    """Return the paths of the system's shared libraries in this process, sorted.

    Raises:
        UnknownFactError: The system does not tell.
    """
    if not sys.platform.startswith("linux"):
        message = f"{sys.platform} does not list the libraries of a process"
        raise UnknownFactError(message)
    with open(MAPS, "rb") as lines:
        return select(os.fsdecode(line) for line in lines)


def select(lines: Iterable[str]) -> list[str]:
    """Return the system's libraries among the lines of a ``maps`` file."""
    own = tuple(
        os.path.join(os.path.realpath(folder), "")
        for folder in (sys.prefix, sys.base_prefix)
        # A Python of the system itself has no folder of its own.
        if os.path.realpath(folder) not in ("/", "/usr", "/usr/local")
    )
    found = set()
    for line in lines:
        path = line.rstrip("\n")[73:] if len(line) > 73 else ""
        name = path.rpartition("/")[2]
        if ".so" not in name or not path.startswith(_SYSTEM):
            continue
        if not path.startswith(own) and "-packages/" not in path:
            found.add(path.removesuffix(" (deleted)"))
    return sorted(found)
