"""Run a Python program with a terminal as its standard output or standard error."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple

ROOT = Path(__file__).parents[2]


class Ran(NamedTuple):
    """What a program wrote to its terminal and to its pipe, and its exit status."""

    terminal: str
    pipe: str
    status: int


def run_on_terminal(
    program: str,
    *,
    columns: int = 100,
    stream: Literal["stdout", "stderr"] = "stdout",
    **environment: str,
) -> Ran:
    """Run `program` with `stream` as a terminal of that many columns."""
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: side}
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in {"NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES"}
    }
    with os.fdopen(main, "rb", buffering=0) as terminal:
        child = subprocess.Popen(
            [sys.executable, "-c", program],
            stdout=streams["stdout"],
            stderr=streams["stderr"],
            cwd=ROOT,
            env={**inherited, "TERM": "xterm", **environment},
        )
        os.close(side)
        shown = b"".join(iter(lambda: _block(terminal), b""))
        out, err = child.communicate()
    return Ran(
        terminal=shown.decode().replace("\r\n", "\n"),
        pipe=(err if stream == "stdout" else out).decode(),
        status=child.returncode,
    )


def _block(terminal: BinaryIO) -> bytes:
    try:
        return terminal.read(4096)
    except OSError:  # Linux reports the end of a terminal as an input error.
        return b""
