"""Run verbs under hard limits of the system, and say what they took.

Called as a program with a bundle and a folder: prints one JSON line for each verb. The
limits kill, the figures are for the test to judge.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import resource
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

MOST_MEMORY_BYTES = 1536 << 20
"""What docs/hardening.md declares: resident memory."""

ADDRESSES_BYTES = 4 << 30
"""Addresses, not memory: libraries and the stacks of threads reserve many."""

MOST_FILES = 32
MOST_SECONDS = 300
"""Of processor time, for one verb."""

VERBS = (
    ("inspect", "--verbose"),
    ("verify", "--integrity"),
    ("verify", "--deep"),
    ("report", "--format", "html", "-o", "{folder}/report.html"),
    ("report", "--format", "junit", "-o", "{folder}/report.xml"),
    ("diff",),
    ("extract", "--into", "{folder}/extracted"),
)


def peak_bytes() -> int:
    """Return the high-water mark of this process's own memory."""
    text = Path("/proc/self/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", text)
    return int(found[1]) << 10 if found else 0


@contextlib.contextmanager
def watched_disk(folder: Path) -> Iterator[list[int]]:
    """Yield the most bytes that files of this process took outside of `folder`."""
    most = [0]
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.01):
            total = 0
            for link in Path("/proc/self/fd").iterdir():
                with contextlib.suppress(OSError):
                    if str(link.readlink()).endswith("(deleted)"):
                        total += link.stat().st_blocks * 512
            most[0] = max(most[0], total)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield most
    finally:
        done.set()
        thread.join()


def main() -> None:
    """Run every verb on the bundle, in a process that the system bounds."""
    bundle, folder = sys.argv[1:3]
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES_BYTES,) * 2)
    resource.setrlimit(resource.RLIMIT_NOFILE, (MOST_FILES,) * 2)
    resource.setrlimit(resource.RLIMIT_CPU, (len(VERBS) * MOST_SECONDS,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    from reprobundle.cli import run

    for verb, *options in VERBS:
        words = [word.format(folder=folder) for word in options]
        out, err = io.StringIO(), io.StringIO()
        start = time.process_time()
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            watched_disk(Path(folder)) as temporary,
        ):
            status = run([verb, bundle, *words])
        taken = {
            "verb": " ".join((verb, *options)),
            "status": status,
            "out": out.getvalue()[-300:],
            "err": err.getvalue()[-2000:],
            "seconds": time.process_time() - start,
            "peak_bytes": peak_bytes(),
            "temporary_bytes": temporary[0],
            "open_files": len(list(Path("/proc/self/fd").iterdir())) - 1,
        }
        sys.stdout.write(f"{json.dumps(taken)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
