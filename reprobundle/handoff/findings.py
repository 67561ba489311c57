"""What the state of a run on the other machine means: never more than was seen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from reprobundle.run.space import RESERVE_BYTES, format_bytes

STALE_SECONDS = 60.0
MOST_CHANGES = 8
OVER = ("finished", "failed", "killed", "crashed", "rebooted", "cancelled")
# After these a run can only be started anew.
BROKEN = ("failed", "killed", "crashed", "rebooted", "cancelled")
_FULL = ("no space left on device", "disk quota exceeded", "errno 28")


class Finding(NamedTuple):
    """Something that a person has to know about a run.

    Attributes:
        name: Stable name, such as ``host-rebooted``.
        text: One sentence.
    """

    name: str
    text: str


def findings(status: dict[str, Any]) -> tuple[Finding, ...]:
    """Return what the agent's answer to ``status`` shows."""
    return (
        *_ending(status),
        *_disk(status),
        *_heartbeat(status),
        *_environment(status),
        *_attempts(status),
    )


def _ending(status: dict[str, Any]) -> Iterator[Finding]:
    state, ended = status["state"], status.get("ended") or {}
    if state == "rebooted":
        yield Finding(
            "host-rebooted",
            "the machine was started anew while the replay ran: its boot is not the "
            "one that the replay began in",
        )
    elif state == "killed":
        yield Finding(
            "process-killed",
            f"the replay was ended by signal {ended.get('signal')} from outside",
        )
    elif state == "crashed":
        yield Finding(
            "process-vanished",
            "the replay and what watched it are gone without a word: killed, or the "
            "system ran out of memory",
        )
    elif state == "failed" and ended.get("problem"):
        yield Finding("not-started", str(ended["problem"]))
    elif state == "failed":
        words = str((status.get("result") or {}).get("verdict") or _last_line(status))
        yield Finding(
            "no-verdict",
            f"the replay ended with status {ended.get('status')}: {words}",
        )
    elif state == "cancelled":
        yield Finding("cancelled", "the replay was told to end")


def _last_line(status: dict[str, Any]) -> str:
    lines = [line for line in str(status.get("log_tail", "")).splitlines() if line]
    return lines[-1] if lines else "it printed nothing"


def _disk(status: dict[str, Any]) -> Iterator[Finding]:
    ended = status.get("ended") or {}
    beat = status.get("heartbeat") or {}
    told = str(status.get("log_tail", "")).lower()
    least = ended.get("least_free_bytes", beat.get("free_bytes"))
    if any(sign in told for sign in _FULL):
        yield Finding("disk-full", "the disk there was full: something was not written")
    elif least is not None and least < RESERVE_BYTES:
        yield Finding(
            "disk-full", f"the disk there came down to {format_bytes(least)} free"
        )


def _heartbeat(status: dict[str, Any]) -> Iterator[Finding]:
    beat = status.get("heartbeat") or {}
    if status["state"] != "running" or "at" not in beat:
        return
    silent = float(status["clock"]) - float(beat["at"])
    if silent > STALE_SECONDS:
        yield Finding(
            "no-heartbeat",
            f"the process is there and has not been heard of for {silent:.0f} s: the "
            "machine slept, or hangs",
        )


def _environment(status: dict[str, Any]) -> Iterator[Finding]:
    before = (status.get("asked") or {}).get("environment") or {}
    after = (status.get("ended") or {}).get("environment")
    while_it_ran = _changes(before, after) if after else []
    if while_it_ran:
        yield Finding(
            "environment-changed",
            f"while it ran the environment there changed: {_some(while_it_ran)}",
        )
    since = [one for one in status.get("changes", ()) if one not in while_it_ran]
    if since:
        yield Finding(
            "environment-changed-since",
            f"since it was started the environment there changed: {_some(since)}",
        )


def _changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    from reprobundle.handoff.far.machine import changes

    return changes(before, after)


def _some(found: list[str]) -> str:
    more = len(found) - MOST_CHANGES
    return ", ".join(found[:MOST_CHANGES]) + (f" and {more} more" if more > 0 else "")


def _attempts(status: dict[str, Any]) -> Iterator[Finding]:
    for note in status.get("notes", ()):
        yield Finding(str(note["id"]), str(note["text"]))
