"""Write a sealed bundle: deterministic bytes, bounded memory, all or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from reprobundle.errors import LimitError
from reprobundle.format import limits
from reprobundle.format.archive import ArchiveWriter, write_all
from reprobundle.format.atomic import replacing
from reprobundle.format.canonical import encode
from reprobundle.format.digests import digest_bytes
from reprobundle.format.journal import journal_path
from reprobundle.format.manifest import (
    ALWAYS_RAW,
    CHECKSUMS_PATH,
    MANIFEST_PATH,
    READABLE_PROJECT_BYTES,
    README_PATH,
    Manifest,
    Member,
    Role,
    check_members,
    check_placed,
    checksum_lines,
    layout_key,
)
from reprobundle.format.names import check_names, is_name_length_safe, twin_key
from reprobundle.format.readme import README
from reprobundle.format.store import Planned, Source, store
from reprobundle.format.write_behind import WriteBehind

__all__ = ["SealedBundle", "Source", "write_bundle"]


@dataclass(frozen=True)
class SealedBundle:
    """What `write_bundle` wrote.

    Attributes:
        id: The bundle id, BLAKE3 of its manifest.
        size_bytes: Size of the bundle file.
        members: The sealed members in layout order, without the manifest.
    """

    id: str
    size_bytes: int
    members: tuple[Member, ...]


def write_bundle(
    target: Path,
    sources: Iterable[Source],
    *,
    workers: int | None = None,
    level: int | None = None,
    progress: Callable[[int], None] | None = None,
    durable: bool = True,
) -> SealedBundle:
    """Write `sources` to a new bundle at `target`, replacing a file that is there.

    README.txt, B3SUMS and manifest.json are added. The bytes depend on the sources
    and the compressor alone, never on the number of threads; the id depends on the
    sources alone. Nothing appears at `target` before all of it is on the disk.

    Args:
        target: Where the bundle goes; its folder takes the temporary file.
        sources: The files, in any order.
        workers: Threads that read, hash and compress; None for one per core.
        level: Compression level of zstd; None for 1 or 3, as each content asks for.
            These are alike on every machine.
        progress: Called in this thread with the number of plain bytes just finished.
        durable: As in `replacing`.

    Raises:
        UnsafeNameError: A path is unsafe, or two of them are twins.
        DocumentError: A path or role has no place in a bundle.
        LimitError: There are too many or too large sources.
        PackRefusedError: A source is no regular file, or changed while it was read.
        EnvironmentUnusableError: A source cannot be read or the target not written.
    """
    ordered = _in_layout_order(sources)
    with (
        replacing(target, durable=durable) as descriptor,
        WriteBehind(descriptor, write_all) as behind,
    ):
        archive = ArchiveWriter(descriptor, behind=behind)
        members = store(
            archive, _plan(ordered), workers=workers, level=level, progress=progress
        )
        manifest = _seal(archive, members)
        size_bytes = archive.close_directory()
    # A change of the file that was here before cannot be undone any more.
    journal_path(target.resolve()).unlink(missing_ok=True)
    return SealedBundle(digest_bytes(manifest), size_bytes, tuple(members))


def _in_layout_order(sources: Iterable[Source]) -> list[Source]:
    everything = [Source(README_PATH, "readme", README), *sources]
    if len(everything) + 1 > limits.MEMBER_COUNT:
        message = f"{len(everything):,} files, at most {limits.MEMBER_COUNT - 1:,}"
        raise LimitError(message, rule="R-6.8")
    names = [source.path for source in everything]
    check_names([*names, CHECKSUMS_PATH, MANIFEST_PATH])
    for source in everything:
        check_placed(source.path, source.role)
    return sorted(everything, key=lambda source: layout_key(source.path))


def _plan(sources: Sequence[Source]) -> list[Planned]:
    """Decide for each source up to which size it is stored as it is.

    Content that could be compressed is left as it is where the name with ``.zst``
    would be another member's, a folder's, or too long.
    """
    taken = set()
    for source in sources:
        name = twin_key(source.path)
        if ".zst" not in name:
            continue  # nothing can be in the way of another one's ``.zst``
        while name and name not in taken:
            taken.add(name)
            name = name.rpartition("/")[0]
    plans = []
    for source in sources:
        stored_as = f"{source.path}.zst"
        free = twin_key(stored_as) not in taken and is_name_length_safe(stored_as)
        plans.append(
            Planned(source, source.path, _raw_limit(source.role) if free else None)
        )
    return plans


def _raw_limit(role: Role) -> int | None:
    """Return up to which size content is stored as it is; None for any size."""
    if role in ALWAYS_RAW:
        return None
    return READABLE_PROJECT_BYTES if role == "project" else limits.RAW_BYTES


def _seal(archive: ArchiveWriter, members: list[Member]) -> bytes:
    """Write B3SUMS and the manifest; return the manifest."""
    lines = checksum_lines(members)
    archive.add(CHECKSUMS_PATH, lines, aligned=len(lines) > limits.RAW_BYTES)
    chunks = range(0, len(lines), limits.CHUNK_BYTES)
    members.append(
        Member(
            path=CHECKSUMS_PATH,
            size_bytes=len(lines),
            blake3=digest_bytes(lines),
            role="checksums",
            chunks=tuple(
                digest_bytes(lines[start : start + limits.CHUNK_BYTES])
                for start in chunks
            )
            if len(chunks) > 1
            else (),
        )
    )
    check_members(members)
    manifest = encode(Manifest(members=tuple(members)))
    if len(manifest) > limits.DOCUMENT_BYTES:
        message = f"the manifest has {len(manifest):,} bytes, too many to be read"
        raise LimitError(message, rule="R-6.1", where=MANIFEST_PATH)
    archive.add(MANIFEST_PATH, manifest, aligned=len(manifest) > limits.RAW_BYTES)
    return manifest
