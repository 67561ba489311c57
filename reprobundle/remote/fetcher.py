"""What every way of fetching a remote file offers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

Sink = Callable[[int, bytes], None]
"""Takes bytes and the place in the file where they start, from any thread."""


class Fetcher(Protocol):
    """Asks a server for parts of one file, and that they are parts of the same file.

    Attributes:
        requests: How many requests were made, redirections too.
        watched: Whether a file that is replaced between two requests would be noticed.
    """

    requests: int
    watched: bool

    def begin(self, tail_bytes: int, sink: Sink) -> int:
        """Fetch the last bytes of the file, and return its size.

        Raises:
            NoPartsError: The server gives the file as a whole only.
            RemoteFileError: It cannot be read.
        """

    def fetch(self, start: int, end: int, sink: Sink) -> None:
        """Fetch the bytes from `start` to before `end`, all of them.

        Raises:
            ChangedElsewhereError: The file is not the one that was begun.
            RemoteFileError: It cannot be read.
        """

    def fetch_whole(self, most_bytes: int, sink: Sink) -> int:
        """Fetch the file in one piece, and return its size.

        Raises:
            RemoteFileError: It cannot be read, or is larger than `most_bytes`.
        """

    def settle(self) -> None:
        """Ask once more, where each answer does not tell, that it is the same file.

        Raises:
            ChangedElsewhereError: It is another one.
        """

    def close(self) -> None:
        """End the conversation."""
