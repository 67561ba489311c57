"""Tell which variables of its caller's environment the user's code reads.

Names only: a value may be a secret. What the standard library or an installed package
reads for itself is left out, and so is what the command set itself.

Every way to ask ``os.environ`` for one name ends in ``_Environ.__getitem__`` (``os.py``
and ``_collections_abc.py``), which encodes the name first. That encoding is wrapped and
not the lookup: a ``KeyError`` of the user's has the traceback that it has without us.
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


class ReadVariables:
    """Send each variable that was inherited and read, once, with its place."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._sent: set[str] = set()
        # Compared in this process, never sent.
        self._inherited: dict[Any, Any] = {}

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

    def _note(self, name: str, key: Any, frame: FrameType | None) -> None:
        environ: Any = os.environ
        inherited = self._inherited.get(key)
        if inherited is None or environ._data.get(key) != inherited:
            return
        while frame is not None and _asks_for_another(frame):
            frame = frame.f_back
        if frame is None or name in VARIABLES or not _is_users(frame):
            return
        self._sent.add(name)
        where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        self._session.emit("variable", name=name, where=where)


def _asks_for_another(frame: FrameType) -> bool:
    code = frame.f_code
    return code.co_name in _ASKING and is_standard(code.co_filename)


def _is_users(frame: FrameType) -> bool:
    name = frame.f_code.co_filename
    return not (is_ours(name) or is_standard(name) or is_installed(name))
