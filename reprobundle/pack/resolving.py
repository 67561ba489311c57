"""Make the lock for all targets beside the command's first run."""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec

from reprobundle.errors import EnvironmentUnusableError
from reprobundle.format.lock import Lock
from reprobundle.run.package_sources import package_cache
from reprobundle.run.universal_lock import make_pylock
from reprobundle.run.uv_call import Running

ENDING_SECONDS = 10


class Resolving:
    """A lock in the making.

    Whatever goes wrong is no error of the call: the bundle then says why it has none.
    """

    def __init__(self, lock: Lock, *, python: Path) -> None:
        """Start it in a thread that the end of the process does not wait for."""
        self._running = Running()
        self._lock = lock
        self._python = python
        self._pylock: bytes | None = None
        self._unknown = "it was not finished"
        self._thread = threading.Thread(target=self._make, daemon=True)
        self._thread.start()

    def _make(self) -> None:
        try:
            self._pylock = make_pylock(
                self._lock,
                python=self._python,
                cache=package_cache() / "uv",
                running=self._running,
            )
            self._unknown = ""
        except EnvironmentUnusableError as error:
            self._unknown = error.message
        except Exception as error:  # noqa: BLE001
            # An answer of uv that nobody foresaw costs the lock, never the run.
            self._unknown = f"it failed: {type(error).__name__}"

    def end(self) -> None:
        """End it: nobody waits for the answer any more, and nothing is left behind."""
        self._running.end()
        self._thread.join(ENDING_SECONDS)

    def result(self) -> tuple[Lock, bytes | None]:
        """Wait for it; return the lock with why there is no pylock, and the pylock."""
        self._thread.join()
        lock = msgspec.structs.replace(self._lock, pylock_unknown=self._unknown)
        return lock, self._pylock


class NotResolving(Resolving):
    """None is made, because no index may be asked."""

    def __init__(self, lock: Lock) -> None:
        """Take the lock as it is."""
        self._lock = lock

    def end(self) -> None:
        """Do nothing: none is made."""

    def result(self) -> tuple[Lock, bytes | None]:
        """Return the lock and nothing beside it."""
        unknown = "packed with --offline"
        return msgspec.structs.replace(self._lock, pylock_unknown=unknown), None


def start_resolving(lock: Lock, *, python: Path, offline: bool) -> Resolving:
    """Return the lock for all targets in the making.

    Args:
        lock: The live environment.
        python: Its interpreter.
        offline: Ask no package index.
    """
    return NotResolving(lock) if offline else Resolving(lock, python=python)
