"""Report the processes this one starts and the hosts it talks to."""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from .session import Session


class ActivityWatch:
    """Turn process and network audit events into ours.

    Args:
        session: Where events go.
        before_exec: Called before this process becomes another program.
    """

    def __init__(self, session: Session, before_exec: Callable[[], None]) -> None:
        self._session = session
        self._before_exec = before_exec
        self._targets: set[str] = set()

    def handlers(self) -> dict[str, Any]:
        """Return the audit handlers of this part, by event."""
        return {
            "subprocess.Popen": lambda arguments: self._child(*arguments[:2]),
            "os.posix_spawn": lambda arguments: self._child(*arguments[:2]),
            "os.exec": self._exec,
            "os.system": self._system,
            "socket.connect": self._connect,
            "socket.getaddrinfo": lambda arguments: self._host(*arguments[:2]),
            "socket.gethostbyname": lambda arguments: self._host(arguments[0], None),
        }

    def watch_multiprocessing(self, module: ModuleType) -> None:
        """Report what ``multiprocessing`` starts: it raises no audit event for it."""
        original = module.spawnv_passfds

        def spawnv_passfds(path: Any, args: Any, passfds: Any) -> Any:
            self._session.attempt("children", self._child, path, args)
            return original(path, args, passfds)

        module.spawnv_passfds = spawnv_passfds  # type: ignore[attr-defined]

    def _child(self, executable: Any, argv: Any) -> None:
        parts = [argv] if isinstance(argv, (str, bytes, os.PathLike)) else list(argv)
        texts = [_text(part) for part in parts]
        program = _text(executable) if executable is not None else texts[0]
        self._session.emit("child", argv=texts, executable=program)

    def _exec(self, arguments: tuple[Any, ...]) -> None:
        self._child(*arguments[:2])
        self._before_exec()

    def _system(self, arguments: tuple[Any, ...]) -> None:
        self._child("/bin/sh", ["sh", "-c", arguments[0]])

    def _connect(self, arguments: tuple[Any, ...]) -> None:
        address = arguments[1]
        # Unix sockets have a path for an address and stay on this machine.
        if isinstance(address, tuple) and len(address) >= 2:
            self._host(address[0], address[1])

    def _host(self, host: Any, port: Any) -> None:
        if host is None:
            return
        target = _text(host) if port is None else f"{_text(host)}:{_text(port)}"
        if target not in self._targets:
            self._targets.add(target)
            self._session.emit("network", target=target)


def _text(part: Any) -> str:
    if isinstance(part, (str, bytes, os.PathLike)):
        return os.fsdecode(part)
    return str(part)
