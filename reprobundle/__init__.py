"""Reproducibility bundles for PyTorch: pack a run, replay it elsewhere, judge it.

A script may use five functions of this module. They do something only while the
script runs under the recorder, import nothing, and cost nothing otherwise::

    import reprobundle

    model.to(reprobundle.device())
    with reprobundle.phase("epoch"):
        ...
    reprobundle.record("logits", logits)
    length = 128 if reprobundle.shapes() == "constant" else draw_length()
    if not reprobundle.minimal():
        logger.log(loss)
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from types import ModuleType

__all__ = ["__version__", "device", "minimal", "phase", "record", "shapes"]
__version__ = "0.1.0"

# The name under which the recorder is copied beside a run.
_RECORDER = "_reprobundle_recorder"


def record(name: str, value: object) -> None:
    """Keep `value` under `name` as an output that replays are compared by.

    A name may be used again; further values become ``name#2``, ``name#3`` and so on.

    Args:
        name: Any text.
        value: A tensor, an array, a number, text, or lists and mappings of them.
    """
    recorder = _recorder()
    if recorder is not None:
        recorder.record(name, value)


def phase(name: str) -> AbstractContextManager[None]:
    """Return a context manager that measures a phase of the run.

    Args:
        name: Of the phase; entries of one name are added up.
    """
    recorder = _recorder()
    if recorder is not None:
        measured: AbstractContextManager[None] = recorder.phase(name)
        return measured
    return _Unmeasured()


def device() -> str:
    """Return the device this run should use: ``cpu``, ``cuda`` or ``mps``.

    It is the one that was asked for on the command line (``REPROBUNDLE_DEVICE``),
    else the best one that torch finds, else ``cpu``. Text, so that it can be passed to
    ``.to()``, ``torch.device()`` and as an argument of another program.
    """
    recorder = _recorder()
    if recorder is not None:
        return str(recorder.device())
    asked = os.environ.get("REPROBUNDLE_DEVICE", "")
    if asked and asked != "as-is":
        return asked
    return _best_device()


def shapes() -> str:
    """Return which shapes this run should use: ``constant`` or ``dynamic``.

    It is what ``replay --shapes`` asked for (``REPROBUNDLE_SHAPES``), else
    ``dynamic``: the course the script was written for.
    """
    recorder = _recorder()
    if recorder is not None:
        return str(recorder.asked_shapes())
    return os.environ.get("REPROBUNDLE_SHAPES") or "dynamic"


def minimal() -> bool:
    """Tell whether this run should leave out loggers, lists of results and exports.

    ``replay --round minimal`` asks for that (``REPROBUNDLE_ROUND``): the computation
    stays the same, and only what keeps results is left out.
    """
    recorder = _recorder()
    if recorder is not None:
        return bool(recorder.minimal())
    return os.environ.get("REPROBUNDLE_ROUND") == "minimal"


def _recorder() -> ModuleType | None:
    """Return the recorder of this process if it is recorded."""
    recorder = sys.modules.get(_RECORDER)
    return recorder if recorder is not None and recorder.is_active() else None


def _best_device() -> str:
    torch = sys.modules.get("torch")
    if torch is None:
        return "cpu"
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


class _Unmeasured:
    """A phase that nobody measures."""

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, *_: object) -> None:
        """Do nothing."""
