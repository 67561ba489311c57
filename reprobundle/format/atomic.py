"""Write a file so that it appears whole or not at all."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from reprobundle.errors import EnvironmentUnusableError


@contextlib.contextmanager
def replacing(target: Path, *, durable: bool = True) -> Iterator[int]:
    """Give the descriptor of a temporary file that takes `target`'s name at the end.

    It lies in the same folder. At the end it is on the disk before it gets the name,
    and so is the name; after an error it is gone and `target` is as before.

    Args:
        target: The file.
        durable: Whether it has to outlive a crash of the machine. A file for a moment
            need not wait for the disk.

    Raises:
        EnvironmentUnusableError: The folder or the disk does not allow it.
    """
    temporary = target.parent / f".reprobundle-{os.urandom(8).hex()}.part"
    with explained(f"cannot write {str(target)!r}"):
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(temporary, flags, 0o666)
        try:
            try:
                yield descriptor
                if durable:
                    sync(descriptor)
            finally:
                os.close(descriptor)
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        if durable:
            sync_folder(target.parent)


def write_text(target: Path, text: str) -> None:
    """Write `text` to `target` as UTF-8, whole or not at all.

    Raises:
        EnvironmentUnusableError: The folder or the disk does not allow it.
    """
    with replacing(target) as descriptor:
        view = memoryview(text.encode())
        while view:
            view = view[os.write(descriptor, view) :]


@contextlib.contextmanager
def explained(what: str) -> Iterator[None]:
    """Turn an error of the system into one of ours, prefixed by `what` failed."""
    try:
        yield
    except OSError as error:
        raise unusable(what, error) from error


def unusable(what: str, error: OSError) -> EnvironmentUnusableError:
    """Return our error for one of the system, prefixed by `what` failed."""
    return EnvironmentUnusableError(
        f"{what}: {(error.strerror or str(error)).lower()}",
        advice="check the path, its permissions and the free space",
    )


def sync(descriptor: int) -> None:
    """Wait until a file is on the disk."""
    if hasattr(fcntl, "F_FULLFSYNC"):
        # On macOS fsync leaves the data in the drive's own cache.
        with contextlib.suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
    os.fsync(descriptor)


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
