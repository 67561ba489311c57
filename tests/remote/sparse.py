"""A bundle of 20 GiB of which hardly anything lies on the disk."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec

from reprobundle.format import limits
from reprobundle.format.archive import ArchiveWriter
from reprobundle.format.canonical import encode
from reprobundle.format.digests import digest_bytes
from reprobundle.format.manifest import (
    CHECKSUMS_PATH,
    MANIFEST_PATH,
    Member,
    checksum_lines,
)
from reprobundle.format.reader import open_bundle

HOLE_BYTES = 10 << 30
CHUNKS = HOLE_BYTES // limits.CHUNK_BYTES

# The path of each hole, and the member it lies before.
HOLES = {
    "lock/environment.json": ("inputs/huge.bin", "input"),
    "runs/2/memory.json": ("runs/2/a-huge-log.txt", "log"),
}


def write_sparse(small: Path, target: Path) -> None:
    """Write the bundle `small` with two holes more, whose digests are invented."""
    rng = random.Random(0)
    with open_bundle(small) as bundle, target.open("w+b") as stream:
        writer = ArchiveWriter(stream.fileno())
        members: list[Member] = []
        for member in bundle.manifest.members:
            if member.path in HOLES:
                members.append(_write_hole(writer, *HOLES[member.path], rng))
            data = bundle.read(member.path)
            kept = member
            if member.path == CHECKSUMS_PATH:
                data = checksum_lines(members)
                kept = msgspec.structs.replace(
                    member, size_bytes=len(data), blake3=digest_bytes(data)
                )
            members.append(kept)
            writer.add(member.path, data, aligned=len(data) > limits.RAW_BYTES)
        manifest = msgspec.structs.replace(bundle.manifest, members=tuple(members))
        writer.add(MANIFEST_PATH, encode(manifest), aligned=True)
        writer.close_directory()


def _write_hole(writer: ArchiveWriter, path: str, role, rng: random.Random) -> Member:
    writer.begin(path, HOLE_BYTES, aligned=True)
    writer.flush()
    writer._offset += HOLE_BYTES
    writer.finish(0)
    digests = [rng.randbytes(32).hex() for _ in range(CHUNKS + 1)]
    return Member(
        path=path,
        role=role,
        size_bytes=HOLE_BYTES,
        blake3=digests[0],
        chunks=tuple(digests[1:]),
    )
