"""Fetch parts of an object of a store (S3, Google Cloud) through fsspec."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from reprobundle.errors import ChangedElsewhereError, RemoteFileError
from reprobundle.remote.fetcher import Sink

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

PIECE_BYTES = 16 << 20

# Under which of these names a store tells what changes with the object.
_MARKS = ("ETag", "etag", "generation", "VersionId", "md5Hash", "mtime", "created")


class ObjectFetcher:
    """One object of a store that fsspec knows.

    Each request is one call of fsspec; what that asks for beside it, such as
    credentials, is not counted.
    """

    def __init__(self, system: AbstractFileSystem, path: str, shown: str) -> None:
        """Prepare to read `path` of a file system, called `shown` in messages."""
        self.requests = 0
        self.watched = False
        self._system = system
        self._path = path
        self._shown = shown
        self._known: tuple[object, ...] = ()
        self._unsettled = False

    def begin(self, tail_bytes: int, sink: Sink) -> int:
        """Fetch the last bytes of the object, and return its size."""
        self._known = self._look()
        size_bytes = self._known[0]
        if not isinstance(size_bytes, int):
            raise RemoteFileError(self._shown, "the store does not tell its size")
        self.watched = any(one is not None for one in self._known[1:])
        self.fetch(max(0, size_bytes - tail_bytes), size_bytes, sink)
        return size_bytes

    def fetch(self, start: int, end: int, sink: Sink) -> None:
        """Fetch the bytes from `start` to before `end`, all of them."""
        for first in range(start, end, PIECE_BYTES):
            last = min(first + PIECE_BYTES, end)
            data = self._ask(self._system.cat_file, start=first, end=last)
            if len(data) != last - first:
                raise RemoteFileError(
                    self._shown,
                    f"asked for {last - first:,} bytes, got {len(data):,}",
                    advice="try again",
                )
            self._unsettled = True
            sink(first, data)

    def fetch_whole(self, most_bytes: int, sink: Sink) -> NoReturn:
        """Raise: a store always gives parts."""
        raise NotImplementedError

    def settle(self) -> None:
        """See that the object is still the one that was begun.

        What was read before it was looked at again is then of that object.
        """
        if self._unsettled and self._look() != self._known:
            raise ChangedElsewhereError(
                self._shown,
                "the object was replaced while it was read; nothing was judged",
                advice="call again",
            )
        self._unsettled = False

    def close(self) -> None:
        """Do nothing: what fsspec keeps open, it closes."""

    def _look(self) -> tuple[object, ...]:
        with self._explained():
            self._system.invalidate_cache(self._path)
        info = self._ask(self._system.info)
        return (info.get("size"), *(info.get(name) for name in _MARKS))

    def _ask(self, call: Callable[..., Any], **arguments: int) -> Any:  # noqa: ANN401
        self.requests += 1
        with self._explained():
            return call(self._path, **arguments)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise RemoteFileError(
                self._shown, "there is no such object", advice="check the address"
            ) from None
        except PermissionError:
            raise RemoteFileError(
                self._shown,
                "the store does not let you read it",
                advice="set the credentials that its own tools use",
            ) from None
        except Exception as error:
            told = " ".join(str(error).split())[:200]
            raise RemoteFileError(
                self._shown, f"{type(error).__name__}: {told}"
            ) from error
