"""May we read and write where a run needs to, and is there room?"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from reprobundle.format.doctor_report import CheckState, DoctorCheck
from reprobundle.port.doctor.machine import LITTLE_FREE_BYTES


def usual_folders(variables: Mapping[str, str]) -> dict[str, Path]:
    """Return the folders a run writes to: project, cache, temporary files."""
    home = Path(variables.get("HOME") or Path.home())
    cache = Path(variables.get("XDG_CACHE_HOME") or home / ".cache")
    return {
        "project": Path.cwd(),
        "cache": cache,
        "temporary": Path(tempfile.gettempdir()),
    }


def folder_checks(
    written: Mapping[str, Path], read: tuple[Path, ...]
) -> Iterator[DoctorCheck]:
    """Yield whether each folder can be used.

    Args:
        written: Name → folder that has to be writable.
        read: Data that have to be readable.
    """
    for name, folder in written.items():
        yield _writable(name, folder)
    for path in read:
        yield _readable(path)


def _writable(name: str, folder: Path) -> DoctorCheck:
    """Write a file there, for permission bits do not tell of locks and mounts."""
    state: CheckState = "ok"
    remedy = ""
    try:
        place = folder
        while not place.exists() and place != place.parent:
            place = place.parent
        with tempfile.TemporaryFile(dir=place, prefix=".reprobundle-") as file:
            file.write(b"x")
            file.flush()
        free = shutil.disk_usage(place).free
        can = "writable" if place == folder else f"not there, {place} is writable"
        got = f"{folder}: {can}, {free / 2**30:.1f} GiB free"
        if free < LITTLE_FREE_BYTES:
            state = "warn"
            remedy = "free some space: an environment with torch takes 1 to 6 GiB"
    except OSError as error:
        state = "problem"
        got = f"{folder}: {(error.strerror or str(error)).lower()}"
        remedy = "choose another folder, or ask for the right to write there"
    return DoctorCheck(group="folders", name=name, state=state, got=got, remedy=remedy)


def _readable(path: Path) -> DoctorCheck:
    can = path.exists() and os.access(path, os.R_OK)
    there = path.exists()
    why = "not readable" if there else "not there"
    remedy = "on macOS also allow the terminal in Privacy & Security, Files"
    if can or not there:
        remedy = "" if can else "look at the path"
    return DoctorCheck(
        group="folders",
        name="data",
        state="ok" if can else "problem",
        got=f"{path}: {'readable' if can else why}",
        remedy=remedy,
    )
