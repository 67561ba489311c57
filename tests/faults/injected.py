"""Run the command line until something happens to it: a kill, or a full disk.

Called as: injected.py MODE NUMBER PLACE VERB ARGUMENT...  What is counted are changes
of files, as Python's audit events and the calls of `os` tell of them; at the NUMBER-th
the fault strikes. MODE is

* ``count``: no fault; the count is written to PLACE;
* ``kill``: SIGKILL, in the middle of a write if it is one;
* ``limit``: from now on no file may grow beyond PLACE bytes (RLIMIT_FSIZE);
* ``full``: the file system of the file PLACE is filled up with it.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
from pathlib import Path

CHANGES = frozenset(
    {
        *("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink"),
        *("os.truncate", "os.chmod", "subprocess.Popen", "tempfile.mkdtemp"),
        *("os.posix_spawn", "os.putenv", "shutil.rmtree"),
    }
)
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Fault:
    """Counts, and strikes once."""

    def __init__(self, mode: str, number: int, place: str) -> None:
        self.mode, self.number, self.place = mode, number, place
        self.count = 0

    def passes(self) -> bool:
        """Count one change; return whether the fault is due."""
        self.count += 1
        return self.mode != "count" and self.count == self.number

    def strike(self) -> None:
        if self.mode == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.mode == "limit":
            _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (int(self.place), hard))
        else:
            place = Path(self.place)
            with contextlib.suppress(OSError), place.open("wb", 0) as filler:
                while filler.write(bytes(1 << 20)):
                    pass

    def heard(self, event: str, arguments: tuple[object, ...]) -> None:
        writes = event == "open" and isinstance(arguments[2], int)
        if writes and not arguments[2] & WRITING:  # type: ignore[operator]
            return
        if (writes or event in CHANGES) and self.passes():
            self.strike()

    def before(self, name: str):
        """Return the function of `os`, with the fault before it or in its middle."""
        real = getattr(os, name)

        def call(*arguments):
            if self.passes():
                if name == "pwrite" and self.mode == "kill":
                    descriptor, data, offset = arguments
                    real(descriptor, memoryview(data)[: len(data) // 2], offset)
                self.strike()
            return real(*arguments)

        return call


def main() -> int:
    from reprobundle.cli.group import run

    mode, number, place, *arguments = sys.argv[1:]
    fault = Fault(mode, int(number), place)
    for name in ("pwrite", "fsync", "ftruncate"):
        setattr(os, name, fault.before(name))
    sys.addaudithook(fault.heard)
    status = run(arguments)
    if mode == "count":
        Path(place).write_text(str(fault.count))
    return status


if __name__ == "__main__":
    sys.exit(main())
