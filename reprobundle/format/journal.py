"""Make a change of a file's end undoable until it is whole.

Before the end of a bundle is overwritten, its old bytes go to a journal beside it. The
journal is removed when the new end is on the disk. One that is still there belongs to
a change that was cut off: putting the old bytes back gives the old file.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

from blake3 import blake3

from reprobundle.errors import BadCallError, BundleError, StructureError
from reprobundle.format.archive import write_all
from reprobundle.format.atomic import explained, replacing, sync, sync_folder
from reprobundle.format.content import Content
from reprobundle.format.source import LocalFile, read_exactly

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
        BadCallError: Another process changes it now.
        StructureError: The journal of an earlier change is damaged.
        EnvironmentUnusableError: It cannot be opened or changed.
    """
    path = path.resolve()
    with explained(f"cannot change {str(path)!r}"):
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise BadCallError(
                    f"{path.name} is being changed by another process",
                    advice="wait until it has ended",
                ) from error
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
    size_bytes = os.fstat(descriptor).st_size
    hasher = blake3()
    place = _HEADER.size
    with replacing(journal) as kept:
        for piece in _read_pieces(descriptor, offset, size_bytes):
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


def explain_interrupted(path: Path, error: BundleError) -> None:
    """Raise what really happened if a cut-off change is why `path` is not readable.

    Raises:
        StructureError: There is a journal beside it.
    """
    path = path.resolve()
    if journal_path(path).exists():
        raise StructureError(
            "a replay was being attached or detached when the program was stopped, "
            "or is just now",
            rule="R-4.29",
            where=path.name,
            advice="attach again: the sealed part is intact and is put right first",
        ) from error


def _restore(path: Path, descriptor: int) -> bool:
    """Undo a change that was cut off; return whether there was one."""
    journal = journal_path(path)
    if not journal.exists():
        return False
    with journal.open("rb", buffering=0) as stream:
        kept = stream.fileno()
        place = _check_journal(journal, kept, descriptor)
        for piece in _read_pieces(kept, _HEADER.size, os.fstat(kept).st_size):
            write_all(descriptor, piece, place)
            place += len(piece)
    os.ftruncate(descriptor, place)
    sync(descriptor)
    journal.unlink()
    sync_folder(path.parent)
    return True


def _check_journal(journal: Path, kept: int, descriptor: int) -> int:
    """Return where its bytes belong, after proving that it is whole and fits.

    Raises:
        StructureError: It is damaged, or belongs to another bundle.
    """
    header = os.pread(kept, _HEADER.size, 0)
    if len(header) < _HEADER.size:
        raise _unusable(journal, "it is damaged")
    *fixed, digest = _HEADER.unpack(header)
    hasher = blake3()
    for piece in _read_pieces(kept, _HEADER.size, os.fstat(kept).st_size):
        hasher.update(piece)
    hasher.update(_HEADER.pack(*fixed, bytes(32)))
    if hasher.digest() != digest:
        raise _unusable(journal, "it is damaged")
    _, offset, _, anchor_offset, anchor_bytes, anchor_digest = fixed
    anchor = os.pread(descriptor, anchor_bytes, anchor_offset)
    if blake3(anchor).digest() != anchor_digest:
        raise _unusable(journal, "it belongs to another bundle")
    return int(offset)


def _unusable(journal: Path, why: str) -> StructureError:
    return StructureError(
        f"the journal of a stopped change cannot be used: {why}",
        rule="R-4.32",
        where=journal.name,
        advice="delete it if the bundle can be read without it",
    )


def _read_pieces(descriptor: int, start: int, end: int) -> Iterator[bytes]:
    while start < end:
        piece = os.pread(descriptor, min(_PIECE_BYTES, end - start), start)
        if not piece:
            return
        yield piece
        start += len(piece)
