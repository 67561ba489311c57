"""What runs on the other machine: copy, install, start, watch, give back, remove.

This one file is sent over ssh with every request and needs nothing but a Python. It is
written so that Python 3.6 can read it: an old one has to be able to say that it is too
old. Nothing of this package is imported, for nothing of it is there yet; what it shares
with `reprobundle.replay.detach` is short and stands here again.

A request is one JSON line on the standard input; files follow it byte by byte. Every
answer is one JSON line behind `MARK`, since a login shell may print first.

Everything lies in one folder of the hand-off::

    bundle.rpb.zip  tool/  locked/    what was copied; NAME.part while it is
    venv/                             this package, unpacked from the wheels in tool/
    c/  t/                            cache and temporary folder of the replay
    job/                              the run: job.json, keeper.json, exit.json, …
    attempts/1/ …                     earlier runs that came to no end

`job` is made by mkdir, which only one of two callers can win: so no reconnecting ever
starts a second run. A process id counts together with the process's start time and the
boot of the machine.
"""

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
from typing import Any

from reprobundle.handoff.far.files import Refused, get, have, put, root, say
from reprobundle.handoff.far.job import keep, start
from reprobundle.handoff.far.machine import (
    ASK_PACKAGES,
    boot_id,
    disk_free,
    existing,
    memory_bytes,
    output,
    system_facts,
)
from reprobundle.handoff.far.packages import install, run
from reprobundle.handoff.far.standing import cancel, logs, settle, standing, status


def look(request: "dict[str, Any]") -> "dict[str, Any]":
    """Tell what this machine is and has; nothing is written."""
    folder = root(request)
    torch = ""
    if request.get("python"):
        lines = output(request["python"], "-I", "-c", ASK_PACKAGES).splitlines()
        torch = next((x[7:] for x in lines if x.startswith("torch==")), "")
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "executable": sys.executable,
        "facts": system_facts(),
        "libc": list(platform.libc_ver()),
        "mac": platform.mac_ver()[0],
        "disk_free_bytes": disk_free(folder),
        "memory": memory_bytes(),
        "torch": torch,
        "named_python": bool(request.get("python"))
        and os.access(request["python"], os.X_OK),
        "tools": [
            one for one in ("age", "gpg", "caffeinate", "uv") if shutil.which(one)
        ],
        "folder": folder,
        "writable": os.access(existing(folder), os.W_OK),
        "boot": boot_id(),
    }


def listing(request: "dict[str, Any]") -> "dict[str, Any]":
    """Return what the hand-off left here: each top entry with its size and files."""
    folder = root(request)
    entries = []
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        path = os.path.join(folder, name)
        count, size = weigh(path)
        entries.append({"path": path, "files": count, "size_bytes": size})
    return {"folder": folder, "exists": os.path.lexists(folder), "entries": entries}


def weigh(path: str) -> "tuple[int, int]":
    """Return the number of files at `path` and their bytes."""
    if not os.path.isdir(path) or os.path.islink(path):
        return 1, os.lstat(path).st_size
    count, size = 0, 0
    for top, _, names in os.walk(path):
        for name in names:
            count += 1
            size += os.lstat(os.path.join(top, name)).st_size
    return count, size


def clean(request: "dict[str, Any]") -> "dict[str, Any]":
    """Remove the folder of the hand-off, and its parents where they are empty."""
    folder = root(request)
    if standing(folder)["state"] in ("running", "starting"):
        raise Refused("the run has not ended: cancel it first")
    settle(folder)
    problems = []

    def make_removable(_: "Any", path: str, error: "Any") -> None:
        try:
            os.chmod(os.path.dirname(path), 0o700)
            os.chmod(path, 0o700)
            os.rmdir(path) if os.path.isdir(path) else os.remove(path)
        except OSError as again:
            problems.append(f"{path}: {again.strerror}")

    if os.path.lexists(folder):
        shutil.rmtree(folder, onerror=make_removable)
    for parent in (os.path.dirname(folder), os.path.dirname(os.path.dirname(folder))):
        try:
            if os.path.basename(parent) in ("handoff", ".reprobundle"):
                os.rmdir(parent)
        except OSError:
            break
    return {"problems": problems, "exists": os.path.lexists(folder)}


VERBS = {
    "look": look,
    "have": have,
    "put": put,
    "get": get,
    "install": install,
    "run": run,
    "start": start,
    "status": status,
    "logs": logs,
    "cancel": cancel,
    "listing": listing,
    "clean": clean,
}


def stopped(number: int, frame: "Any") -> None:
    """Tell that another call took over, and end."""
    say({"refused": "another hand-off took over", "errno": 0})
    os._exit(0)


def main() -> None:
    """Answer the request on the standard input."""
    signal.signal(signal.SIGTERM, stopped)
    os.umask(0o077)
    request = json.loads(sys.stdin.buffer.readline().decode())
    try:
        answer = VERBS[request["verb"]](request)
        if answer is not None:
            say(answer)
    except Refused as error:
        say({"refused": str(error), "errno": 0})
    except OSError as error:
        where = f" {error.filename}" if error.filename else ""
        text = f"{error.strerror or error}{where}"
        say({"refused": text, "errno": error.errno or 0})
    except subprocess.TimeoutExpired as error:
        say({"refused": f"no end within {error.timeout:.0f} s", "errno": 0})


if __name__ == "__main__":
    if sys.argv[1:2] == ["--keep"]:
        keep(sys.argv[2])
    else:
        main()
