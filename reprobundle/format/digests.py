"""BLAKE3 digests of bytes, streams and files, in bounded memory."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from blake3 import blake3

PIECE_BYTES = 1 << 20
PARALLEL_BYTES = 8 << 20
"""From this size on several threads gain more than their start costs."""


def digest_bytes(data: bytes | bytearray | memoryview) -> str:
    """Return the BLAKE3 digest of `data` as 64 hexadecimal digits."""
    return str(blake3(data).hexdigest())


def digest_stream(stream: BinaryIO) -> str:
    """Return the BLAKE3 digest of all bytes from here to the end of `stream`."""
    hasher = blake3()
    while piece := stream.read(PIECE_BYTES):
        hasher.update(piece)
    return str(hasher.hexdigest())


def digest_file(path: Path) -> str:
    """Return the BLAKE3 digest of the file at `path`, as ``b3sum`` prints it.

    It reads into one buffer of at most 8 MiB: mapping the file would be slower, and
    would end the process when the file shrinks meanwhile.

    Raises:
        OSError: The file cannot be read.
    """
    with path.open("rb", buffering=0) as stream:
        if path.stat().st_size < PARALLEL_BYTES:
            return digest_stream(stream)
        hasher = blake3(max_threads=blake3.AUTO)
        buffer = bytearray(PARALLEL_BYTES)
        view = memoryview(buffer)
        while count := stream.readinto(buffer):
            hasher.update(view[:count])
        return str(hasher.hexdigest())
