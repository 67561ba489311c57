"""Keep another process from removing a folder that this one uses."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Made = TypeVar("Made")
Say = Callable[[str], None]

# Folders this process uses, with the open file that says so to other processes.
_CLAIMS: dict[Path, int] = {}


def claimed(
    folder: Path,
    say: Say,
    *,
    standing: Callable[[], Made | None],
    make: Callable[[], Made],
) -> tuple[Made, bool]:
    """Return what stands in `folder`, or make it while no other process uses it.

    The claim on the folder stays until this process ends: another replay that finds
    the environment changed must not remove it from under a run. The kernel drops the
    claim of a dead process.

    Args:
        folder: An existing folder, absolute.
        say: Told when another process has to be waited for.
        standing: Returns what stands there already, or None.
        make: Makes it anew.

    Returns:
        What stands, and whether it stood already.
    """
    claim = _CLAIMS.get(folder)
    if claim is None:
        claim = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
        _CLAIMS[folder] = claim
    _lock(claim, fcntl.LOCK_SH, say, "waiting for a replay that builds the environment")
    built = standing()
    if built is not None:
        return built, True
    _lock(claim, fcntl.LOCK_EX, say, "waiting for a replay that uses the environment")
    try:
        built = standing()
        return (built, True) if built is not None else (make(), False)
    finally:
        fcntl.flock(claim, fcntl.LOCK_SH)


def _lock(claim: int, kind: int, say: Say, waiting: str) -> None:
    try:
        fcntl.flock(claim, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        say(waiting)
        fcntl.flock(claim, kind)
