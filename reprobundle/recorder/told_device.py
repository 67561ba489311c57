"""Tell what a Mac does otherwise where the command is told the CPU as its device."""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

from .evidence import Observer
from .mapped_calls import MappedCalls
from .mapped_classes import MappedClasses

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .session import Session

_HOST = "cpu"


class ToldDevice(Observer):
    """Have compiled code run as it stands, and name where ``autocast`` is used.

    Operators inside a compiled graph are not seen, and what comes out of it has no
    place on either device. What ``autocast`` casts, and to what, differs by device.

    Args:
        session: Where each place is told.
    """

    name = "told device"

    def __init__(self, session: Session) -> None:
        self._calls = MappedCalls(session, _HOST)

    def start(self, torch: Any) -> None:
        """Attach."""
        classes = MappedClasses(torch, self._calls, _HOST)
        classes.leave_uncompiled()
        classes.watch_autocast()

    def finish(self) -> None:
        """Send the last counts."""
        self._calls.report_end()
