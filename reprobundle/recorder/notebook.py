"""Report which cells a notebook kernel runs, and which of them fail.

A kernel survives the errors of its cells, so no exception hook sees them; and the
code of a cell has a made-up file name, in which the process id stands.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import os

from .errors import error_fields
from .replace import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any

    from .session import Session

_LONGEST_SOURCE = 100_000
_CACHE_ARGUMENTS = ("transformed_code", "number", "raw_code")


class Notebook:
    """Watch IPython compile and finish cells.

    Args:
        session: Where events go.
        steps: Returns the optimizer steps made so far.
    """

    def __init__(self, session: Session, steps: Callable[[], int]) -> None:
        self._session = session
        self._steps = steps
        self._number = 0
        self._files: set[str] = set()

    def on_compiler(self, module: Any) -> None:
        """See each cell before it runs, with the name its code gets."""

        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def cache(compiler: Any, *arguments: Any, **named: Any) -> Any:
                name = original(compiler, *arguments, **named)
                self._session.attempt("cells", self._begin, name, arguments, named)
                return name

            return cache

        replace(module.CachingCompiler, "cache", make)

    def on_events(self, module: Any) -> None:
        """See each cell's result."""

        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def trigger(manager: Any, event: Any, *arguments: Any, **named: Any) -> Any:
                if event == "post_run_cell" and arguments:
                    self._session.attempt("cells", self._end, arguments[0])
                return original(manager, event, *arguments, **named)

            return trigger

        replace(module.EventManager, "trigger", make)

    def _begin(self, name: Any, arguments: Any, named: dict[str, Any]) -> None:
        """Report a cell from the arguments ``(code, number, raw_code)``."""
        given = dict(zip(_CACHE_ARGUMENTS, arguments, strict=False)) | named
        self._number = int(given.get("number", 0))
        self._files.add(str(name))
        source = given.get("raw_code") or given["transformed_code"]
        self._session.emit(
            "cell",
            number=self._number,
            file=str(name),
            source=str(source)[:_LONGEST_SOURCE],
        )

    def _end(self, result: Any) -> None:
        error = result.error_in_exec or result.error_before_exec
        if error is None:
            return
        fields = error_fields(
            type(error), error, error.__traceback__, self._session.project
        )
        fields["where"] = self._place(error.__traceback__) or fields["where"]
        self._session.emit(
            "cell-error", number=self._number, **fields, steps=self._steps()
        )

    def _place(self, traceback: TracebackType | None) -> str:
        """Return the innermost frame of the project, and the cell it was called from.

        One of them alone if the other is missing or the same.
        """
        top = os.path.join(self._session.project, "")
        inside = cell = ""
        while traceback is not None:
            name = traceback.tb_frame.f_code.co_filename
            if name in self._files:
                inside = cell = f"{name}:{traceback.tb_lineno}"
            elif name.startswith(top):
                inside = f"{name}:{traceback.tb_lineno}"
            traceback = traceback.tb_next
        return inside if inside == cell or not cell else f"{inside}, from {cell}"
