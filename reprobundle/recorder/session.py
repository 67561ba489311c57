"""Append this process's events to its own file in the session folder.

No lock is held and no buffer is kept: one line is one ``write`` on a descriptor in
append mode, so a fork at any instant copies no half-written state, and a process that
is killed has lost nothing but what it had not yet said.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import os
import sys
import time

from .jsontext import decode, encode
from .kinds import forks_user_code, is_helper

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# Our descriptor is moved up here: the user's files get the numbers they would get
# without us, and a loop that closes the low descriptors misses it.
_LOWEST_DESCRIPTOR = 200
_CONFIG = "config.json"


class EventFile:
    """The file that one process appends to."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._descriptor = -1
        self._identity = (0, 0)

    def append(self, text: str) -> None:
        """Append whole lines; a full disk or a lost folder is not an error here."""
        data = text.encode("utf-8", "replace")
        try:
            if not self._is_open():
                self._open()
            os.write(self._descriptor, data)
        except OSError:
            # There is no place left to say so. The reader counts damaged lines and
            # misses the end event.
            pass

    def _is_open(self) -> bool:
        """Tell whether the descriptor is still ours.

        A script may close all descriptors (daemons do); the number may then belong
        to a file of the user, in which a line of ours would be damage.
        """
        if self._descriptor < 0:
            return False
        try:
            status = os.fstat(self._descriptor)
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == self._identity

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        descriptor = moved_up(os.open(self.path, flags, 0o644))
        status = os.fstat(descriptor)
        self._identity = (status.st_dev, status.st_ino)
        self._descriptor = descriptor

    def abandon(self) -> None:
        """Close the descriptor; the next line opens the file again."""
        if self._is_open():
            os.close(self._descriptor)
        self._descriptor = -1


def moved_up(descriptor: int) -> int:
    """Return the same open file under a number that no script counts on."""
    try:
        import fcntl

        high = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _LOWEST_DESCRIPTOR)
    except (ImportError, OSError):
        return descriptor
    os.close(descriptor)
    return high


class Session:
    """This process's part of a recording.

    Attributes:
        folder: Where recorder and launcher meet.
        project: Absolute scratch folder that stands for the project.
        seed: To be set before the user's code, or None.
        device: ``as-is``, ``cpu``, ``cuda`` or ``mps``.
        mapping: ``cuda=cpu`` or ``cuda=mps`` where calls that name CUDA go to another
            device; else empty.
        traced: Whether this is an evidence pass: its times are thrown away.
        forecasts: Whether it only tells what a run on MPS would ask for.
        stops: Whether the run is to be stopped after a checkpoint.
        promotes: Whether short floats are to become float64.
        rng: How random draws are made: ``native``, ``portable`` or ``recorded``.
        draws: File with the reference's draws to take, or empty.
        draws_limit_bytes: Budget for the draws that are kept.
        switches: Switches of torch to set, by name.
        kind: ``main``, ``python``, ``fork`` or ``helper``.
        pid: Of this process; differs from ``os.getpid()`` only inside a fork that
            has not been noticed yet.
    """

    def __init__(self, folder: str) -> None:
        with open(os.path.join(folder, _CONFIG), encoding="utf-8") as file:
            config: dict[str, Any] = decode(file.read())
        self.folder = folder
        self.project: str = os.path.abspath(config["project"])
        self.seed: int | None = config.get("seed")
        self.device: str = config.get("device") or "as-is"
        self.mapping: str = config.get("mapping") or ""
        self.forecasts: bool = config.get("pass") == "forecast"
        self.traced: bool = self.forecasts or config.get("pass") == "evidence"
        self.stops: bool = config.get("pass") == "restart"
        self.promotes: bool = config.get("pass") == "truth"
        self.rng: str = config.get("rng") or "native"
        self.draws: str = config.get("draws") or ""
        self.draws_limit_bytes: int = config.get("draws_limit_bytes") or 64 << 20
        self.switches: dict[str, str] = config.get("switches") or {}
        self.argv = tuple(sys.orig_argv)
        self.kind = self._first_kind()
        self._begin()

    @property
    def values(self) -> str:
        """Folder of recorded values."""
        return os.path.join(self.folder, "values")

    @property
    def exit_file(self) -> str:
        """The file for this process's exit status, beside its events."""
        return self._file.path.removesuffix(".jsonl") + ".exit"

    def _first_kind(self) -> str:
        if is_helper(self.argv):
            return "helper"
        marker = os.path.join(self.folder, "main")
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
        except FileExistsError:
            return "python"
        return "main"

    def _begin(self) -> None:
        self.pid = os.getpid()
        self._told: set[tuple[str, str]] = set()
        self._started = False
        name = f"{self.pid}-{time.monotonic_ns()}.jsonl"
        self._file = EventFile(os.path.join(self.folder, "events", name))

    def start(self) -> None:
        """Write the start event, unless it was written."""
        if self._started:
            return
        self._started = True
        self.emit(
            "start",
            pid=self.pid,
            parent_pid=os.getppid(),
            kind=self.kind,
            argv=self.argv,
            executable=sys.executable or "",
            working_directory=_working_directory(),
        )

    def continue_in_fork(self, *, at_once: bool) -> None:
        """Give the child of a fork a file of its own.

        Args:
            at_once: Write the start event now. Otherwise the first other event brings
                it: a child that only runs ``exec`` leaves no file.
        """
        self.kind = "fork" if forks_user_code(self.argv) else "helper"
        self._file.abandon()
        self._begin()
        if at_once:
            self.start()

    def emit(self, event: str, **fields: object) -> None:
        """Append one event; fields as in the event contract, without ``t_ns``."""
        self.emit_all([{"event": event, **fields}])

    def emit_all(self, events: list[dict[str, object]]) -> None:
        """Append several events in one write."""
        if not self._started:
            self.start()
        lines = [
            encode({"t_ns": time.monotonic_ns(), **event}) + "\n" for event in events
        ]
        self._file.append("".join(lines))

    def trouble(self, part: str, error: BaseException | str) -> None:
        """Say that a part of the recorder failed, once for each part and text."""
        try:
            text = error if isinstance(error, str) else _described(error)
            if (part, text) not in self._told:
                self._told.add((part, text))
                self.emit("trouble", part=part, message=text)
        except Exception:
            pass  # Nothing is left to say it with.

    def attempt(self, part: str, action: Callable[..., Any], *arguments: Any) -> Any:
        """Call `action`; a failure becomes a trouble event and None."""
        try:
            return action(*arguments)
        except Exception as error:
            self.trouble(part, error)
            return None


def _described(error: BaseException) -> str:
    try:
        return f"{type(error).__qualname__}: {error}"[:500]
    except Exception:
        return type(error).__qualname__


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""


def find_folder() -> str | None:
    """Return the session folder, or None when this process is not recorded.

    The variable comes first. A copy of this package also knows where it lies
    (``<session>/enter/<package>``): a script that clears the variable alone does not
    lose its children.
    """
    here = os.path.dirname(os.path.abspath(__file__))
    beside = os.path.dirname(os.path.dirname(here))
    for folder in (os.environ.get("REPROBUNDLE_SESSION"), beside):
        if folder and os.path.isfile(os.path.join(folder, _CONFIG)):
            return os.path.abspath(folder)
    return None
