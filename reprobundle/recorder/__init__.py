"""The recorder: it runs inside the user's Python and tells what the run does.

It is copied beside the user's process and may run under any package name. It imports
the standard library, and torch or numpy only after the user's code did. It must never
change a run or end it: every part is guarded, and one that fails says so in an event.

Importing this package starts nothing; `enter` does.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Any

    from .recorder import Recorder

VERSION = "0.1.0"
_OLDEST_PYTHON = (3, 10)
_active: Recorder | None = None


def enter() -> bool:
    """Start recording this process if it belongs to a session.

    Returns:
        Whether this process is recorded now. Repeated calls change nothing.
    """
    global _active
    if _active is not None:
        return True
    if sys.version_info < _OLDEST_PYTHON:
        return False
    try:
        from .recorder import Recorder
        from .session import Session, find_folder

        folder = find_folder()
        if folder is None:
            return False
        _active = Recorder(Session(folder), sys.modules[__name__])
        _active.start()
    except Exception:
        # Nowhere to tell: the session folder is gone or cannot be written. The
        # launcher finds a Python without events.
        return False
    return True


def is_active() -> bool:
    """Tell whether this process is recorded."""
    return _active is not None


def record(name: str, value: Any) -> None:
    """Keep `value` under `name` as an output that replays are compared by.

    A name may be used again; further values become ``name#2``, ``name#3`` and so on.
    Without a recorder nothing happens.

    Args:
        name: Any text.
        value: A tensor, an array, a number, text, or lists and mappings of them.
    """
    if _active is None:
        return
    if _is_compiling():
        _say_not_kept(name)
    else:
        _active.values.record(name, value)


def _is_compiling() -> bool:
    """Tell whether torch's compiler is reading this code instead of running it."""
    torch: Any = sys.modules.get("torch")
    return torch is not None and bool(torch.compiler.is_compiling())


def _say_not_kept(name: str) -> None:
    """Report that a compiled function does not keep this value.

    Keeping it would break the graph, which `fullgraph=True` forbids: a run that works
    without the recorder would fail with it.
    """
    if _active is not None:
        message = f"a value recorded inside a compiled function is not kept: {name}"
        _active.session.trouble("values", message)


# Makes the compiler call it once, while it compiles, instead of reading it.
_say_not_kept._dynamo_marked_constant = True  # type: ignore[attr-defined]


def phase(name: str) -> AbstractContextManager[None]:
    """Return a context manager that measures a phase of the run.

    Args:
        name: Of the phase; entries of one name are added up. Inside a compiled
            function there is no clock, and nothing is measured.
    """
    if _active is None or _is_compiling():
        return _Nothing()
    return _active.clock.span(name)


def device() -> str:
    """Return the device this run should use: ``cpu``, ``cuda`` or ``mps``.

    It is the one asked for on the command line, else the best one torch finds.
    """
    if _active is not None and _active.session.device != "as-is":
        return _active.session.device
    return best_device()


def best_device() -> str:
    """Return the best device type that torch finds; ``cpu`` without torch."""
    torch: Any = sys.modules.get("torch")
    if torch is None:
        return "cpu"
    if torch.cuda.is_available():
        return "cuda"
    if torch.backends.mps.is_available():
        return "mps"
    return "cpu"


def asked_shapes() -> str:
    """Return which shapes this run should use: ``constant`` or ``dynamic``."""
    return "dynamic" if _active is None else _active.asked.word("shapes")


def minimal() -> bool:
    """Tell whether this run should keep nothing that it does not need."""
    return _active is not None and _active.asked.word("round") == "minimal"


class _Nothing:
    """A phase that nobody measures."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass
