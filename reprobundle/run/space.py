"""Is there room, and may we write there: asked before long work begins.

Also how sizes and durations are written for people.
"""

from __future__ import annotations

import errno
import shutil
import tempfile
from pathlib import Path

from reprobundle.errors import (
    EnvironmentUnusableError,
    NoPermissionError,
    NoSpaceError,
)

# Left free on purpose: a disk filled to the last byte breaks other programs.
RESERVE_BYTES = 64 << 20
UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)


def free_bytes(folder: Path) -> int:
    """Return what this user may still write on the disk of `folder`, in bytes.

    The folder need not exist yet; its nearest existing parent counts.

    Raises:
        EnvironmentUnusableError: The disk cannot be asked.
    """
    try:
        return shutil.disk_usage(_existing(folder)).free
    except OSError as error:
        raise EnvironmentUnusableError(
            f"free space of {str(folder)!r} cannot be read: {error.strerror}"
        ) from error


def require_space(folder: Path, needed_bytes: int, what: str) -> None:
    """Check that `needed_bytes` fit on the disk of `folder`, with a small reserve.

    Args:
        folder: Where they will be written; need not exist yet.
        needed_bytes: An estimate, in bytes.
        what: What needs them, for the message: ``the environment``.

    Raises:
        NoSpaceError: They do not fit.
    """
    free = free_bytes(folder)
    if free < needed_bytes + RESERVE_BYTES:
        raise NoSpaceError(
            f"no room for {what}: {format_bytes(needed_bytes)} and a reserve of "
            f"{format_bytes(RESERVE_BYTES)} are needed in {str(folder)!r}, and "
            f"{format_bytes(free)} are free",
            folder=str(folder),
            needed_bytes=needed_bytes,
            free_bytes=free,
            advice="free some space, or choose a folder on another disk",
        )


def require_writable(folder: Path) -> None:
    """Check by writing that files can be made in `folder`, creating it if missing.

    Access bits do not tell: a read-only disk, a quota or an access list may say
    otherwise, and the superuser passes every one of them.

    Raises:
        NoPermissionError: This process may not write there.
        NoSpaceError: Not even an empty file fits.
        EnvironmentUnusableError: It is no folder, or the disk failed.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(prefix=".reprobundle-", dir=folder) as probe:
            probe.write(b"\0")
    except OSError as error:
        raise write_failure(error, folder) from error


def write_failure(error: OSError, folder: Path) -> EnvironmentUnusableError:
    """Return the error of ours that says why writing in `folder` failed."""
    where = str(folder)
    if error.errno in DENIED:
        return NoPermissionError(
            f"folder {where!r} cannot be written: {error.strerror}",
            folder=where,
            advice="choose a folder of your own; no step needs more rights than that",
        )
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return NoSpaceError(
            f"nothing more can be written in {where!r}: {error.strerror}",
            folder=where,
            needed_bytes=0,
            free_bytes=0,
            advice="free some space, or choose a folder on another disk",
        )
    return EnvironmentUnusableError(
        f"folder {where!r} cannot be used: {error.strerror}",
        advice="choose another folder",
    )


def _existing(folder: Path) -> Path:
    for candidate in (folder, *folder.absolute().parents):
        if candidate.exists():
            return candidate
    return Path("/")


def format_bytes(size_bytes: int) -> str:
    """Return a size for people, with three significant digits: ``1.46 MiB``."""
    size = float(size_bytes)
    for unit in UNITS:
        if abs(size) < 999.5 or unit == UNITS[-1]:
            break
        size /= 1024
    if unit == "B":
        return f"{size_bytes} B"
    digits = 2 if abs(size) < 9.995 else 1 if abs(size) < 99.95 else 0
    return f"{size:.{digits}f} {unit}"


def format_duration(elapsed_ns: int) -> str:
    """Return a duration for people: ``850 ms``, ``12.4 s``, ``3 min 20 s``."""
    seconds = elapsed_ns / 1e9
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
