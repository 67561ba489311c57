"""Report which files this process opens, once for each file and mode.

Most opens arrive as audit events. Libraries that open files in native code raise
none; the ones we know are wrapped and call `FileWatch.note` themselves.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import os
import stat
import sys

from .opened_once import OpenedOnce

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .session import Session

_PSEUDO = ("/dev/", "/proc/", "/sys/")
_PACKAGES = ("/site-packages/", "/dist-packages/")
_DIRECTORY_FLAG = getattr(os, "O_DIRECTORY", 0)
_WRITE_FLAGS = os.O_WRONLY | os.O_RDWR


class FileWatch:
    """Sort opens into those worth an event, and send each one once.

    Left out are pseudo files, the interpreter and its installed packages, and the
    session folder. Everything else is reported, also outside the project; whether it
    is an input is for the reader to judge.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._sent = OpenedOnce()
        self._projects = _with_real(session.project)
        self._left_out = (*_PSEUDO, *_with_real(session.folder), *self._interpreter())

    def _interpreter(self) -> tuple[str, ...]:
        folders = [os.path.dirname(os.__file__)]
        for prefix in {sys.prefix, sys.exec_prefix, sys.base_prefix}:
            folder = os.path.join(prefix, "")
            # A prefix such as / would hide everything, the project included.
            if not any(project.startswith(folder) for project in self._projects):
                folders.append(prefix)
        return tuple(path for folder in folders for path in _with_real(folder))

    def handlers(self) -> dict[str, Any]:
        """Return the audit handlers of this part, by event."""
        return {
            "open": self._opened,
            "os.rename": self._renamed,
            "os.link": lambda arguments: self.note(arguments[1], write=True),
            "os.symlink": lambda arguments: self.note(arguments[1], write=True),
            "os.truncate": lambda arguments: self.note(arguments[0], write=True),
            "sqlite3.connect": self._connected,
            "ctypes.dlopen": lambda arguments: self._loaded(arguments[0]),
            "import": lambda arguments: self._loaded(arguments[1]),
        }

    def continue_in_fork(self) -> None:
        """Do not repeat what sibling forks of the same process have said."""
        self._sent.continue_in_fork()

    def note(self, path: Any, *, write: bool) -> None:
        """Report that `path` is about to be opened.

        Args:
            path: Text, bytes or a path object; anything else (a descriptor, a file
                object) is ignored, its own open was seen.
            write: Whether the file is about to be changed.
        """
        full = _absolute(path)
        if full is None or self._is_left_out(full) or self._sent.contains(full, write):
            return
        # The event comes before the open. A read of what is not there will fail, and
        # the same name may become a real file later.
        mode = _mode(full)
        if not write and mode is None:
            return
        if mode is None or stat.S_ISREG(mode):
            self._sent.add(full, write)
            self._session.emit("open", path=full, mode="write" if write else "read")
            if not full.isascii():
                self._check_utf8(full)

    def _check_utf8(self, path: str) -> None:
        """Say that the event of this open names another file."""
        try:
            path.encode()
        except UnicodeEncodeError:
            text = "a file was opened whose name is not UTF-8: " + ascii(path)
            self._session.trouble("files", text)

    def _is_left_out(self, path: str) -> bool:
        for project in self._projects:
            if path.startswith(project):
                inside = path[len(project) - 1 :]
                return _is_package(inside) or self._is_nested_prefix(path, project)
        return path.startswith(self._left_out) or _is_package(path)

    def _is_nested_prefix(self, path: str, project: str) -> bool:
        """Tell whether `path` belongs to an environment inside the project."""
        return any(
            folder.startswith(project) and path.startswith(folder)
            for folder in self._left_out
        )

    def _opened(self, arguments: tuple[Any, ...]) -> None:
        path, mode, flags = arguments
        if not isinstance(path, (str, bytes)):
            return
        flags = flags if isinstance(flags, int) else 0
        if _DIRECTORY_FLAG and flags & _DIRECTORY_FLAG:
            return
        write = bool(flags & _WRITE_FLAGS)
        if not flags and isinstance(mode, str):
            write = any(letter in mode for letter in "wax+")
        if write and _keeps_content(flags):
            self.note(path, write=False)
        self.note(path, write=write)

    def _renamed(self, arguments: tuple[Any, ...]) -> None:
        source, target = arguments[:2]
        full = _absolute(source)
        mode = _mode(full) if full is not None else None
        if full is None or mode is None or not stat.S_ISREG(mode):
            return
        if not self._sent.contains(full, True):
            self.note(full, write=False)
        self.note(target, write=True)

    def _connected(self, arguments: tuple[Any, ...]) -> None:
        self.note(arguments[0], write=False)
        self.note(arguments[0], write=True)

    def _loaded(self, path: Any) -> None:
        # A bare name such as libc.so.6 is found by the loader, not in this folder.
        if isinstance(path, (str, bytes)) and os.path.isabs(path):
            self.note(path, write=False)


def _keeps_content(flags: int) -> bool:
    """Tell whether what was in the file before can be seen or stays in it."""
    if flags & os.O_TRUNC:
        return False
    return bool(flags & (os.O_RDWR | os.O_APPEND))


def _absolute(path: Any) -> str | None:
    if not isinstance(path, (str, bytes, os.PathLike)):
        return None
    text = os.fsdecode(path)
    if not text or text == ":memory:":
        return None
    return text if text.startswith("/") and "/." not in text else os.path.abspath(text)


def _mode(path: str) -> int | None:
    try:
        return os.stat(path).st_mode
    except (OSError, ValueError):
        return None


def _is_package(path: str) -> bool:
    return any(part in path for part in _PACKAGES)


def _with_real(folder: str) -> tuple[str, ...]:
    """Return `folder` as it is written and as it resolves, each with a final slash."""
    spellings = {os.path.abspath(folder), os.path.realpath(folder)}
    return tuple(os.path.join(spelling, "") for spelling in spellings)
