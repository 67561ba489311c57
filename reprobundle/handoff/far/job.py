"""Start the run once, keep watch over it without a connection, write down its end."""

import contextlib
import fcntl
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from typing import Any

from reprobundle.handoff.far.files import (
    POLL_SECONDS,
    Refused,
    now,
    read_json,
    root,
    write_json,
)
from reprobundle.handoff.far.machine import (
    boot_id,
    changes,
    disk_free,
    environment,
    start_token,
)
from reprobundle.handoff.far.packages import variables
from reprobundle.handoff.far.standing import HEARTBEAT_SECONDS, START_SECONDS, standing

# Kept free by a file, so that the end can be written down on a full disk too.
RESERVE_BYTES = 1 << 16


def start(request: "dict[str, Any]") -> "dict[str, Any]":
    """Start the run if there is none; two callers at once start one.

    With ``again`` a run that has ended is put aside and another one started.
    """
    folder = root(request)
    job = os.path.join(folder, "job")
    with open(os.path.join(folder, "start.lock"), "w") as claim:
        fcntl.flock(claim, fcntl.LOCK_EX)
        before = standing(folder)
        notes = list(request.get("notes", []))
        if before["state"] != "none":
            if not request.get("again") or before["state"] in ("running", "starting"):
                return {"started": False}
            notes += put_aside(folder, job, before, request["python"])
        os.mkdir(job, 0o700)
        write_json(os.path.join(job, "notes.json"), {"notes": notes})
        write_json(os.path.join(job, "request.json"), asked_for(request, folder))
        start_keeper(folder, job)
        deadline = time.monotonic() + START_SECONDS
        while standing(folder)["state"] == "starting" and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
    return {"started": True, "notes": notes}


def asked_for(request: "dict[str, Any]", folder: str) -> "dict[str, Any]":
    """Return what the run is, and what the machine was when it was asked for."""
    return {
        "argv": [one.replace("{folder}", folder) for one in request["argv"]],
        "before": [
            [os.path.expanduser(part.replace("{folder}", folder)) for part in one]
            for one in request["before"]
        ],
        "remove": request["remove"],
        "options": request["options"],
        "python": request["python"],
        "bundle": request["bundle"],
        "boot": boot_id(),
        "requested": now(),
        "environment": environment(request["python"]),
    }


def start_keeper(folder: str, job: str) -> None:
    """Start the process that keeps watch, in a session of its own."""
    agent = os.path.join(folder, "agent.py")
    with open(os.path.join(job, "keeper.log"), "ab") as log:
        subprocess.Popen(
            [sys.executable, "-I", "-S", agent, "--keep", folder],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd=folder,
        )


def put_aside(
    folder: str, job: str, before: "dict[str, Any]", python: str
) -> "list[dict[str, str]]":
    """Keep an earlier attempt, and return what the next one's record has to say."""
    older = os.path.join(folder, "attempts")
    os.makedirs(older, mode=0o700, exist_ok=True)
    number = len(os.listdir(older)) + 1
    asked = read_json(os.path.join(job, "request.json")) or {}
    os.rename(job, os.path.join(older, str(number)))
    notes = []
    if before["state"] != "finished":
        started = asked.get("requested", "at an unknown time")
        text = f"attempt {number}, started {started}, had no verdict: {before['state']}"
        notes.append({"id": "handoff-interrupted", "where": "", "text": text})
    for one in changes(asked.get("environment", {}), environment(python)):
        text = f"since attempt {number}: {one}"
        notes.append({"id": "handoff-environment-changed", "where": "", "text": text})
    return notes


def keep(folder: str) -> None:
    """Run the job of `folder`, write down how it stands, and how it ended."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    job = os.path.join(folder, "job")
    asked = read_json(os.path.join(job, "request.json")) or {}
    me = {"pid": os.getpid(), "process_start": start_token(os.getpid())}
    write_json(os.path.join(job, "keeper.json"), dict(me, boot=boot_id()))
    reserve = os.path.join(job, "reserve")
    with open(reserve, "wb") as stream:
        stream.write(os.urandom(RESERVE_BYTES))
    try:
        prepare(job, asked["before"])
        child = launch(folder, job, asked["argv"])
    except (OSError, Refused) as error:
        ended: dict[str, Any] = {"problem": f"it cannot be started: {error}"}
        remove_plain(folder, asked["remove"])
        write_json(os.path.join(job, "exit.json"), dict(ended, ended=now()))
        return
    write_json(os.path.join(job, "job.json"), described(child.pid, asked, folder))
    if shutil.which("caffeinate"):
        subprocess.Popen(["caffeinate", "-i", "-w", str(child.pid)])
    least_free = watch(child, job)
    remove_plain(folder, asked["remove"])
    os.remove(reserve)
    status = child.returncode
    ended = {
        "status": status if status >= 0 else None,
        "signal": -status if status < 0 else 0,
        "ended": now(),
        "least_free_bytes": least_free,
    }
    # Written twice: the packages are asked for, which can hang, after the end is safe.
    write_json(os.path.join(job, "exit.json"), ended)
    ended["environment"] = environment(asked["python"])
    write_json(os.path.join(job, "exit.json"), ended)


def prepare(job: str, commands: "list[list[str]]") -> None:
    """Run what has to be done before the replay; its output goes into the log."""
    with open(os.path.join(job, "output.log"), "ab") as log:
        for argv in commands:
            done = subprocess.run(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False
            )
            if done.returncode != 0:
                raise Refused(f"{argv[0]} ended with status {done.returncode}")


def remove_plain(folder: str, names: "list[str]") -> None:
    """Remove what may lie here only while the replay runs."""
    for name in names:
        with contextlib.suppress(OSError):
            os.remove(os.path.join(folder, name))


def launch(folder: str, job: str, argv: "list[str]") -> "subprocess.Popen[bytes]":
    """Start the replay in a session of its own, with its output in the log."""
    extra = {
        "REPROBUNDLE_JOB": job,
        "REPROBUNDLE_HANDOFF": os.path.join(job, "notes.json"),
    }
    with open(os.path.join(job, "output.log"), "ab") as log:
        return subprocess.Popen(
            argv,
            cwd=folder,
            env=dict(variables(folder), **extra),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def described(pid: int, asked: "dict[str, Any]", folder: str) -> "dict[str, Any]":
    """Return the description of the running process, as replay's own jobs have it."""
    return {
        "name": os.path.basename(folder),
        "bundle": asked["bundle"],
        "argv": asked["argv"],
        "working_directory": folder,
        "started": now(),
        "host": platform.node(),
        "pid": pid,
        "process_start": start_token(pid),
        "boot": boot_id(),
    }


def watch(child: "subprocess.Popen[bytes]", job: str) -> int:
    """Wait for the end with a heartbeat, and return the least free space seen."""
    least = disk_free(job)
    told = 0.0
    while child.poll() is None:
        if time.monotonic() - told >= HEARTBEAT_SECONDS or not told:
            told = time.monotonic()
            least = min(least, disk_free(job))
            try:
                write_json(
                    os.path.join(job, "heartbeat.json"),
                    {"at": time.time(), "free_bytes": disk_free(job)},
                )
            except OSError:
                least = 0
        time.sleep(POLL_SECONDS)
    return min(least, disk_free(job))
