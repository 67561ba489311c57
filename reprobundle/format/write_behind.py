"""Hand bytes to the system in a thread of its own, while others hash and compress.

To copy half a gigabyte into the page cache takes longer than to hash it twice.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from types import TracebackType

QUEUED_BYTES = 8 << 20
"""Bytes that may wait to be written before the caller waits too."""

Put = Callable[[int, bytes, int], None]


class WriteBehind:
    """Writes to one file, done in the order in which they were given.

    An error of the system is raised by the next call, or by `drain`; nothing is written
    after it.
    """

    def __init__(self, descriptor: int, put: Put) -> None:
        """Write to `descriptor` with ``put(descriptor, data, offset)``."""
        self._descriptor = descriptor
        self._put = put
        self._queue: SimpleQueue[tuple[bytes, int] | None] = SimpleQueue()
        self._changed = threading.Condition()
        self._queued_bytes = 0
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> WriteBehind:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            # What is still to be written is part of a file that will be removed.
            with contextlib.suppress(Empty):
                while True:
                    self._queue.get_nowait()
        self._queue.put(None)
        self._thread.join()

    def write(self, data: bytes, offset: int) -> None:
        """Have `data` written from `offset` on, soon.

        Raises:
            OSError: An earlier write failed.
        """
        with self._changed:
            while self._queued_bytes > QUEUED_BYTES and self._error is None:
                self._changed.wait()
            if self._error is not None:
                raise self._error
            self._queued_bytes += len(data)
        self._queue.put((data, offset))

    def drain(self) -> None:
        """Wait until all of it is with the system.

        Raises:
            OSError: A write failed.
        """
        with self._changed:
            while self._queued_bytes and self._error is None:
                self._changed.wait()
            if self._error is not None:
                raise self._error

    def _serve(self) -> None:
        while (task := self._queue.get()) is not None:
            data, offset = task
            try:
                if self._error is None:
                    self._put(self._descriptor, data, offset)
            except BaseException as error:  # noqa: BLE001 - raised again by the caller
                self._error = error
            with self._changed:
                self._queued_bytes -= len(data)
                self._changed.notify_all()
            del task, data  # it may be large, and the next one may be far away
