"""Notice how the process ends, and send what is only known then."""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import atexit
import os
import sys
from _thread import get_ident

from .errors import error_fields, hide_our_frames
from .replace import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any

    from .session import Session


class Ending:
    """Send the error and the end event, whichever way the process goes.

    A signal that is not handled ends it without any: whoever reads the events sees
    that the end is missing. No handler is installed for that, because a handler in
    Python runs only when the interpreter gets its turn, and a process stuck in native
    code would no longer die at once.

    Args:
        session: Where events go.
        steps: Returns the optimizer steps made so far.
        last_words: Called once before the end event.
    """

    def __init__(
        self,
        session: Session,
        steps: Callable[[], int],
        last_words: Callable[[], None],
    ) -> None:
        self._session = session
        self._steps = steps
        self._last_words = last_words
        self._thread = get_ident()
        self._excepthook: Callable[..., Any] | None = None
        self._reset()

    def _reset(self) -> None:
        self._status: int | None = None
        self._ended = False
        self._left = False

    def continue_in_fork(self) -> None:
        """Expect an end of the fork's own."""
        self._thread = get_ident()
        self._reset()

    def install(self) -> None:
        """Watch all the ways out."""
        replace(sys, "excepthook", self._make_excepthook)
        replace(sys, "exit", self._make_exit)
        replace(os, "_exit", self._make_hard_exit)
        atexit.register(self.finish)

    def _make_excepthook(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def excepthook(
            kind: type[BaseException],
            error: BaseException,
            traceback: TracebackType | None,
        ) -> Any:
            self._session.attempt("errors", hide_our_frames, error)
            self._session.attempt("errors", self._report, kind, error, traceback)
            return original(kind, error, traceback)

        self._excepthook = excepthook
        return excepthook

    def _report(
        self,
        kind: type[BaseException],
        error: BaseException,
        traceback: TracebackType | None,
    ) -> None:
        fields = error_fields(kind, error, traceback, self._session.project)
        self._session.emit("error", **fields, steps=self._steps())
        self._status = -2 if issubclass(kind, KeyboardInterrupt) else 1

    def _make_exit(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def exit(*arguments: Any) -> Any:
            try:
                return original(*arguments)
            except SystemExit as error:
                self._session.attempt("exit status", self._mark, error)
                raise

        return exit

    def _mark(self, error: SystemExit) -> None:
        # An attribute of the exception lives exactly as long as the exception.
        error._reprobundle = ExitMark(_exit_status(error.code), self._leave)  # type: ignore[attr-defined]

    def _leave(self, status: int) -> None:
        # The exception that ends the process goes first, those it replaced after it.
        if get_ident() == self._thread and self._status is None:
            self._status = status

    def _make_hard_exit(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def hard_exit(status: int) -> Any:
            self._status = None
            if isinstance(status, int):
                self._status = status & 0xFF
            self._session.attempt("end", self.finish)
            return original(status)

        return hard_exit

    def before_exec(self) -> None:
        """Send the end event, as far as it is known, before another program starts.

        ``exec`` can fail and be tried again, so the real end may still come.
        """
        if not self._left and not self._ended:
            self._left = True
            self._session.attempt("end", self._last_words)
            self._send_end()

    def finish(self) -> None:
        """Send the last words and the end event, once."""
        if self._ended:
            return
        self._ended = True
        if self._status is None:
            self._session.attempt("errors", self._report_missed)
        self._session.attempt("end", self._last_words)
        self._send_end()

    def _report_missed(self) -> None:
        """Report an error whose report went to an exception hook of the user's.

        The interpreter notes the exception before it calls any hook. Interactive
        shells note those they go on after, so they are left out.
        """
        error = getattr(sys, "last_value", None)
        if not isinstance(error, BaseException) or "IPython" in sys.modules:
            return
        if sys.excepthook is not self._excepthook:
            self._report(type(error), error, error.__traceback__)

    def _send_end(self) -> None:
        sources = self._session.attempt("sources", sources_below, self._session.project)
        self._session.emit("end", exit_status=self._status, sources=sources or [])


class ExitMark:
    """Tell an exit that ends the process from one that is caught.

    The mark hangs on the exception. If user code catches it, the mark goes while some
    Python frame is running; if nobody does, the interpreter drops the exception when
    no frame is left.
    """

    def __init__(self, status: int, leave: Callable[[int], None]) -> None:
        self._status = status
        self._leave = leave

    def __del__(self) -> None:
        try:
            sys._getframe(1)
        except ValueError:
            self._leave(self._status)

    def __reduce__(self) -> tuple[type[object], tuple[()]]:
        # A worker may send the exception to a process that knows nothing of us.
        return object, ()


def _exit_status(code: object) -> int:
    """Return the status that the interpreter makes of an exit code."""
    if code is None:
        return 0
    return code & 0xFF if isinstance(code, int) else 1


def sources_below(project: str) -> list[str]:
    """Return the files of all modules imported from below `project`, sorted.

    Relative names are left out: they belong to modules that torch makes up.
    """
    tops = tuple({os.path.join(p, "") for p in (project, os.path.realpath(project))})
    files = set()
    for module in list(sys.modules.values()):
        # Not by attribute: a module that loads its content on demand would load it.
        name = getattr(module, "__dict__", {}).get("__file__")
        if isinstance(name, str) and name.startswith(tops):
            files.add(name)
    return sorted(name for name in files if "/site-packages/" not in name)
