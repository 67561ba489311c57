"""Stop the run right after it saved a checkpoint, for the restart check.

Only in a pass that asks for it. The stop comes with the first optimizer step after the
checkpoint: by then the file is complete, has its final name, and the training goes on,
so that a resumed run has something left to do. It is the stop of a cluster or a
closed session: SIGTERM to the command's process group, and SIGKILL for what remains.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import os
import sys

# Not `signal`: it imports enum, and a project may have a module of that name.
from _signal import SIGKILL, SIGTERM  # type: ignore[import-not-found]

from .replace import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .session import Session

    Function = Callable[..., Any]

_GRACE_SECONDS = 10.0


class StopAfterCheckpoint:
    """Watch for a checkpoint inside the project, and stop at the next step.

    Args:
        session: Where events go.
        steps: Returns the optimizer steps made so far.
    """

    def __init__(self, session: Session, steps: Callable[[], int]) -> None:
        self._session = session
        self._steps = steps
        self._saved = ""

    def install(self, torch: Any) -> None:
        """Attach to a torch that was just imported."""
        replace(torch.serialization, "save", self._noting(1), torch)
        hooks: Any = sys.modules["torch.optim.optimizer"]
        hooks.register_optimizer_step_post_hook(self._after_step)

    def watch_safetensors(self, module: Any) -> None:
        """See the checkpoints that safetensors writes."""
        replace(module, "serialize_file", self._noting(1))

    def _noting(self, position: int) -> Callable[[Function], Function]:
        """Return a maker of wrappers that note the file a function has written."""

        def make(original: Function) -> Function:
            def wrapper(*arguments: Any, **named: Any) -> Any:
                result = original(*arguments, **named)
                target = named.get("f", named.get("filename"))
                if len(arguments) > position:
                    target = arguments[position]
                self._session.attempt("stop", self._note, target)
                return result

            return wrapper

        return make

    def _note(self, target: Any) -> None:
        # A path has a name too: the last part of it only.
        is_path = isinstance(target, (str, os.PathLike))
        path = target if is_path else getattr(target, "name", None)
        if not isinstance(path, (str, os.PathLike)):
            return
        full = os.path.realpath(os.fspath(path))
        if full.startswith(os.path.join(os.path.realpath(self._session.project), "")):
            self._saved = full

    def _after_step(self, optimizer: Any, arguments: Any, named: Any) -> None:
        if self._saved:
            self._session.emit("stopped", checkpoint=self._saved, steps=self._steps())
            self._saved = ""
            self._kill_later()
            os.killpg(os.getpgrp(), SIGTERM)

    def _kill_later(self) -> None:
        """End what a handler of SIGTERM keeps alive."""
        from threading import Timer

        timer = Timer(_GRACE_SECONDS, os.killpg, (os.getpgrp(), SIGKILL))
        timer.daemon = True
        timer.start()
