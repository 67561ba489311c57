"""Write a file so that it appears whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from reprobundle.errors import EnvironmentUnusableError
from reprobundle.format.exclusive import HAS_LOCKS, has_name, try_lock
from reprobundle.format.positions import flags

if HAS_LOCKS:
    import fcntl


@contextlib.contextmanager
def replacing(target: Path, *, durable: bool = True) -> Iterator[int]:
    """Give the descriptor of a temporary file that takes `target`'s name at the end.

    It lies in the same folder. At the end it is on the disk before it gets the name,
    and so is the name; after an error it is gone and `target` is as before. One that a
    killed process left is written over when the same target is written next.

    Args:
        target: The file.
        durable: Whether it has to outlive a crash of the machine. A file for a moment
            need not wait for the disk.

    Raises:
        EnvironmentUnusableError: The folder or the disk does not allow it.
    """
    with explained(f"cannot write {str(target)!r}"):
        if _is_stream(target):
            raise OSError(errno.EINVAL, "is a device, a pipe or the like, no file")
        temporary, descriptor = _open_part(target)
        is_open = True
        try:
            try:
                yield descriptor
                if durable:
                    sync(descriptor)
                if not HAS_LOCKS:
                    # Windows gives no open file another name.
                    os.close(descriptor)
                    is_open = False
                # Still locked: until it has its name, nobody takes it for a leftover.
                temporary.replace(target)
            except BaseException:
                if is_open and not HAS_LOCKS:
                    os.close(descriptor)
                    is_open = False
                temporary.unlink(missing_ok=True)
                raise
        finally:
            if is_open:
                os.close(descriptor)
        if durable:
            sync_folder(target.parent)


def write_text(target: Path, text: str) -> None:
    """Write `text` to `target` as UTF-8, whole or not at all.

    What stands for a stream (``/dev/null``, ``/dev/stdout``, a named pipe) gets the
    text and stays what it is.

    Raises:
        EnvironmentUnusableError: The folder or the disk does not allow it.
    """
    if _is_stream(target):
        # To append cuts nothing of the file that /dev/stdout may lead to.
        with explained(f"cannot write {str(target)!r}"), target.open("ab") as stream:
            stream.write(text.encode())
        return
    with replacing(target) as descriptor:
        view = memoryview(text.encode())
        while view:
            view = view[os.write(descriptor, view) :]


def _is_stream(target: Path) -> bool:
    """Whether a name stands for a device, a pipe or an open stream.

    A file in its place would take it from everybody: root may do that to /dev/null.
    ``/dev/stdout`` is a link to what the stream is, a plain file too.
    """
    if target.is_symlink() and target.absolute().is_relative_to("/dev"):
        return True
    try:
        mode = target.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def part_path(target: Path) -> Path:
    """Return the name under which `replacing` usually writes."""
    return target.with_name(f".{target.name}.part")


def _open_part(target: Path) -> tuple[Path, int]:
    """Return a new or emptied file beside `target`, locked where that can be had.

    What a writer that was killed left has the same name, so it is written over. Another
    name is taken only while another process writes the same target, or for a file that
    is not simply ours.
    """
    mode = flags("O_RDWR", "O_CREAT", "O_NOFOLLOW", "O_NONBLOCK")
    if HAS_LOCKS:
        usual = part_path(target)
        descriptor = _open_leftover(usual, mode)
        if descriptor is not None:
            return usual, descriptor
    other = target.with_name(f".reprobundle-{os.urandom(8).hex()}.part")
    return other, os.open(other, mode | os.O_EXCL, 0o666)


def _open_leftover(usual: Path, mode: int) -> int | None:
    """Return the usual file emptied, unless somebody writes it or it is not ours."""
    with contextlib.suppress(OSError):
        descriptor = os.open(usual, mode, 0o666)
        try:
            if try_lock(descriptor) and _is_ours(descriptor, usual):
                os.ftruncate(descriptor, 0)
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
    return None


def _is_ours(descriptor: int, path: Path) -> bool:
    """Whether an open file has this one name still, is plain, and nobody else's."""
    mine = os.fstat(descriptor)
    return (
        has_name(descriptor, path)
        and stat.S_ISREG(mine.st_mode)
        and mine.st_nlink == 1
        and mine.st_uid == os.geteuid()
    )


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
    if HAS_LOCKS and hasattr(fcntl, "F_FULLFSYNC"):
        # On macOS fsync leaves the data in the drive's own cache.
        with contextlib.suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
    os.fsync(descriptor)


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk, where it can be asked for."""
    if not hasattr(os, "O_DIRECTORY"):
        return  # Windows opens no folders
    descriptor = os.open(folder, flags("O_RDONLY"))
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
