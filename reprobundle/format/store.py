"""Put files into an archive in one pass: read, hash, compress and write.

Digest, size and stored bytes come from the same read, so what is written is always
consistent in itself; a file that changed meanwhile is refused all the same.
"""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from blake3 import blake3

from reprobundle.errors import EnvironmentUnusableError, LimitError, PackRefusedError
from reprobundle.format import frames, limits
from reprobundle.format.archive import ArchiveWriter, combine_crc32
from reprobundle.format.atomic import unusable
from reprobundle.format.digests import digest_bytes
from reprobundle.format.manifest import Member, Role
from reprobundle.format.parallel import in_order
from reprobundle.format.positions import flags, read_at

BATCH_COUNT = 32
BATCH_BYTES = 1 << 20
"""Small files go to a thread in batches: one job each would cost more than it does."""


@dataclass(frozen=True)
class Source:
    """One file to put into a bundle or a replay tree.

    Attributes:
        path: Its name there; inside a replay tree relative to the record.
        role: What it is to the run.
        content: The file to read, or the bytes themselves.
        executable: Whether it is unpacked with the execute bit.
    """

    path: str
    role: Role
    content: Path | bytes
    executable: bool = False


class Planned(NamedTuple):
    """A source and where it goes.

    Attributes:
        source: The source.
        name: Its full name in the archive.
        raw_up_to: Size up to which it is stored as it is; None for any size.
    """

    source: Source
    name: str
    raw_up_to: int | None


def store(
    archive: ArchiveWriter,
    planned: Sequence[Planned],
    *,
    workers: int | None,
    level: int | None,
    progress: Callable[[int], None] | None,
) -> list[Member]:
    """Write the content of `planned` as entries, in order; return what they are.

    Raises:
        PackRefusedError: A source is no regular file, or changed while it was read.
        EnvironmentUnusableError: A source cannot be read.
        LimitError: A source is too large.
    """
    opened = [_Content(plan) for plan in planned]
    sink = _Sink(archive, progress or (lambda _: None))

    def work(step: _Step) -> list[_Result]:
        return [_read_piece(piece, level) for piece in step]

    try:
        for step, results in in_order(_steps(opened, level), work, workers=workers):
            for piece, result in zip(step, results, strict=True):
                sink.take(piece, result)
    finally:
        for content in opened:
            content.close()
    return sink.members


class _Content:
    """A source while it is read: its size, its state when first seen, its file."""

    def __init__(self, plan: Planned) -> None:
        self.plan = plan
        self.content = plan.source.content
        self.descriptor = -1
        self.level = 0
        if isinstance(self.content, Path):
            try:
                self.state = self.content.stat()
            except OSError as error:
                raise self.unreadable(error) from error
            if not stat.S_ISREG(self.state.st_mode):
                raise PackRefusedError(
                    f"{str(self.content)!r} is no regular file",
                    advice="leave it out, or make it one before packing",
                )
            self.size_bytes = self.state.st_size
        else:
            self.size_bytes = len(self.content)
        if self.size_bytes > limits.FILE_BYTES:
            raise LimitError("the file is too large", rule="R-6.8", where=plan.name)

    def open(self) -> None:
        """Open the file, if it is one."""
        if isinstance(self.content, Path):
            try:
                self.descriptor = os.open(self.content, flags("O_RDONLY"))
            except OSError as error:
                raise self.unreadable(error) from error

    def choose_storage(self, read_at: frames.ReadAt, level: int | None) -> None:
        """Decide at which level it is compressed, 0 for not at all.

        Args:
            read_at: Gives its content.
            level: The one asked for; None for the best.
        """
        if not self.may_compress:
            return
        best = frames.CLOSE_LEVEL
        if self.size_bytes > frames.SAMPLED_BYTES:
            best = frames.best_level(read_at, self.size_bytes)
        self.level = level or best if best else 0

    @property
    def may_compress(self) -> bool:
        """Whether compression is allowed for its role and size."""
        limit = self.plan.raw_up_to
        return limit is not None and self.size_bytes > limit

    def read_at(self, offset: int, count: int) -> bytes:
        """Return `count` bytes from `offset` on, fewer only at the end."""
        if isinstance(self.content, bytes):
            return self.content[offset : offset + count]
        least = min(count, self.size_bytes - offset)
        try:
            data = read_at(self.descriptor, count, offset)
            while 0 < len(data) < least:
                more = read_at(self.descriptor, count - len(data), offset + len(data))
                if not more:
                    break
                data += more
        except OSError as error:
            raise self.unreadable(error) from error
        return data

    def check_unchanged(self) -> None:
        """Refuse the file if it is not what it was when it was first seen."""
        if self.descriptor < 0:
            return
        now = os.fstat(self.descriptor)
        before = self.state
        if (now.st_size, now.st_mtime_ns, now.st_ino, now.st_dev) != (
            before.st_size,
            before.st_mtime_ns,
            before.st_ino,
            before.st_dev,
        ):
            raise self.changed()

    def unreadable(self, error: OSError) -> EnvironmentUnusableError:
        """Return the error for a file that the system does not give out."""
        return unusable(f"cannot read {str(self.content)!r}", error)

    def changed(self) -> PackRefusedError:
        """Return the error that says so."""
        return PackRefusedError(
            f"{str(self.content)!r} changed while it was being packed",
            advice="stop what writes to it and pack again",
        )

    def close(self) -> None:
        """Close its file, if it is open."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


class _Piece(NamedTuple):
    """Up to one chunk of a content."""

    content: _Content
    offset: int
    length: int

    @property
    def is_whole(self) -> bool:
        return self.length == self.content.size_bytes

    @property
    def is_last(self) -> bool:
        return self.offset + self.length == self.content.size_bytes


_Step = list[_Piece]


class _Result(NamedTuple):
    """What became of a piece.

    Attributes:
        plain: Its content; empty when it is the whole content and no more needed.
        stored: The bytes to write.
        digest: BLAKE3 of the content.
        crc32: Checksum of the stored bytes.
        compressed: Whether `stored` is a frame.
    """

    plain: bytes
    stored: bytes
    digest: str
    crc32: int
    compressed: bool


def _steps(contents: Sequence[_Content], level: int | None) -> Iterator[_Step]:
    """Yield the pieces of all contents in order, small ones in batches."""
    batch: _Step = []
    batch_bytes = 0
    for content in contents:
        size_bytes = content.size_bytes
        small = size_bytes <= limits.CHUNK_BYTES
        full = len(batch) >= BATCH_COUNT or batch_bytes + size_bytes > BATCH_BYTES
        if batch and (full or not small):
            yield batch
            batch, batch_bytes = [], 0
        if small:
            batch.append(_Piece(content, 0, size_bytes))
            batch_bytes += size_bytes
            continue
        content.open()
        content.check_unchanged()
        content.choose_storage(content.read_at, level)
        for offset in range(0, size_bytes, limits.CHUNK_BYTES):
            length = min(limits.CHUNK_BYTES, size_bytes - offset)
            yield [_Piece(content, offset, length)]
    if batch:
        yield batch


def _read_piece(piece: _Piece, level: int | None) -> _Result:
    content = piece.content
    if piece.is_whole:
        return _read_whole(content, level)
    plain = content.read_at(piece.offset, piece.length)
    if len(plain) != piece.length:
        raise content.changed()
    digest = digest_bytes(plain)
    if content.level:
        return _Result(plain, frames.compress(plain, content.level), digest, 0, True)
    return _Result(plain, plain, digest, zlib.crc32(plain), False)


def _read_whole(content: _Content, level: int | None) -> _Result:
    content.open()
    try:
        plain = content.read_at(0, content.size_bytes + 1)
        content.check_unchanged()
    finally:
        content.close()
    if len(plain) != content.size_bytes:
        raise content.changed()
    content.choose_storage(_within(plain), level)
    stored = plain
    if content.level:
        frame = frames.compress(plain, content.level)
        if len(frame) <= len(plain) * frames.WORTH_RATIO:
            stored = frame
    compressed = stored is not plain
    return _Result(b"", stored, digest_bytes(plain), zlib.crc32(stored), compressed)


def _within(data: bytes) -> frames.ReadAt:
    return lambda offset, count: data[offset : offset + count]


class _Sink:
    """Takes the pieces in order, writes them, and keeps what the manifest needs."""

    def __init__(self, archive: ArchiveWriter, progress: Callable[[int], None]) -> None:
        self.members: list[Member] = []
        self._archive = archive
        self._progress = progress
        self._chunks: list[str] = []
        self._crc32 = 0
        self._hasher: Any = None

    def take(self, piece: _Piece, result: _Result) -> None:
        """Write one piece."""
        if piece.is_whole:
            self._take_whole(piece.content, result)
        else:
            self._take_chunk(piece, result)
        self._progress(piece.length)

    def _take_whole(self, content: _Content, result: _Result) -> None:
        name = content.plan.name
        if result.compressed:
            name += ".zst"
        aligned = not result.compressed and content.size_bytes > limits.RAW_BYTES
        self._archive.add_counted(name, result.stored, result.crc32, aligned=aligned)
        self._keep(content, result.digest, ())

    def _take_chunk(self, piece: _Piece, result: _Result) -> None:
        content = piece.content
        if piece.offset == 0:
            self._begin(content)
        self._chunks.append(result.digest)
        self._hasher.update(result.plain)
        if result.compressed:
            self._crc32 = zlib.crc32(result.stored, self._crc32)
        else:
            self._crc32 = combine_crc32(self._crc32, result.crc32, piece.length)
        self._archive.write(result.stored)
        if piece.is_last:
            if content.read_at(content.size_bytes, 1):
                raise content.changed()
            content.check_unchanged()
            content.close()
            self._archive.finish(self._crc32)
            self._keep(content, str(self._hasher.hexdigest()), tuple(self._chunks))

    def _begin(self, content: _Content) -> None:
        self._chunks = []
        self._crc32 = 0
        self._hasher = blake3()
        name, most_bytes = content.plan.name, content.size_bytes
        if content.level:
            name += ".zst"
            count = -(-most_bytes // limits.CHUNK_BYTES)
            most_bytes += count * (limits.FRAME_BYTES - limits.CHUNK_BYTES)
        self._archive.begin(name, most_bytes, aligned=not content.level)

    def _keep(self, content: _Content, digest: str, chunks: tuple[str, ...]) -> None:
        source = content.plan.source
        self.members.append(
            Member(
                path=content.plan.name,
                size_bytes=content.size_bytes,
                blake3=digest,
                role=source.role,
                executable=source.executable,
                chunks=chunks,
            )
        )
