"""How the run stands, judged from what was written down and from its processes."""

import contextlib
import os
import signal
import sys
import time
from typing import Any

from reprobundle.handoff.far.files import (
    BLOCK_BYTES,
    POLL_SECONDS,
    now,
    read_json,
    root,
    say,
    write_json,
)
from reprobundle.handoff.far.machine import (
    boot_id,
    changes,
    disk_free,
    environment,
    start_token,
)

HEARTBEAT_SECONDS = 5.0
START_SECONDS = 60.0
CANCEL_SECONDS = 30.0
SETTLE_SECONDS = 10.0
ENDINGS = (0, 10, 11, 12)


def standing(folder: str) -> "dict[str, Any]":
    """Return how the run stands.

    ``none``, ``starting``, ``running``, ``finished`` (it came to a verdict), ``failed``
    (it ended without one), ``killed`` (by a signal), ``crashed`` (gone without a word),
    ``rebooted`` (the machine started anew meanwhile) or ``cancelled``.
    """
    job = os.path.join(folder, "job")
    if not os.path.isdir(job):
        return {"state": "none"}
    # The process is looked at first: an end written after that look is then not missed.
    process = read_json(os.path.join(job, "job.json"))
    keeper = read_json(os.path.join(job, "keeper.json"))
    asked = read_json(os.path.join(job, "request.json")) or {}
    runs = alive(process)
    kept = alive(keeper)
    ended = read_json(os.path.join(job, "exit.json"))
    cancelled = os.path.exists(os.path.join(job, "cancelled.json"))
    boot = (process or keeper or asked).get("boot", "")
    if ended is not None:
        state = ending(ended, cancelled)
    elif boot and boot != boot_id():
        state = "rebooted"
    elif runs or (kept and process):
        state = "running"
    elif kept or (not keeper and age(job) < START_SECONDS):
        state = "starting"
    else:
        state = "cancelled" if cancelled else "crashed"
    return {"state": state, "ended": ended, "process": process, "asked": asked}


def settle(folder: str) -> None:
    """Wait until the keeper of a run that has ended writes nothing more, or end it.

    All it still does then is to ask for the packages, which can hang.
    """
    keeper = read_json(os.path.join(folder, "job", "keeper.json"))
    deadline = time.monotonic() + SETTLE_SECONDS
    while alive(keeper) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    if keeper and alive(keeper):
        with contextlib.suppress(OSError):
            os.kill(keeper["pid"], signal.SIGKILL)


def ending(ended: "dict[str, Any]", cancelled: bool) -> str:
    """Return the state of a run that was seen to end."""
    if cancelled:
        return "cancelled"
    if ended.get("signal"):
        return "killed"
    return "finished" if ended.get("status") in ENDINGS else "failed"


def alive(process: "dict[str, Any] | None") -> bool:
    """Whether that very process still runs."""
    if not process or (process.get("boot") and process["boot"] != boot_id()):
        return False
    return start_token(process["pid"]) == (process["process_start"] or None)


def age(path: str) -> float:
    """Return how long ago a folder was changed, in seconds."""
    return time.time() - os.stat(path).st_mtime


def status(request: "dict[str, Any]") -> "dict[str, Any]":
    """Return how the run stands, with all that a judgement of it needs."""
    folder = root(request)
    found = standing(folder)
    job = os.path.join(folder, "job")
    found["exists"] = os.path.isdir(folder)
    found["boot"] = boot_id()
    found["clock"] = time.time()
    found["disk_free_bytes"] = disk_free(folder)
    for name in ("progress", "result", "heartbeat", "cancelled"):
        found[name] = read_json(os.path.join(job, name + ".json"))
    found["notes"] = (read_json(os.path.join(job, "notes.json")) or {}).get("notes", [])
    asked = found.get("asked") or {}
    found["changes"] = []
    if asked:
        found["changes"] = changes(
            asked.get("environment", {}), environment(asked.get("python", ""))
        )
    record = os.path.join(job, "record.rpr.zip")
    found["record_bytes"] = os.path.getsize(record) if os.path.exists(record) else 0
    log = os.path.join(job, "output.log")
    found["log_bytes"] = os.path.getsize(log) if os.path.exists(log) else 0
    found["log_tail"] = tail(log)
    older = os.path.join(folder, "attempts")
    found["attempts"] = len(os.listdir(older)) if os.path.isdir(older) else 0
    return found


def tail(path: str) -> str:
    """Return the last lines of a log."""
    try:
        with open(path, "rb") as stream:
            stream.seek(max(0, os.path.getsize(path) - 2000))
            return stream.read().decode(errors="replace")
    except OSError:
        return ""


def logs(request: "dict[str, Any]") -> None:
    """Send the log from an offset on, piece by piece; follow it while the run lasts."""
    folder = root(request)
    path = os.path.join(folder, "job", "output.log")
    offset = request["offset"]
    quiet = time.monotonic()
    while True:
        runs = standing(folder)["state"] in ("running", "starting")
        size = os.path.getsize(path) if os.path.exists(path) else 0
        if size > offset:
            with open(path, "rb") as stream:
                stream.seek(offset)
                block = stream.read(BLOCK_BYTES)
            say({"bytes": len(block)})
            sys.stdout.buffer.write(block)
            sys.stdout.buffer.flush()
            offset += len(block)
            quiet = time.monotonic()
        elif not (runs and request["follow"]):
            break
        else:
            if time.monotonic() - quiet > HEARTBEAT_SECONDS:
                # A reader that is gone is noticed only by writing to it.
                say({"bytes": 0})
                quiet = time.monotonic()
            time.sleep(POLL_SECONDS)
    say({"bytes": 0, "end": True})


def cancel(request: "dict[str, Any]") -> "dict[str, Any]":
    """Interrupt the run; kill it with its whole session if it goes on."""
    folder = root(request)
    found = standing(folder)
    if found["state"] not in ("running", "starting"):
        return {"cancelled": False}
    write_json(os.path.join(folder, "job", "cancelled.json"), {"requested": now()})
    process = found["process"]
    for number in (signal.SIGINT, signal.SIGKILL):
        if process and alive(process):
            target = os.kill if number == signal.SIGINT else os.killpg
            with contextlib.suppress(OSError):
                target(process["pid"], number)
        deadline = time.monotonic() + CANCEL_SECONDS
        while time.monotonic() < deadline:
            if standing(folder)["state"] not in ("running", "starting"):
                return {"cancelled": True}
            time.sleep(POLL_SECONDS)
    return {"cancelled": standing(folder)["state"] == "cancelled"}
