"""Report the warnings that Python shows, and errors that end a thread."""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import os

from .errors import innermost_place
from .replace import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from .session import Session

_LONGEST_MESSAGE = 4000
_MOST_WARNINGS = 1000


class Notices:
    """Send each warning once for each text and place."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._sent: set[tuple[str, str, str]] = set()

    def continue_in_fork(self) -> None:
        """Send again what a fork says itself."""
        self._sent = set()

    def on_warnings(self, warnings: ModuleType) -> None:
        """See what passes the warning filters, before it is shown or caught.

        The interpreter calls ``_showwarnmsg``. Replacing the public ``showwarning``
        would change what a script that catches warnings gets.
        """

        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def wrapper(message: Any) -> Any:
                self._session.attempt("warnings", self._report, message)
                return original(message)

            return wrapper

        if replace(warnings, "_showwarnmsg", make) is None:
            self._session.trouble("warnings", "this Python has no _showwarnmsg")

    def _report(self, message: Any) -> None:
        where = f"{os.path.abspath(message.filename)}:{message.lineno}"
        if not os.path.exists(message.filename):
            where = f"{message.filename}:{message.lineno}"
        self._send(message.category.__name__, str(message.message), where)

    def on_threading(self, threading: ModuleType) -> None:
        """See exceptions that end a thread; the process goes on without it."""

        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def wrapper(details: Any, /) -> Any:
                self._session.attempt("threads", self._report_thread, details)
                return original(details)

            return wrapper

        replace(threading, "excepthook", make)

    def _report_thread(self, details: Any) -> None:
        if details.exc_type is SystemExit:
            return
        name = getattr(details.thread, "name", "?")
        kind = details.exc_type.__qualname__
        message = f"{kind} ended thread {name!r}: {details.exc_value}"
        project = self._session.project
        place = innermost_place(details.exc_traceback, details.exc_value, project)
        self._send("ThreadException", message, place)

    def _send(self, category: str, message: str, where: str) -> None:
        key = (category, message[:_LONGEST_MESSAGE], where)
        if key in self._sent or len(self._sent) >= _MOST_WARNINGS:
            return
        self._sent.add(key)
        self._session.emit("warning", category=category, message=key[1], where=where)
