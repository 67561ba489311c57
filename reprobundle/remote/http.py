"""Fetch parts of a file over HTTP, and believe no answer that was not looked at.

The session is that of fsspec: its settings (``FSSPEC_HTTP``), the proxies and the
``.netrc`` of the environment count. The requests are made here, because fsspec's own
takes every answer: one of 200 to a request for a part is the whole file to it, another
file under the same address the same file.

Source: RFC 9110, sections 13.1.5 (If-Range), 14 (range requests) and 15.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from reprobundle.errors import ChangedElsewhereError, NoPartsError, RemoteFileError
from reprobundle.format import limits
from reprobundle.remote.address import Address
from reprobundle.remote.fetcher import Sink

if TYPE_CHECKING:
    from aiohttp import ClientResponse

TIMEOUT_S = 30.0
ATTEMPTS = 3
"""How often an answer may break off before much of it has come."""

MUCH_BYTES = 1 << 20
_PIECE_BYTES = 1 << 20
_MOST_REDIRECTIONS = 10
_CONTENT_RANGE = re.compile(r"bytes (\d{1,19})-(\d{1,19})/(\d{1,19})")
_EMPTY = re.compile(r"bytes \*/0")


class _Part(NamedTuple):
    """What an answer of 206 says it is: first byte, last byte, size of the file."""

    first: int
    last: int
    size_bytes: int


class HttpFetcher:
    """One file on an HTTP server."""

    def __init__(self, address: Address, *, timeout_s: float = TIMEOUT_S) -> None:
        """Prepare to read `address`; no byte may take longer than `timeout_s`."""
        import fsspec

        self.requests = 0
        self.watched = False
        self._address = address
        self._timeout_s = timeout_s
        self._size_bytes = 0
        self._mark = ""
        self._system = fsspec.filesystem(
            address.scheme, client_kwargs={"trust_env": True}, skip_instance_cache=True
        )

    def begin(self, tail_bytes: int, sink: Sink) -> int:
        """Fetch the last bytes of the file, and return its size."""
        self._size_bytes = self._run(self._begin, tail_bytes, sink)
        return self._size_bytes

    def fetch(self, start: int, end: int, sink: Sink) -> None:
        """Fetch the bytes from `start` to before `end`, all of them."""
        self._run(self._fetch, start, end, sink)

    def fetch_whole(self, most_bytes: int, sink: Sink) -> int:
        """Fetch the file in one piece, and return its size."""
        self._size_bytes = self._run(self._fetch_whole, most_bytes, sink)
        return self._size_bytes

    def settle(self) -> None:
        """Do nothing: every answer was looked at."""

    def close(self) -> None:
        """Close the connections."""
        self._run(self._close)

    async def _close(self) -> None:
        session = await self._system.set_session()
        await session.close()

    # --- the conversation

    def _run(self, ask: Callable[..., Coroutine[Any, Any, Any]], *args: object) -> Any:  # noqa: ANN401
        from fsspec.asyn import sync

        return sync(self._system.loop, ask, *args)

    @asynccontextmanager
    async def _asked(self, span: str = "") -> AsyncIterator[ClientResponse]:
        """Give the answer to a request for ``bytes=span``, or for the whole file."""
        import aiohttp

        own = self._system.kwargs.get("headers", {})
        headers = {**own, "Accept-Encoding": "identity"}
        if span:
            headers["Range"] = f"bytes={span}"
        if span and self._mark and not self._mark.startswith("W/"):
            headers["If-Range"] = self._mark
        patience = aiohttp.ClientTimeout(
            total=None, sock_connect=self._timeout_s, sock_read=self._timeout_s
        )
        session = await self._system.set_session()
        self.requests += 1
        try:
            async with session.get(
                self._system.encode_url(self._address.url),
                headers=headers,
                timeout=patience,
                max_redirects=_MOST_REDIRECTIONS,
            ) as answer:
                self.requests += len(answer.history)
                self._refuse_unsafe(answer)
                yield answer
        except asyncio.TimeoutError:
            raise self._failed(
                f"no byte came for {self._timeout_s:g} s", "try again later"
            ) from None
        except (aiohttp.ClientError, ValueError, OSError) as error:
            # Not chained: their texts hold the address with all that is in it.
            raise self._failed(*_explained(error)) from None

    async def _begin(self, tail_bytes: int, sink: Sink) -> int:
        async with self._asked(f"-{tail_bytes}") as answer:
            if answer.status == 206:
                return await self._take_tail(answer, tail_bytes, sink)
            length = answer.content_length
            if answer.status == 200 and length is not None and length <= tail_bytes:
                # Asked for more than there is, some servers answer so.
                self._remember(answer)
                return await self._take_all(answer, length, tail_bytes, sink)
            if answer.status not in {200, 400, 416, 501}:
                raise self._refused(answer.status)
        # Some servers know no request for the last bytes.
        async with self._asked("0-0") as answer:
            if answer.status == 416 and _EMPTY.fullmatch(_content_range(answer)):
                return 0
            if answer.status == 200:
                raise self._no_parts(answer.content_length)
            if answer.status != 206:
                raise self._refused(answer.status)
            self._size_bytes = self._part(answer).size_bytes
            self._remember(answer)
        start = max(0, self._size_bytes - tail_bytes)
        await self._fetch(start, self._size_bytes, sink)
        return self._size_bytes

    async def _take_tail(
        self, answer: ClientResponse, tail_bytes: int, sink: Sink
    ) -> int:
        self._remember(answer)
        part = self._part(answer)
        start = max(0, part.size_bytes - tail_bytes)
        if part != _Part(start, part.size_bytes - 1, part.size_bytes):
            raise self._other_bytes(f"the last {tail_bytes:,} bytes", part)
        self._size_bytes = part.size_bytes
        reached = await self._receive(answer, start, part.size_bytes, sink)
        await self._fetch(reached, part.size_bytes, sink)
        return part.size_bytes

    async def _take_all(
        self, answer: ClientResponse, length: int | None, most_bytes: int, sink: Sink
    ) -> int:
        """Keep an answer that is the whole file, and return its size."""
        end = most_bytes if length is None else length
        reached = await self._receive(answer, 0, end, sink)
        if length is not None and reached != length:
            raise self._failed(
                f"the answer ended after {reached:,} of {length:,} bytes", "try again"
            )
        return reached

    async def _fetch(self, start: int, end: int, sink: Sink) -> None:
        broken_off = 0
        while start < end:
            async with self._asked(f"{start}-{end - 1}") as answer:
                self._check_part(answer, start, end)
                reached = await self._receive(answer, start, end, sink)
            broken_off = 0 if reached - start >= MUCH_BYTES else broken_off + 1
            if reached < end and broken_off == ATTEMPTS:
                raise self._failed(
                    f"the connection broke off {ATTEMPTS} times, last at byte "
                    f"{reached:,} of {self._size_bytes:,}",
                    "try again later",
                )
            start = reached

    async def _fetch_whole(self, most_bytes: int, sink: Sink) -> int:
        async with self._asked() as answer:
            if answer.status != 200:
                raise self._refused(answer.status)
            self._remember(answer)
            length = answer.content_length
            if length is not None and length > most_bytes:
                raise self._too_large(f"{length:,} bytes", most_bytes)
            return await self._take_all(answer, length, most_bytes, sink)

    async def _receive(
        self, answer: ClientResponse, start: int, end: int, sink: Sink
    ) -> int:
        """Keep the body of an answer; return where it ended, if need be too early."""
        import aiohttp

        try:
            async for data in answer.content.iter_chunked(_PIECE_BYTES):
                if start + len(data) > end:
                    raise self._failed(f"more bytes came than the {end:,} there are")
                sink(start, data)
                start += len(data)
        except asyncio.TimeoutError:
            raise
        except (aiohttp.ClientPayloadError, aiohttp.ClientConnectionError):
            pass  # how far it came is what counts
        return start

    # --- what an answer says

    def _remember(self, answer: ClientResponse) -> None:
        self._mark = _mark(answer)
        self.watched = bool(self._mark)

    def _check_part(self, answer: ClientResponse, start: int, end: int) -> None:
        """Refuse an answer that is not these bytes of the file that was begun."""
        status = answer.status
        if status not in {200, 206, 404, 410, 416}:
            raise self._refused(status)
        if status >= 400 or _mark(answer) != self._mark:
            raise self._changed()
        if status == 200:
            raise self._failed("a request for a part was answered with the whole file")
        part = self._part(answer)
        if part.size_bytes != self._size_bytes:
            raise self._changed()
        if (part.first, part.last) != (start, end - 1):
            raise self._other_bytes(f"bytes {start:,} to {end - 1:,}", part)

    def _part(self, answer: ClientResponse) -> _Part:
        said = _content_range(answer)
        match = _CONTENT_RANGE.fullmatch(said)
        if match is None:
            raise self._failed("an answer does not say which bytes of the file it has")
        part = _Part(*map(int, match.groups()))
        if not part.first <= part.last < part.size_bytes <= limits.FILE_BYTES:
            raise self._failed(f"an answer says that it is {said!r}")
        return part

    def _refuse_unsafe(self, answer: ClientResponse) -> None:
        if answer.headers.get("Content-Encoding", "identity") != "identity":
            raise self._failed("the server changes the bytes: it compresses them")
        hops = [one.url.scheme for one in answer.history] + [answer.url.scheme]
        if self._address.scheme == "https" and set(hops) != {"https"}:
            raise self._failed("the server leads from https to http")

    # --- errors

    def _failed(self, message: str, advice: str = "") -> RemoteFileError:
        return RemoteFileError(self._address.shown, message, advice=advice)

    def _changed(self) -> ChangedElsewhereError:
        return ChangedElsewhereError(
            self._address.shown,
            "the file was replaced or removed while it was read; nothing was judged",
            advice="call again",
        )

    def _no_parts(self, size_bytes: int | None) -> NoPartsError:
        told = "of unknown size" if size_bytes is None else f"{size_bytes:,} bytes"
        return NoPartsError(
            self._address.shown,
            f"the server gives the whole file only ({told}), not parts of it",
            size_bytes=size_bytes,
            advice="--download-limit SIZE fetches all of it if it is no larger",
        )

    def _too_large(self, told: str, most_bytes: int) -> RemoteFileError:
        return self._failed(
            f"{told}, more than the {most_bytes:,} that may be fetched",
            "raise --download-limit",
        )

    def _other_bytes(self, wanted: str, part: _Part) -> RemoteFileError:
        return self._failed(
            f"asked for {wanted}, got bytes {part.first:,} to {part.last:,} of "
            f"{part.size_bytes:,}"
        )

    def _refused(self, status: int) -> RemoteFileError:
        if status in {404, 410}:
            return self._failed(
                f"there is no such file ({status})", "check the address"
            )
        if status in {401, 403, 407}:
            return self._failed(
                f"the server does not let you read it ({status})",
                "give what it asks for in ~/.netrc or in the address; a signed link "
                "may have expired",
            )
        again = "try again later" if status == 429 or status >= 500 else ""
        return self._failed(f"the server answered with status {status}", again)


def _mark(answer: ClientResponse) -> str:
    """Return what changes when the file does: its ETag, else its date."""
    return str(answer.headers.get("ETag") or answer.headers.get("Last-Modified", ""))


def _content_range(answer: ClientResponse) -> str:
    return str(answer.headers.get("Content-Range", ""))


def _explained(error: Exception) -> tuple[str, str]:
    """Return in own words what went wrong, and what to do next."""
    import aiohttp

    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return "the server's certificate is not accepted", "check the address"
    if isinstance(error, aiohttp.ClientConnectorError):
        reason = (error.os_error.strerror or "no answer").lower()
        return f"cannot connect: {reason}", "check the address and the network"
    if isinstance(error, aiohttp.TooManyRedirects):
        return f"it leads on more than {_MOST_REDIRECTIONS} times", "check the address"
    if isinstance(error, aiohttp.InvalidURL | ValueError):
        return "no address that can be asked for", "check the address"
    return "the connection was lost", "try again"
