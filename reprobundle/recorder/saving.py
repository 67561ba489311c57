"""Time what writes and reads results, and see the files it opens in native code."""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import sys

from .replace import replace
from .spans import timed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .files import FileWatch
    from .phases import Clock
    from .session import Session

    Function = Callable[..., Any]
    Maker = Callable[[Function], Function]

# Of numpy: what writes a result.
_EXPORTS = ("save", "savez", "savez_compressed", "savetxt")


class Saving:
    """Measure the phases ``checkpoint`` and ``export``.

    A checkpoint is what the same code reads again: ``torch.save`` and ``torch.load``,
    safetensors. An export is made for others: TorchScript, ``torch.export``, ONNX, and
    numpy's files.
    """

    def __init__(self, session: Session, clock: Clock, files: FileWatch) -> None:
        self._session = session
        self._clock = clock
        self._files = files

    def install(self, torch: Any) -> None:
        """Attach to a torch that was just imported."""
        checkpoint, export = self._timed("checkpoint"), self._timed("export")
        serialization = torch.serialization
        replace(serialization, "save", self._opening(checkpoint, 1, write=True), torch)
        replace(serialization, "load", self._opening(checkpoint, 0, write=False), torch)
        jit = sys.modules.get("torch.jit._serialization", torch.jit)
        replace(jit, "save", self._opening(export, 1, write=True), torch.jit)
        replace(jit, "load", self._opening(checkpoint, 0, write=False), torch.jit)
        for kind in (
            torch.jit._script.RecursiveScriptModule,
            torch.jit._trace.TopLevelTracedModule,
        ):
            replace(kind, "save", self._opening(export, 1, write=True))
        replace(torch, "from_file", self._opening(_same, 0, write=False))
        storage = torch.UntypedStorage
        if replace(storage, "from_file", self._opening(_same, 0, write=False)):
            # The builtin is static; a plain function in its place would take an
            # instance.
            storage.from_file = staticmethod(storage.from_file)

    def watch_safetensors(self, module: Any) -> None:
        """See the files that safetensors opens in native code."""
        checkpoint = self._timed("checkpoint")
        replace(module, "serialize_file", self._opening(checkpoint, 1, write=True))
        module.safe_open = _opener(module.safe_open, self._note_read)

    def watch_export(self, module: Any) -> None:
        """Time ``torch.export``, and see the files it opens in native code."""
        checkpoint, export = self._timed("checkpoint"), self._timed("export")
        replace(module, "export", export)
        replace(module, "save", self._opening(export, 1, write=True))
        replace(module, "load", self._opening(checkpoint, 0, write=False))

    def watch_onnx(self, module: Any) -> None:
        """Time the export to ONNX."""
        replace(module, "export", self._timed("export"))

    def watch_numpy(self, module: Any) -> None:
        """Time what numpy writes."""
        for name in _EXPORTS:
            replace(module, name, self._timed("export"))

    def _note_read(self, path: Any) -> None:
        self._session.attempt("files", self._note, path, False)

    def _note(self, path: Any, write: bool) -> None:
        self._files.note(path, write=write)

    def _timed(self, phase: str) -> Maker:
        return timed(self._clock, phase)

    def _opening(self, also: Maker, position: int, *, write: bool) -> Maker:
        """Return a maker of wrappers that report the file a function opens.

        Args:
            also: A further wrapper, put inside.
            position: Of the file among the arguments.
            write: Whether the function writes it.
        """

        def make(original: Function) -> Function:
            inner = also(original)

            def wrapper(*arguments: Any, **named: Any) -> Any:
                path = _argument(arguments, named, position)
                self._session.attempt("files", self._note, path, write)
                return inner(*arguments, **named)

            return wrapper

        return make


_FILE_NAMES = ("f", "filename", "file")


def _argument(arguments: Any, named: dict[str, Any], position: int) -> Any:
    if len(arguments) > position:
        return arguments[position]
    return next((named[name] for name in _FILE_NAMES if name in named), None)


def _same(original: Function) -> Function:
    return original


def _opener(original: Any, note: Callable[[Any], None]) -> Any:
    """Return a class that reports its first argument and makes an `original`.

    A class and no function: ``isinstance`` tests and annotations such as
    ``safe_open | None`` must go on working.
    """

    class Meta(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, original)

        def __getattr__(cls, name: str) -> Any:
            return getattr(original, name)

    class Opener(metaclass=Meta):
        __doc__ = original.__doc__
        __wrapped__ = original

        def __new__(cls, *arguments: Any, **named: Any) -> Any:
            note(_argument(arguments, named, 0))
            return original(*arguments, **named)

    Opener.__name__ = Opener.__qualname__ = original.__name__
    Opener.__module__ = original.__module__
    return Opener
