"""Tell which variables of its caller's environment a command reads, and where.

Names only: a value may be a secret. What the standard library reads for itself is left
out, and so is what the command set itself. Whoever goes through all names, or copies
them all, is told with the place and without a name.

Every way to ask ``os.environ`` for one name ends in ``_Environ.__getitem__`` (``os.py``
and ``_collections_abc.py``), which encodes the name first. That encoding is wrapped and
not the lookup: a ``KeyError`` of the user's has the traceback that it has without us.
Every way through all names begins in ``_Environ.__iter__``, which decodes each.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import os
import sys

from .callers import is_installed, is_ours, is_standard
from .variables import VARIABLES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

    from .session import Session

# Functions of the standard library that ask for one name, for whoever called them.
_ASKING = frozenset(
    {"__contains__", "__getitem__", "expandvars", "get", "getenv", "pop", "setdefault"}
)
# Those that go through all of them: of the views, and the copy.
_GOING_THROUGH = frozenset({"__iter__", "copy"})
_MOST_COPIES = 20


class ReadVariables:
    """Send each variable that was inherited and read, once, with its place."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._sent: set[str] = set()
        # Compared in this process, never sent.
        self._inherited: dict[Any, Any] = {}
        self._copies: set[str] = set()
        # Where the names were last gone through: frame and instruction.
        self._copying: tuple[int, int] = (0, 0)

    def install(self) -> None:
        """Watch ``os.environ`` from now on."""
        environ: Any = os.environ
        encode = getattr(environ, "encodekey", None)
        if encode is None:
            text = "os.environ has another form here: what is read of it is not known"
            self._session.trouble("variables", text)
            return
        self._inherited = dict(environ._data)
        reading = type(environ).__getitem__.__code__
        session, note, sent = self._session, self._note, self._sent

        def encodekey(key: Any) -> Any:
            frame = sys._getframe(1)
            if frame.f_code is reading and type(key) is str and key not in sent:
                session.attempt("variables", note, key, encode(key), frame.f_back)
            return encode(key)

        environ.encodekey = encodekey
        self._watch_copies(environ)

    def _watch_copies(self, environ: Any) -> None:
        decode = environ.decodekey
        going = type(environ).__iter__.__code__
        session, note = self._session, self._note_copy

        def decodekey(key: Any) -> Any:
            frame = sys._getframe(1)
            if frame.f_code is going:
                session.attempt("variables", note, frame.f_back)
            return decode(key)

        environ.decodekey = decodekey

    def _note_copy(self, frame: FrameType | None) -> None:
        """Send the place that goes through all variables, once."""
        copied = False
        while frame is not None and _asks_in(frame, _GOING_THROUGH):
            copied = copied or frame.f_code.co_name == "copy"
            frame = frame.f_back
        if frame is None:
            return
        self._copying = (id(frame), frame.f_lasti)
        if not _is_told(frame) or len(self._copies) >= _MOST_COPIES:
            return
        # What a package copies it hands to a program that it starts; what it looks
        # for while it is imported (tqdm: names that begin with TQDM_) is its own.
        is_package = is_installed(frame.f_code.co_filename)
        if is_package and (copied or _is_importing(frame)):
            return
        where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        if where not in self._copies:
            self._copies.add(where)
            self._session.emit("variable", name="", where=where)

    def _note(self, name: str, key: Any, frame: FrameType | None) -> None:
        environ: Any = os.environ
        inherited = self._inherited.get(key)
        if inherited is None or environ._data.get(key) != inherited:
            return
        while frame is not None and _asks_in(frame, _ASKING):
            frame = frame.f_back
        if frame is None or name in VARIABLES or not _is_told(frame):
            return
        if (id(frame), frame.f_lasti) == self._copying:
            return  # It is one of all that are copied there.
        self._sent.add(name)
        where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        self._session.emit("variable", name=name, where=where)


def _asks_in(frame: FrameType, names: frozenset[str]) -> bool:
    """Tell whether a function of the standard library asks for whoever called it."""
    code = frame.f_code
    return code.co_name in names and is_standard(code.co_filename)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _is_told(frame: FrameType) -> bool:
    name = frame.f_code.co_filename
    return not (is_ours(name) or is_standard(name))
