"""Compare all sealed content with its digests, on every core, in bounded memory."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from blake3 import blake3

from reprobundle.errors import BundleError
from reprobundle.format import limits
from reprobundle.format.content import Content
from reprobundle.format.digests import digest_bytes
from reprobundle.format.frames import Span
from reprobundle.format.manifest import MANIFEST_PATH
from reprobundle.format.pairing import record_id
from reprobundle.format.parallel import in_order

if TYPE_CHECKING:
    from reprobundle.format.reader import Bundle, ReplayFile

BATCH_COUNT = 64
BATCH_BYTES = 1 << 20
STRETCH_BYTES = 2 << 20
"""What is read at once of contents that lie beside each other."""

INLINE_BYTES = 4 << 20
"""Below this size in all, threads would cost more than they bring."""

SPLIT_BYTES = 32 << 20
"""From this size on a member's chunks are spread over the threads, not members."""


class Damage(msgspec.Struct, frozen=True):
    """A stretch of a member whose content is not what was sealed.

    Attributes:
        path: Name of the member.
        byte_start: Where the stretch of plain content starts.
        byte_end: Where it ends, exclusive.
        expected: The sealed digest of the stretch.
        got: The digest of what is there, or why there is none.
    """

    path: str
    byte_start: int
    byte_end: int
    expected: str
    got: str


def check_digests(
    bundle: Bundle,
    *,
    deep: bool = False,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[Damage]:
    """Return every stretch of content that is not what was sealed.

    The digest of every sealed member is compared, and that of every attached replay's
    record with the id it is named by. Where a member of several chunks differs, its
    chunk digests tell which of them.

    Args:
        bundle: An open bundle.
        deep: Prove the chunk digests of intact members too, and the ZIP checksum of
            every file, outside the seal as well.
        workers: Threads; None for one per core.
        progress: Called in this thread with the number of plain bytes just checked.
    """
    here = (path for path in bundle.members if path not in bundle.absent)
    contents = [bundle.content(path) for path in here]
    contents += _record_contents(bundle)
    if deep:
        contents.append(bundle.content(MANIFEST_PATH))
        unsealed = bundle.unsealed_contents().items()
        contents += [content for name, content in unsealed if not record_id(name)]
    return _check(contents, deep=deep, workers=workers, progress=progress)


def check_replay_digests(replays: ReplayFile) -> list[Damage]:
    """Return each record of a replay file that does not have its id as digest."""
    return _check(_record_contents(replays), deep=False, workers=1, progress=None)


def _record_contents(replays: ReplayFile) -> list[Content]:
    return [
        content._replace(digest=record_id(name))
        for name, content in replays.unsealed_contents().items()
        if record_id(name)
    ]


def _check(
    contents: Sequence[Content],
    *,
    deep: bool,
    workers: int | None,
    progress: Callable[[int], None] | None,
) -> list[Damage]:
    if sum(content.size_bytes for content in contents) < INLINE_BYTES:
        workers = 1
    report = progress or (lambda _: None)
    smaller = [content for content in contents if content.size_bytes < SPLIT_BYTES]
    larger = [content for content in contents if content.size_bytes >= SPLIT_BYTES]
    damages: list[Damage] = []
    check = partial(_check_batch, deep=deep)
    for batch, found in in_order(_batches(smaller), check, workers=workers):
        damages += found
        report(sum(content.size_bytes for content in batch))
    for content in larger:
        damages += _check_split(content, deep=deep, workers=workers, report=report)
    return damages


class _Piece(NamedTuple):
    """One chunk, loaded.

    Attributes:
        plain: Its content.
        stored: Its stored bytes, for the ZIP checksum.
        digest: BLAKE3 of its content; empty unless the check is deep.
    """

    plain: bytes
    stored: bytes
    digest: str


def _batches(contents: Iterable[Content]) -> Iterator[list[Content]]:
    batch: list[Content] = []
    batch_bytes = 0
    for content in contents:
        full = batch_bytes + content.size_bytes > BATCH_BYTES
        if batch and (full or len(batch) >= BATCH_COUNT):
            yield batch
            batch, batch_bytes = [], 0
        batch.append(content)
        batch_bytes += content.size_bytes
    if batch:
        yield batch


def _check_batch(batch: Sequence[Content], *, deep: bool) -> list[Damage]:
    damages: list[Damage] = []
    for content in batch if deep else _not_seen_intact(batch):
        pieces = (_load(span, content, deep=deep) for span in content.spans())
        damages += _check_content(content, pieces, blake3(), deep=deep)
    return damages


def _not_seen_intact(batch: Sequence[Content]) -> Iterator[Content]:
    """Yield what one look at the stretch of a batch does not show to be intact.

    Small contents lie beside each other, raw: one call reads them all. What does not
    agree here is only not known yet.
    """
    start, end = batch[0].entry.offset, batch[-1].entry.end
    if len(batch) == 1 or not 0 <= end - start <= STRETCH_BYTES:
        yield from batch
        return
    stretch = memoryview(batch[0].file.read_at(start, end - start))
    for content in batch:
        first = content.entry.data_offset - start
        if (
            content.compressed
            or first < 0
            or digest_bytes(stretch[first : first + content.size_bytes])
            != content.digest
        ):
            yield content


def _check_split(
    content: Content,
    *,
    deep: bool,
    workers: int | None,
    report: Callable[[int], None],
) -> list[Damage]:
    load = partial(_load, content=content, deep=deep)
    # Raw content is hashed by all cores at once, several times faster than it could be
    # handed from one thread to another; compressed content is decoded by all cores.
    loaders = workers if content.compressed or deep else 1

    def pieces() -> Iterator[_Piece]:
        for span, piece in in_order(content.spans(), load, workers=loaders):
            yield piece
            report(span.plain_bytes)

    spread = workers != 1 and not content.compressed
    hasher = blake3(max_threads=blake3.AUTO) if spread else blake3()
    return _check_content(content, pieces(), hasher, deep=deep)


def _load(span: Span, content: Content, *, deep: bool) -> _Piece:
    stored = content.stored(span)
    plain = content.decode(stored, span)
    return _Piece(plain, stored, digest_bytes(plain) if deep else "")


def _check_content(
    content: Content, pieces: Iterable[_Piece], hasher: blake3, *, deep: bool
) -> list[Damage]:
    """Return the damage of one content whose chunks are `pieces`, in order."""
    digests = []
    crc32 = 0
    try:
        for piece in pieces:
            hasher.update(piece.plain)
            if deep:
                digests.append(piece.digest)
                crc32 = zlib.crc32(piece.stored, crc32)
    except BundleError as error:
        return _locate(content, error.message)
    got = str(hasher.hexdigest())
    if content.digest and got != content.digest:
        return _locate(content, got)
    if not deep:
        return []
    damages = [
        _chunk_damage(content, number, digest)
        for number, digest in enumerate(digests if content.chunks else ())
        if digest != content.chunks[number]
    ]
    if crc32 != content.entry.crc32:
        damages.append(
            Damage(
                content.name,
                0,
                content.size_bytes,
                f"crc32 {content.entry.crc32:08x}",
                f"crc32 {crc32:08x}",
            )
        )
    return damages


def _locate(content: Content, got: str) -> list[Damage]:
    """Return which chunks of a damaged content are damaged, or all of it."""
    whole = Damage(content.name, 0, content.size_bytes, content.digest, got)
    if not content.chunks:
        return [whole]
    damages = []
    number = 0
    spans = content.spans()
    while number < len(content.chunks):
        try:
            span = next(spans)
        except BundleError as error:
            # Where a frame does not start, no later one can be found either.
            damage = _chunk_damage(content, number, error.message)
            to_end = msgspec.structs.replace(damage, byte_end=content.size_bytes)
            damages.append(to_end)
            break
        found = _digest_of(content, span)
        if found != content.chunks[number]:
            damages.append(_chunk_damage(content, number, found))
        number += 1
    return damages or [whole]


def _digest_of(content: Content, span: Span) -> str:
    try:
        return digest_bytes(content.load(span))
    except BundleError as error:
        return error.message


def _chunk_damage(content: Content, number: int, got: str) -> Damage:
    start = number * limits.CHUNK_BYTES
    end = min(start + limits.CHUNK_BYTES, content.size_bytes)
    return Damage(content.name, start, end, content.chunks[number], got)
