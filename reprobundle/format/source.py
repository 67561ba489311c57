"""Where the bytes of an archive come from: a file here, or one that lies elsewhere."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Protocol

from reprobundle.errors import NotABundleError
from reprobundle.format.atomic import explained
from reprobundle.format.positions import read_at

_READ_BYTES = 1 << 30
"""What one call of the system gives at most, with room to spare."""


class ByteSource(Protocol):
    """Bytes that can be read at any place, from several threads at once.

    Attributes:
        size_bytes: How many there are.
        at_hand: Whether all of them are on this machine, so that reading costs little.
    """

    size_bytes: int

    @property
    def at_hand(self) -> bool:
        """Whether all bytes are on this machine."""

    def read_at(self, offset: int, count: int) -> bytes:
        """Return at most `count` bytes from `offset` on, fewer only at the end."""

    def fetch_all(self) -> None:
        """Bring all bytes onto this machine."""

    def close(self) -> None:
        """End reading; raise if what was read is known not to belong together."""


class Place(Protocol):
    """A file that lies elsewhere, as far as it has to be known to be opened."""

    @property
    def name(self) -> str:
        """Its name without the way to it."""

    def open(self) -> ByteSource:
        """Return its bytes.

        Raises:
            EnvironmentUnusableError: It cannot be reached or read.
        """


class _Numbered(Protocol):
    """An open file of the system."""

    def fileno(self) -> int: ...

    def close(self) -> None: ...


class LocalFile:
    """A file of this machine, read without a position of its own."""

    at_hand = True

    def __init__(self, file: _Numbered) -> None:
        self._file = file
        self.size_bytes = os.fstat(file.fileno()).st_size

    def read_at(self, offset: int, count: int) -> bytes:
        """Return at most `count` bytes from `offset` on, fewer only at the end.

        Raises:
            ValueError: The file was closed.
        """
        return read_at(self._file.fileno(), min(count, _READ_BYTES), offset)

    def fetch_all(self) -> None:
        """Do nothing: all bytes are here."""

    def close(self) -> None:
        """Close the file; nothing of it can be read any more."""
        self._file.close()


def open_source(place: Path | Place) -> ByteSource:
    """Return the bytes of a file here or elsewhere.

    Raises:
        NotABundleError: It is a pipe.
        EnvironmentUnusableError: It cannot be read.
    """
    if not isinstance(place, Path):
        return place.open()
    with explained(f"cannot read {str(place)!r}"):
        # Asked before opening: to open a pipe would wait for its other end.
        if stat.S_ISFIFO(place.stat().st_mode):
            raise NotABundleError("no file but a pipe", rule="R-4.1")
        return LocalFile(place.open("rb", buffering=0))


def read_exactly(source: ByteSource, offset: int, count: int) -> bytes:
    """Return `count` bytes from `offset` on.

    Raises:
        NotABundleError: The file ends before.
    """
    pieces: list[bytes] = []
    while count:
        piece = source.read_at(offset, count)
        if not piece:
            raise NotABundleError(
                f"the file ends at byte {offset:,} while it is read", rule="R-4.1"
            )
        if len(piece) == count and not pieces:
            return piece
        pieces.append(piece)
        offset += len(piece)
        count -= len(piece)
    return b"".join(pieces)
