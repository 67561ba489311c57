"""Make a change of a file's end undoable until it is whole.

Before the end of a bundle is overwritten, its old bytes go to a journal beside it. The
journal is removed when the new end is on the disk: that moment is the change. As long
as the journal is there the bundle is the old one: readers take its end from the journal
(`before_change`), and the next change first puts the old bytes back.
"""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from blake3 import blake3

from reprobundle.errors import BundleError, StructureError
from reprobundle.format import limits
from reprobundle.format.archive import write_all
from reprobundle.format.atomic import explained, replacing, sync, sync_folder
from reprobundle.format.content import Content
from reprobundle.format.exclusive import open_exclusively
from reprobundle.format.source import ByteSource, LocalFile, read_exactly

_HEADER = struct.Struct("<8sQQQQ32s32s")
_MAGIC = b"RPBJRNL1"
_PIECE_BYTES = 4 << 20


def journal_path(path: Path) -> Path:
    """Return where the journal of the bundle at `path` lies."""
    return path.with_name(f"{path.name}.journal")


@contextlib.contextmanager
def locked(path: Path) -> Iterator[int]:
    """Give the descriptor of the bundle at `path`, opened for change by nobody else.

    A change that was cut off before is undone first.

    Raises:
        BadCallError: Another process changes it, and does not come to an end.
        StructureError: The journal of an earlier change is damaged.
        EnvironmentUnusableError: It cannot be opened or changed.
    """
    path = path.resolve()
    with explained(f"cannot change {str(path)!r}"):
        descriptor = open_exclusively(path)
        try:
            _restore(path, descriptor)
            yield descriptor
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def undoable(
    path: Path, descriptor: int, offset: int, anchor: Content
) -> Iterator[Callable[[int, int], bytes]]:
    """Keep all bytes from `offset` on in a journal while they are overwritten.

    After an error the file is as it was before; after a crash, when it is next locked.
    Gives a function that reads the old bytes: ``(offset, count)`` of the old file.

    Args:
        path: The bundle.
        descriptor: The same, from `locked`.
        offset: First byte that may change.
        anchor: The manifest: a journal is never applied to another bundle.
    """
    path = path.resolve()
    journal = journal_path(path)
    _write_journal(journal, descriptor, offset, anchor)
    try:
        with journal.open("rb", buffering=0) as stream:
            kept = LocalFile(stream)
            yield lambda start, count: read_exactly(
                kept, _HEADER.size + start - offset, count
            )
        sync(descriptor)
    except BaseException:
        _restore(path, descriptor)
        raise
    journal.unlink()
    sync_folder(path.parent)


def _write_journal(
    journal: Path, descriptor: int, offset: int, anchor: Content
) -> None:
    hasher = blake3()
    place = _HEADER.size
    with (
        open(descriptor, "rb", buffering=0, closefd=False) as stream,
        replacing(journal) as kept,
    ):
        file = LocalFile(stream)
        size_bytes = file.size_bytes
        for piece in _read_pieces(file, offset, size_bytes):
            hasher.update(piece)
            write_all(kept, piece, place)
            place += len(piece)
        fixed = (
            _MAGIC,
            offset,
            size_bytes,
            anchor.entry.data_offset,
            anchor.size_bytes,
            bytes.fromhex(anchor.digest),
        )
        hasher.update(_HEADER.pack(*fixed, bytes(32)))
        write_all(kept, _HEADER.pack(*fixed, hasher.digest()), 0)


class BeforeChange:
    """A file as it was before a change of its end that is not complete."""

    at_hand = True

    def __init__(self, file: ByteSource, journal: ByteSource, kept: _Kept) -> None:
        """Take the bytes before the change from `file`, those behind from `journal`."""
        self.size_bytes = kept.size_bytes
        self._file = file
        self._journal = journal
        self._offset = kept.offset

    def read_at(self, offset: int, count: int) -> bytes:
        """Return at most `count` bytes from `offset` on, fewer only at the end."""
        if offset >= self._offset:
            return self._journal.read_at(_HEADER.size + offset - self._offset, count)
        first = self._file.read_at(offset, min(count, self._offset - offset))
        if offset + len(first) < self._offset or len(first) == count:
            return first
        return first + self._journal.read_at(_HEADER.size, count - len(first))

    def fetch_all(self) -> None:
        """Do nothing: all bytes are here."""

    def close(self) -> None:
        """Close both files."""
        self._file.close()
        self._journal.close()


def before_change(path: Path, file: ByteSource) -> ByteSource:
    """Return what is to be read as the bundle at `path`, whose open file is `file`.

    That is the file, unless a change of it was cut off or is under way. A journal that
    cannot be used is not: the file is then what it looks like.
    """
    journal = journal_path(path.resolve())
    if not journal.is_file():
        return file
    try:
        kept = LocalFile(journal.open("rb", buffering=0))
    except OSError:
        return file  # Gone, so the change is complete; or not ours to read.
    try:
        return BeforeChange(file, kept, _check_journal(journal, kept, file))
    except BundleError:
        kept.close()
        return file


def end_state(path: Path) -> tuple[object, ...]:
    """Return what differs before, during and after a change of the file at `path`."""
    try:
        seen = path.stat()
    except OSError:
        return ()
    journal = journal_path(path.resolve()).is_file()
    return seen.st_ino, seen.st_size, seen.st_mtime_ns, journal


def explain_interrupted(path: Path, error: BundleError) -> None:
    """Raise what really happened if a cut-off change is why `path` is not readable.

    Raises:
        StructureError: There is a journal beside it.
    """
    path = path.resolve()
    if journal_path(path).is_file():
        raise StructureError(
            f"{error.message}; a change of it was cut off, and its journal "
            f"{journal_path(path).name!r} cannot be used",
            rule="R-4.29",
            where=path.name,
            advice="put the journal back that was beside this very file",
        ) from error


def _restore(path: Path, descriptor: int) -> bool:
    """Undo a change that was cut off; return whether there was one."""
    journal = journal_path(path)
    if not journal.is_file():
        return False
    with (
        journal.open("rb", buffering=0) as stream,
        open(descriptor, "rb", buffering=0, closefd=False) as file,
    ):
        kept = LocalFile(stream)
        old = _check_journal(journal, kept, LocalFile(file))
        # First the size: on a full disk there may be no room for anything before.
        os.ftruncate(descriptor, old.size_bytes)
        place = old.offset
        for piece in _read_pieces(kept, _HEADER.size, kept.size_bytes):
            write_all(descriptor, piece, place)
            place += len(piece)
    sync(descriptor)
    journal.unlink()
    sync_folder(path.parent)
    return True


class _Kept(NamedTuple):
    """What a journal keeps: the bytes from `offset` on of a file of `size_bytes`."""

    offset: int
    size_bytes: int


def _check_journal(journal: Path, kept: ByteSource, file: ByteSource) -> _Kept:
    """Return what a journal keeps, after proving that it is whole and fits the file.

    It comes from wherever the file does, so none of its numbers is believed before.

    Raises:
        StructureError: It is damaged, or belongs to another bundle.
    """
    header = kept.read_at(0, _HEADER.size)
    if len(header) < _HEADER.size:
        raise _unusable(journal, "it is damaged")
    *fixed, digest = _HEADER.unpack(header)
    hasher = blake3()
    for piece in _read_pieces(kept, _HEADER.size, kept.size_bytes):
        hasher.update(piece)
    hasher.update(_HEADER.pack(*fixed, bytes(32)))
    if hasher.digest() != digest:
        raise _unusable(journal, "it is damaged")
    magic, offset, size_bytes, anchor_offset, anchor_bytes, anchor_digest = fixed
    if (
        magic != _MAGIC
        or size_bytes - offset != kept.size_bytes - _HEADER.size
        or anchor_bytes > limits.DOCUMENT_BYTES
        or anchor_offset + anchor_bytes > min(offset, file.size_bytes)
    ):
        raise _unusable(journal, "it is no journal of such a change")
    anchor = file.read_at(anchor_offset, anchor_bytes)
    if blake3(anchor).digest() != anchor_digest:
        raise _unusable(journal, "it belongs to another bundle")
    return _Kept(offset, size_bytes)


def _unusable(journal: Path, why: str) -> StructureError:
    return StructureError(
        f"the journal of a stopped change cannot be used: {why}",
        rule="R-4.32",
        where=journal.name,
        advice="delete it if the bundle can be read without it",
    )


def _read_pieces(source: ByteSource, start: int, end: int) -> Iterator[bytes]:
    while start < end:
        piece = source.read_at(start, min(_PIECE_BYTES, end - start))
        if not piece:
            return
        yield piece
        start += len(piece)
