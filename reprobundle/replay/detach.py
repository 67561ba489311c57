"""Start a command that outlives its terminal, and say which process it is.

This file is also run by itself, as the process between the caller and the command:
it stands at the head of a new session and ends at once, so the command belongs to
nobody, can never get a terminal again, and leaves no zombie in the caller. It uses the
standard library alone, since it is started by its path.

A process id names a process only until it is given to another one; together with the
process's start time and the boot of the machine it does so for good.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

DOCUMENT_NAME = "job.json"
LOG_NAME = "output.log"
JOB_VARIABLE = "REPROBUNDLE_JOB"
TOOL_TIMEOUT_SECONDS = 20
# Linux tells about processes here; where it is missing, ``ps`` is asked.
PROC = Path("/proc")


def start_token(pid: int) -> str:
    """Return what tells this process from a later one of the same id.

    Linux: clock ticks since boot (field 22 of ``/proc/<pid>/stat``). Elsewhere: the
    start time as ``ps`` prints it. Empty when there is no such process, or when it has
    ended and only waits to be collected.
    """
    if _has_proc():
        fields = _stat_fields(pid)
        return "" if not fields or fields[0] in ("Z", "X") else fields[19]
    state, _, started = _output("ps", "-o", "stat=,lstart=", "-p", str(pid)).partition(
        " "
    )
    return "" if not state or state.startswith("Z") else " ".join(started.split())


def _has_proc() -> bool:
    return (PROC / "self" / "stat").exists()


def _stat_fields(pid: int) -> list[str]:
    """Return the fields behind the command name, which may hold blanks itself."""
    try:
        text = (PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()


def boot_id() -> str:
    """Return what changes at each start of the machine; empty when it is unknown."""
    with contextlib.suppress(OSError):
        return (PROC / "sys/kernel/random/boot_id").read_text().strip()
    return _output("/usr/sbin/sysctl", "-n", "kern.bootsessionuuid")


def descendants(pid: int) -> tuple[int, ...]:
    """Return the ids of all processes below `pid`, parents before children."""
    children: dict[int, list[int]] = {}
    for child, parent in _parents().items():
        children.setdefault(parent, []).append(child)
    found: list[int] = []
    waiting = [pid]
    while waiting:
        below = children.get(waiting.pop(0), [])
        found += below
        waiting += below
    return tuple(found)


def _parents() -> dict[int, int]:
    if _has_proc():
        pids = [int(one.name) for one in PROC.iterdir() if one.name.isdigit()]
        return {pid: int(fields[1]) for pid in pids if (fields := _stat_fields(pid))}
    lines = _output("ps", "-axo", "pid=,ppid=").splitlines()
    return {int(pid): int(parent) for pid, parent in map(str.split, lines)}


def _output(*command: str) -> str:
    try:
        done = subprocess.run(
            command,
            env={**os.environ, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=TOOL_TIMEOUT_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode(errors="replace").strip()


def write_document(path: Path, document: dict[str, Any]) -> None:
    """Write JSON so that a reader sees the old or the new document, never half."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("w", encoding="utf-8") as stream:
        json.dump(document, stream, indent=1, sort_keys=True)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(path)


def _main(folder: Path) -> None:
    """Become the job in `folder`; its description comes from the standard input.

    The standard output is a pipe to the caller: the job says there only what kept it
    from starting, and its closing tells the caller that the command runs.
    """
    document = json.load(sys.stdin)
    if os.fork() != 0:
        os._exit(0)
    os.setpgid(0, 0)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    # A shell starts background commands with interrupts ignored; `cancel` needs them.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    report = os.dup(1)  # Not inherited: it closes when the command starts.
    try:
        document["pid"] = os.getpid()
        document["process_start"] = start_token(os.getpid())
        document["boot"] = boot_id()
        _redirect(folder / LOG_NAME)
        os.environ[JOB_VARIABLE] = str(folder)
        write_document(folder / DOCUMENT_NAME, document)
        os.chdir(document["working_directory"])
        os.execvp(document["argv"][0], document["argv"])  # noqa: S606 - no shell wanted
    except OSError as error:
        with contextlib.suppress(OSError):
            os.write(report, str(error.strerror).encode())
    finally:
        os._exit(127)


def _redirect(log: Path) -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for source, target in ((null, 0), (output, 1), (output, 2)):
        os.dup2(source, target)


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
