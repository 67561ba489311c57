"""Show how far a long piece of work is, on a terminal and after one second only."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, TextIO

from reprobundle.report.text import safe, shorten

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

SHOW_AFTER_S = 1.0
LONGEST_DESCRIPTION = 40

Advance = Callable[[int], None]
Unit = Literal["bytes", "steps", "none"]


@contextmanager
def progress(
    description: str,
    total_bytes: int | None = None,
    *,
    total_steps: int | None = None,
    stream: TextIO | None = None,
    after_s: float = SHOW_AFTER_S,
) -> Iterator[Advance]:
    """Give a function that takes what was done since its last call.

    A bar appears `after_s` after the first call, so that work which has not begun
    (a command that still prints, say) is not drawn over; it is removed when the
    block ends. Without a terminal nothing is ever written. The function may be called
    from any thread, with 0 to say that a long step has begun.

    Args:
        description: What is being done, such as ``checking digests``.
        total_bytes: All there is to do, in bytes.
        total_steps: All there is to do, in steps. Without any total, the bar only
            shows that work goes on.
        stream: Where the bar stands; standard error if None.
        after_s: Seconds until it appears.
    """
    target = sys.stderr if stream is None else stream
    if not _can_show(target):
        yield _ignore
        return
    unit: Unit = "bytes" if total_bytes is not None else "steps"
    if total_bytes is None and total_steps is None:
        unit = "none"
    bar = _Bar(
        safe(description, target.encoding or "ascii"),
        total=total_steps if total_bytes is None else total_bytes,
        unit=unit,
        stream=target,
        after_s=after_s,
    )
    try:
        yield bar.advance
    finally:
        bar.remove()


def _can_show(stream: TextIO) -> bool:
    return stream.isatty() and os.environ.get("TERM", "") not in {"", "dumb"}


def _ignore(amount: int) -> None:
    """Take no notice of work done."""


class _Bar:
    """Counts what was done from the start, so a late bar begins at the right place."""

    def __init__(
        self,
        description: str,
        *,
        total: int | None,
        unit: Unit,
        stream: TextIO,
        after_s: float,
    ) -> None:
        self._description = shorten(description, LONGEST_DESCRIPTION)
        self._total = total
        self._unit: Unit = unit
        self._stream = stream
        self._after_s = after_s
        self._done = 0
        self._ended = False
        self._timer: threading.Timer | None = None
        self._shown: tuple[Progress, TaskID] | None = None
        # Reentrant: with no delay the first call shows the bar itself.
        self._lock = threading.RLock()

    def advance(self, amount: int) -> None:
        """Add `amount` to what is done."""
        with self._lock:
            self._done += amount
            if self._shown:
                display, task = self._shown
                display.update(task, completed=self._done)
            elif self._timer is None:
                self._begin()

    def _begin(self) -> None:
        self._timer = threading.Timer(self._after_s, self._show)
        self._timer.daemon = True
        if self._after_s > 0:
            self._timer.start()
        else:
            self._show()

    def _show(self) -> None:
        with self._lock:
            if self._ended:
                return
            display = _display(self._stream, self._unit)
            task = display.add_task(
                self._description, total=self._total, completed=self._done
            )
            display.start()
            self._shown = (display, task)

    def remove(self) -> None:
        """Take the bar away; it does not come back."""
        with self._lock:
            self._ended = True
            if self._timer:
                self._timer.cancel()
            if self._shown:
                self._shown[0].stop()


def _display(stream: TextIO, unit: Unit) -> Progress:
    # Importing rich takes longer than most work that needs no bar.
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    amounts: dict[Unit, list[ProgressColumn]] = {
        "bytes": [DownloadColumn(binary_units=True), TimeRemainingColumn()],
        "steps": [MofNCompleteColumn(), TimeRemainingColumn()],
        "none": [],
    }
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        *amounts[unit],
        TimeElapsedColumn(),
        console=Console(file=stream),
        transient=True,
        # What a caller prints as its result must not end up beside the bar.
        redirect_stdout=False,
    )
