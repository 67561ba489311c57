"""Write files into a new folder or a new ZIP file, which appears whole or not at all.

The ZIP file depends on names and contents alone: stored entries, one date for all of
them, so two exports of one bundle are equal byte for byte.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from blake3 import blake3

from reprobundle.errors import BadCallError, DigestError, EnvironmentUnusableError
from reprobundle.export.tree import Item
from reprobundle.format.atomic import explained, replacing

_PIECE_BYTES = 1 << 20
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_DATE = (1980, 1, 1, 0, 0, 0)
_REGULAR_FILE = 0o100644


class Written(NamedTuple):
    """A file that was written: name, bytes and both digests in hexadecimal."""

    name: str
    size_bytes: int
    sha256: str
    blake3: str


class Sink(Protocol):
    """Takes files, one after the other."""

    def create(
        self, name: str, size_bytes: int, *, executable: bool
    ) -> contextlib.AbstractContextManager[Callable[[bytes], object]]:
        """Give what writes the content of a new file."""
        ...


def write_items(
    sink: Sink, items: Iterable[Item], progress: Callable[[int], None] | None = None
) -> Iterator[Written]:
    """Write files and yield what was written, each compared with its digest.

    Raises:
        DigestError: Content is not what was sealed or recorded.
    """
    for item in items:
        plain, sealed, count = hashlib.sha256(), blake3(), 0
        with (
            item.open() as stream,
            sink.create(
                item.name, item.size_bytes, executable=item.executable
            ) as write,
        ):
            while piece := stream.read(_PIECE_BYTES):
                write(piece)
                plain.update(piece)
                sealed.update(piece)
                count += len(piece)
                if progress is not None:
                    progress(len(piece))
        got = str(sealed.hexdigest())
        if item.blake3 and got != item.blake3:
            raise DigestError(item.name, expected=item.blake3, got=got, rule="R-4.25")
        yield Written(item.name, count, plain.hexdigest(), got)


def write_text(sink: Sink, name: str, content: bytes) -> Written:
    """Write one small file that was made here."""
    with sink.create(name, len(content), executable=False) as write:
        write(content)
    digest = hashlib.sha256(content).hexdigest()
    return Written(name, len(content), digest, str(blake3(content).hexdigest()))


@contextlib.contextmanager
def new_tree(target: Path, *, needed_bytes: int, top: str = "") -> Iterator[Sink]:
    """Give a sink for the new folder or, if `target` ends in ``.zip``, the new file.

    Args:
        target: What must not exist yet.
        needed_bytes: How much will be written, about.
        top: Folder inside a ZIP file that holds everything; empty for none.

    Raises:
        BadCallError: `target` exists.
        EnvironmentUnusableError: There is no room, or writing failed.
    """
    if target.is_symlink() or target.exists():
        raise BadCallError(
            f"{str(target)!r} exists already", advice="name something that does not"
        )
    with explained(f"cannot export to {str(target)!r}"):
        _check_room(target.parent, needed_bytes)
        if target.name.endswith(".zip"):
            yield from _zip(target, top)
        else:
            yield from _folder(target)


def _check_room(folder: Path, needed_bytes: int) -> None:
    free_bytes = shutil.disk_usage(folder).free
    if needed_bytes > free_bytes:
        raise EnvironmentUnusableError(
            f"{needed_bytes:,} bytes do not fit on the disk of {str(folder)!r}, "
            f"{free_bytes:,} are free",
            advice="make room or export elsewhere",
        )


def _zip(target: Path, top: str) -> Iterator[Sink]:
    with (
        replacing(target) as descriptor,
        os.fdopen(os.dup(descriptor), "w+b") as file,
        zipfile.ZipFile(file, "w") as archive,
    ):
        yield _ZipSink(archive, f"{top}/" if top else "")


def _folder(target: Path) -> Iterator[Sink]:
    temporary = target.parent / f".reprobundle-{os.urandom(8).hex()}.part"
    temporary.mkdir(mode=0o700)
    try:
        yield _FolderSink(temporary)
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o755 & ~umask)
        temporary.rename(target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


class _FolderSink:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextlib.contextmanager
    def create(
        self, name: str, size_bytes: int, *, executable: bool
    ) -> Iterator[Callable[[bytes], object]]:
        del size_bytes
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = 0o755 if executable else 0o644
        with os.fdopen(os.open(path, _FLAGS, mode), "wb") as file:
            yield file.write


class _ZipSink:
    def __init__(self, archive: zipfile.ZipFile, top: str) -> None:
        self._archive = archive
        self._top = top

    @contextlib.contextmanager
    def create(
        self, name: str, size_bytes: int, *, executable: bool
    ) -> Iterator[Callable[[bytes], object]]:
        entry = zipfile.ZipInfo(self._top + name, _DATE)
        # Unix, whatever wrote it: the mode is read from there.
        entry.create_system = 3
        entry.external_attr = (_REGULAR_FILE | (0o111 if executable else 0)) << 16
        # With its size known, the entry has 64-bit fields exactly where it needs them.
        entry.file_size = size_bytes
        with self._archive.open(entry, "w") as file:
            yield file.write
