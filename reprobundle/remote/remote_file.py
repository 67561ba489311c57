"""A bundle on a server, opened as often as needed and fetched once."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from reprobundle.errors import EnvironmentUnusableError
from reprobundle.remote.address import Address
from reprobundle.remote.fetcher import Fetcher
from reprobundle.remote.ranged_file import RangedFile

_PACKAGES = {
    "http": "aiohttp",
    "https": "aiohttp",
    "s3": "s3fs",
    "gs": "gcsfs",
}


class RemoteFile:
    """A file on a server (`format.source.Place`).

    Attributes:
        name: Its name without the way to it.
        address: Where it lies.
        progress: Called with the number of bytes just received, from any thread.
    """

    def __init__(
        self,
        address: Address,
        *,
        download_limit_bytes: int | None = None,
        fetcher: Fetcher | None = None,
    ) -> None:
        """Prepare to read a file; nothing is asked yet.

        Args:
            address: Where it lies.
            download_limit_bytes: How much may be fetched if the server gives no parts.
            fetcher: How it is fetched; None for what its address asks for.

        Raises:
            EnvironmentUnusableError: A package is missing for this kind of address.
        """
        self.address = address
        self.name = address.name
        self.progress: Callable[[int], None] = lambda _: None
        self._limit_bytes = download_limit_bytes
        self._fetcher = fetcher or find_fetcher(address)
        self._file: RangedFile | None = None

    def __enter__(self) -> RemoteFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.forget()
        self._fetcher.close()

    def open(self) -> RangedFile:
        """Return its bytes; what was fetched for an earlier call is still there.

        Raises:
            RemoteFileError: It cannot be read.
        """
        if self._file is None:
            self._file = RangedFile(
                self._fetcher,
                download_limit_bytes=self._limit_bytes,
                progress=lambda count: self.progress(count),
            )
        return self._file

    @property
    def requests(self) -> int:
        """How many requests were made."""
        return self._fetcher.requests

    @property
    def received_bytes(self) -> int:
        """How many bytes were received."""
        return self._file.received_bytes if self._file else 0

    @property
    def size_bytes(self) -> int | None:
        """Its size; None while that is not known."""
        return self._file.size_bytes if self._file else None

    @property
    def watched(self) -> bool:
        """Whether it would have been noticed if it was replaced between requests."""
        return self._fetcher.watched


def find_fetcher(address: Address) -> Fetcher:
    """Return what fetches a file from `address`.

    Raises:
        EnvironmentUnusableError: A package is missing for this kind of address.
    """
    try:
        if address.scheme in {"http", "https"}:
            from reprobundle.remote.http import HttpFetcher

            return HttpFetcher(address)
        import logging

        import fsspec

        from reprobundle.remote.objects import ObjectFetcher

        # What the libraries log with a traceback, the error tells in one line.
        for name in ("s3fs", "gcsfs", "fsspec"):
            logging.getLogger(name).addHandler(logging.NullHandler())
        system, path = fsspec.url_to_fs(address.url)
        return ObjectFetcher(system, path, address.shown)
    except ImportError as error:
        package = _PACKAGES[address.scheme]
        raise EnvironmentUnusableError(
            f"reading {address.scheme}:// needs the package {package}",
            advice=f"pip install fsspec {package}",
        ) from error
