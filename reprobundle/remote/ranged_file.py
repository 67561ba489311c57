"""A remote file of which only what is read is fetched, each byte once."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from bisect import bisect_left, insort
from collections.abc import Callable

from reprobundle.errors import NoPartsError, NoSpaceError
from reprobundle.format.archive import write_all
from reprobundle.format.atomic import explained
from reprobundle.remote.fetcher import Fetcher

TAIL_BYTES = 512 << 10
"""Fetched first. Directory and manifest of a bundle of 20 GB fit: the digests of its
chunks take 64 bytes for every 4 MiB."""

BEFORE_BYTES = 64 << 10
LEAST_AHEAD_BYTES = 128 << 10
MOST_AHEAD_BYTES = 8 << 20
"""Fetched at once before what is asked for, and from there on: at least, and at most
when what is read lies one behind another."""


class RangedFile:
    """A source of bytes (`format.source.ByteSource`) that lies on a server.

    What was fetched is kept in a temporary file without a name, with holes where
    nothing was read; the system removes it when the process ends, however it ends.

    Attributes:
        size_bytes: Size of the file there.
        received_bytes: How many bytes came over the network.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        *,
        download_limit_bytes: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """Fetch the end of the file.

        Args:
            fetcher: Asks the server.
            download_limit_bytes: How much may be fetched of a file that its server
                gives as a whole only; None refuses such a server.
            progress: Called with the number of bytes just received, from any thread.

        Raises:
            RemoteFileError: The file cannot be read there.
        """
        self.received_bytes = 0
        self.progress = progress or (lambda _: None)
        self._fetcher = fetcher
        self._held = Stretches()
        self._lock = threading.Lock()
        self._ahead_bytes = LEAST_AHEAD_BYTES
        self._last_end = -1
        with explained("cannot keep what is read in the folder for temporary files"):
            self._kept = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
        try:
            self.size_bytes = self._begin(download_limit_bytes)
        except BaseException:
            self._kept.close()
            raise

    @property
    def at_hand(self) -> bool:
        """Whether all bytes were fetched."""
        return not self._held.missing(0, self.size_bytes)

    def read_at(self, offset: int, count: int) -> bytes:
        """Return at most `count` bytes from `offset` on, fewer only at the end.

        Raises:
            RemoteFileError: They cannot be read there.
        """
        end = min(offset + count, self.size_bytes)
        if offset >= end:
            return b""
        with self._lock:
            self._bring(offset, end)
        return os.pread(self._kept.fileno(), end - offset, offset)

    def fetch_all(self) -> None:
        """Fetch what is still missing.

        Raises:
            NoSpaceError: There is no room for it.
            RemoteFileError: It cannot be read there.
        """
        with self._lock:
            gaps = self._held.missing(0, self.size_bytes)
            _check_room(sum(end - start for start, end in gaps))
            for start, end in gaps:
                self._fetcher.fetch(start, end, self._keep)

    def close(self) -> None:
        """Raise if what was read is not all of one file; keep it for another reading.

        Raises:
            ChangedElsewhereError: The file was replaced meanwhile.
        """
        self._fetcher.settle()

    def forget(self) -> None:
        """Remove what was kept."""
        self._kept.close()

    def _begin(self, download_limit_bytes: int | None) -> int:
        tail_bytes = TAIL_BYTES
        if download_limit_bytes is not None:
            # A server without parts gives all of a file that is no longer than this.
            tail_bytes = max(1, min(tail_bytes, download_limit_bytes))
        try:
            return self._fetcher.begin(tail_bytes, self._keep)
        except NoPartsError:
            if download_limit_bytes is None:
                raise
        return self._fetcher.fetch_whole(download_limit_bytes, self._keep)

    def _bring(self, start: int, end: int) -> None:
        """Fetch what is missing of a stretch, and some of what lies around it.

        The documents of a bundle are small and lie together; large content is read
        from its beginning to its end.
        """
        gaps = self._held.missing(start, end)
        if not gaps:
            return
        first = gaps[0][0]
        if first == self._last_end:
            self._ahead_bytes = min(2 * self._ahead_bytes, MOST_AHEAD_BYTES)
        else:
            self._ahead_bytes = LEAST_AHEAD_BYTES
            first = max(0, first - BEFORE_BYTES)
        end = min(max(end, gaps[0][0] + self._ahead_bytes), self.size_bytes)
        for gap_start, gap_end in self._held.missing(first, end):
            if gap_end <= start:
                continue  # nothing that was asked for
            self._fetcher.fetch(gap_start, gap_end, self._keep)
            self._last_end = gap_end

    def _keep(self, offset: int, data: bytes) -> None:
        with explained("cannot keep what is read in the folder for temporary files"):
            write_all(self._kept.fileno(), data, offset)
        self._held.add(offset, offset + len(data))
        self.received_bytes += len(data)
        self.progress(len(data))


class Stretches:
    """Which bytes of a file are held: stretches that neither touch nor overlap."""

    def __init__(self) -> None:
        self._stretches: list[tuple[int, int]] = []

    def add(self, start: int, end: int) -> None:
        """Hold the bytes from `start` to before `end` too."""
        if start >= end:
            return
        touching = [it for it in self._stretches if it[0] <= end and start <= it[1]]
        for stretch in touching:
            self._stretches.remove(stretch)
            start, end = min(start, stretch[0]), max(end, stretch[1])
        insort(self._stretches, (start, end))

    def missing(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return the stretches between `start` and `end` that are not held."""
        gaps = []
        first = bisect_left(self._stretches, (start, start)) - 1
        for held_start, held_end in self._stretches[max(first, 0) :]:
            if held_start >= end:
                break
            if held_start > start:
                gaps.append((start, held_start))
            start = max(start, held_end)
        if start < end:
            gaps.append((start, end))
        return gaps


def _check_room(size_bytes: int) -> None:
    folder = tempfile.gettempdir()
    free_bytes = shutil.disk_usage(folder).free
    if size_bytes > free_bytes:
        raise NoSpaceError(
            f"all {size_bytes:,} bytes have to be read, and the folder for temporary "
            f"files has room for {free_bytes:,}",
            folder=folder,
            needed_bytes=size_bytes,
            free_bytes=free_bytes,
            advice="set TMPDIR to a folder with more room",
        )
