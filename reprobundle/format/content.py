"""Read the plain content of one file in a bundle, chunk by chunk."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from reprobundle.errors import DigestError, StructureError
from reprobundle.format import frames, limits
from reprobundle.format.archive import Entry
from reprobundle.format.digests import digest_bytes
from reprobundle.format.frames import Span
from reprobundle.format.source import ByteSource, read_exactly

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class Content(NamedTuple):
    """One file of an open archive.

    Attributes:
        file: The open archive.
        name: Plain name, without the ``.zst`` of its entry.
        entry: Where its stored bytes lie.
        size_bytes: Size of its plain content.
        compressed: Whether the stored bytes are zstd frames.
        digest: Sealed BLAKE3 of the content; empty outside the seal.
        chunks: Sealed BLAKE3 of each chunk, if there are several.
    """

    file: ByteSource
    name: str
    entry: Entry
    size_bytes: int
    compressed: bool = False
    digest: str = ""
    chunks: tuple[str, ...] = ()

    @property
    def chunk_digests(self) -> tuple[str, ...]:
        """The digest of each chunk, also where the only chunk is the content."""
        return self.chunks or ((self.digest,) if self.digest else ())

    def spans(self) -> Iterator[Span]:
        """Yield where each chunk is stored, in order.

        Raises:
            StructureError: The compressed frames are not as the format allows.
        """
        if self.compressed:
            return frames.find_spans(
                self.file,
                self.entry.data_offset,
                self.entry.end,
                self.size_bytes,
                where=self.name,
            )
        return self._raw_spans()

    def load(self, span: Span) -> bytes:
        """Return the plain bytes of one chunk, not compared with any digest.

        Raises:
            StructureError: Its frame cannot be decoded.
        """
        stored = self.stored(span)
        return self.decode(stored, span) if self.compressed else stored

    def stored(self, span: Span) -> bytes:
        """Return the stored bytes of one chunk."""
        return read_exactly(self.file, span.offset, span.length)

    def decode(self, stored: bytes, span: Span) -> bytes:
        """Return the plain bytes of a chunk's stored ones."""
        if not self.compressed:
            return stored
        return frames.decompress(stored, span.plain_bytes, where=self.name)

    def read(self) -> bytes:
        """Return the whole content, compared with its digest if it is sealed.

        Raises:
            DigestError: It is not what was sealed.
            StructureError: It cannot be decompressed.
        """
        data = b"".join(self.load(span) for span in self.spans())
        self.check(data, self.digest)
        return data

    def check(self, data: bytes, digest: str, *, where: str = "") -> None:
        """Refuse `data` unless its digest is `digest`; an empty one asks for nothing.

        Raises:
            DigestError: It is not what was sealed.
        """
        if digest and (got := digest_bytes(data)) != digest:
            raise DigestError(
                where or self.name, expected=digest, got=got, rule="R-4.25"
            )

    def _raw_spans(self) -> Iterator[Span]:
        start = self.entry.data_offset
        for offset in range(0, self.size_bytes, limits.CHUNK_BYTES):
            length = min(limits.CHUNK_BYTES, self.size_bytes - offset)
            yield Span(start + offset, length, length)


class ContentStream(io.RawIOBase):
    """A seekable stream of one content that holds one chunk at a time.

    No byte is given out before its chunk agrees with the sealed digest, if there is
    one.
    """

    def __init__(self, content: Content) -> None:
        super().__init__()
        self._content = content
        self._found: list[Span] = []
        self._rest = content.spans()
        self._position = 0
        self._number = -1
        self._chunk = b""

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position in the plain content, in bytes."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a position in the plain content and return it."""
        base = (0, self._position, self._content.size_bytes)[whence]
        self._position = max(0, base + offset)
        return self._position

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Fill `buffer` from one chunk and return how many bytes that gave."""
        view = memoryview(buffer).cast("B")
        if self._position >= self._content.size_bytes:
            return 0
        number, start = divmod(self._position, limits.CHUNK_BYTES)
        if number != self._number:
            self._chunk = self._load(number)
            self._number = number
        piece = self._chunk[start : start + len(view)]
        view[: len(piece)] = piece
        self._position += len(piece)
        return len(piece)

    def _load(self, number: int) -> bytes:
        self._chunk = b""  # let go of the old chunk before the new one is made
        data = self._content.load(self._span(number))
        digests = self._content.chunk_digests
        if digests:
            start = number * limits.CHUNK_BYTES
            where = f"{self._content.name} bytes {start}-{start + len(data)}"
            self._content.check(data, digests[number], where=where)
        return data

    def _span(self, number: int) -> Span:
        while len(self._found) <= number:
            span = next(self._rest, None)
            if span is None:
                raise StructureError(
                    "it has fewer frames than chunks",
                    rule="R-4.21",
                    where=self._content.name,
                )
            self._found.append(span)
        return self._found[number]
