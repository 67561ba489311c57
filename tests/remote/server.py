"""A server on this machine that counts what it is asked for, and can misbehave."""

from __future__ import annotations

import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Served:
    """What the server does; tests change it between two requests too.

    Attributes:
        path: The file it serves at every address.
        etag: Of the file; empty for none.
        modified: Its date; empty for none.
        ranges: How it takes a request for a part: ``yes``, ``no`` (the whole file with
            status 200), ``no-suffix`` (as Azure does: not for the last bytes).
        status: Answer every request with this status, if it is not 0.
        redirect: Lead there first, if it is not empty.
        shift: Answer with bytes so far from those asked for.
        stated_size: Size to state instead of the true one.
        cut: How many bytes of a body come before the connection is closed.
        stall: Whether it sends a part of the body and then nothing more.
        length: Whether it states the length of what it sends.
        encoding: A Content-Encoding to claim.
        after: Called after each request with their number.
        asked: Every Range header, in order; empty where there was none.
        headers: All headers of each request.
        sent_bytes: Bytes of bodies that were sent.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.etag = '"one"'
        self.modified = ""
        self.ranges = "yes"
        self.status = 0
        self.redirect = ""
        self.shift = 0
        self.stated_size: int | None = None
        self.cut: int | None = None
        self.stall = False
        self.length = True
        self.encoding = ""
        self.after = lambda count: None
        self.asked: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.sent_bytes = 0
        self.url = ""
        self.stopped = threading.Event()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    served: Served

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        served = self.served
        served.asked.append(self.headers.get("Range", ""))
        served.headers.append(dict(self.headers))
        try:
            self._answer(served)
        finally:
            served.after(len(served.asked))

    def _answer(self, served: Served) -> None:
        if served.redirect and not self.path.startswith("/final"):
            self._plain(302, {"Location": served.redirect})
        elif served.status:
            self._plain(served.status, {})
        else:
            self._file(served)

    def _plain(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": "0"}.items():
            self.send_header(name, value)
        self.end_headers()

    def _file(self, served: Served) -> None:
        size = served.path.stat().st_size
        span = self._span(served, size)
        if span == (0, 0) and not size:
            self._plain(416, {"Content-Range": "bytes */0"})
            return
        start, end = span or (0, size)
        self.send_response(206 if span else 200)
        if span:
            start, end = start + served.shift, end + served.shift
            stated = served.stated_size or size
            offset = stated - size if self.headers["Range"].startswith("bytes=-") else 0
            said = f"bytes {start + offset}-{end - 1 + offset}/{stated}"
            self.send_header("Content-Range", said)
        if served.etag:
            self.send_header("ETag", served.etag)
        if served.modified:
            self.send_header("Last-Modified", served.modified)
        if served.encoding:
            self.send_header("Content-Encoding", served.encoding)
        if served.length:
            self.send_header("Content-Length", str(end - start))
        else:
            self.send_header("Connection", "close")
        self.end_headers()
        self._body(served, start, end)

    def _span(self, served: Served, size: int) -> tuple[int, int] | None:
        match = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if match is None or served.ranges == "no":
            return None
        if self.headers.get("If-Range") not in {None, served.etag, served.modified}:
            return None
        first, last = match.groups()
        if not first:
            if served.ranges == "no-suffix":
                return None
            return max(0, size - int(last)), size
        return int(first), min(int(last) + 1, size)

    def _body(self, served: Served, start: int, end: int) -> None:
        stop = end if served.cut is None else min(end, start + served.cut)
        with served.path.open("rb") as file:
            file.seek(start)
            while start < stop:
                data = file.read(min(1 << 20, stop - start))
                try:
                    self.wfile.write(data)
                except OSError:
                    break
                served.sent_bytes += len(data)
                start += len(data)
        self.wfile.flush()
        if served.stall:
            served.stopped.wait(20)
        if stop < end or not served.length:
            self.close_connection = True


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Say nothing of a client that hangs up."""


@contextmanager
def serving(path: Path):
    """Serve `path` on a port of this machine."""
    served = Served(path)
    handler = type("Handler", (_Handler,), {"served": served})
    server = _Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.02}
    )
    thread.start()
    served.url = f"http://127.0.0.1:{server.server_port}/some/digits.rpb.zip"
    try:
        yield served
    finally:
        served.stopped.set()
        server.shutdown()
        server.server_close()
        thread.join()
