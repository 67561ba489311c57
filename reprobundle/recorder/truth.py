"""Run the user's code in float64 where it asks for less: the truth both sides aim at.

A dispatch mode below autograd hands every operator float64 in the place of shorter
floats: what it creates, what it converts to, and what comes from outside (a file, a
numpy array). Two things stay as in the reference, or it would be another computation:
the rounding of data that the code states, and the random draws (`promotion`).

What cannot be promoted is counted, never passed over: memory shared with numpy that is
written to, bits that are read as integers, operators that return short floats all the
same, other devices, other threads than this mode reaches.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import threading

from .promotion import Promotion
from .replace import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .session import Session


class Truth:
    """The promotion of one process, and the account of what it did not reach."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._mode: Any = None
        self.operators = 0
        self.entered = 0
        self.draws = 0
        self.left: dict[tuple[str, str], int] = {}

    def start(self, torch: Any) -> None:
        """Promote from here on, in this thread and in every one that starts later."""
        from torch.utils._python_dispatch import TorchDispatchMode

        promotion = Promotion(torch, self)
        mode = _mode_class(TorchDispatchMode, promotion)
        self._mode = mode()
        self._mode.__enter__()
        replace(threading.Thread, "_bootstrap_inner", _entering(mode))
        replace(torch._utils, "_rebuild_tensor", _outside)
        for name in ("from_numpy", "frombuffer", "from_dlpack"):
            replace(torch, name, _outside)
        for name in ("as_tensor", "asarray"):
            replace(torch, name, _outside_if_shared)
        replace(torch, "compile", self._eager)
        parameter = torch.nn.Parameter
        original = parameter.__new__
        parameter.__new__ = lambda cls, data=None, requires_grad=True: original(
            cls, promotion.promoted(data), requires_grad
        )
        self._session.attempt("truth", self.send)

    def stop(self) -> None:
        """Take the mode off and send the totals."""
        from torch.utils import _python_dispatch

        mode, self._mode = self._mode, None
        stack = _python_dispatch._get_current_dispatch_mode_stack()
        if mode is not None and stack and stack[-1] is mode:
            mode.__exit__(None, None, None)

    def finish(self) -> None:
        """Send the totals at the end of the process."""
        if self._mode is not None:
            self.send()
            self.stop()

    def continue_in_fork(self) -> None:
        """Count anew: what the parent did is in its own account."""
        self.operators = self.entered = self.draws = 0
        self.left = {}

    def leave(self, operator: str, why: str) -> None:
        """Count something that was not promoted, and say so the first time."""
        key = (operator, why)
        self.left[key] = self.left.get(key, 0) + 1
        if self.left[key] == 1:
            # At once: a worker that is killed must not look completely promoted.
            self.send()

    def send(self) -> None:
        """Send the account so far; the last one of a process counts."""
        self._session.emit(
            "promoted",
            operators=self.operators,
            entered=self.entered,
            draws=self.draws,
            left=[
                {"operator": operator, "why": why, "count": count}
                for (operator, why), count in self.left.items()
            ],
        )

    def _eager(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Run code that was to be compiled as it is written: the same mathematics."""

        def compile(model: Any = None, **options: Any) -> Any:
            if model is None:
                return lambda function: function
            return model

        return compile


def _entering(mode: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def run_with_mode(thread: threading.Thread) -> None:
            with mode():
                original(thread)

        return run_with_mode

    return make


def _outside(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that makes its tensor without modes.

    It lies on memory that is not torch's to cast: a storage that was read, an array.
    """
    from torch.utils._python_dispatch import _disable_current_modes

    def on_memory(*arguments: Any, **named: Any) -> Any:
        with _disable_current_modes():
            return original(*arguments, **named)

    return on_memory


def _outside_if_shared(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that does so for data that bring memory of their own."""
    shared = _outside(original)

    def convert(*arguments: Any, **named: Any) -> Any:
        data = arguments[0] if arguments else next(iter(named.values()), None)
        brings = hasattr(data, "__array_interface__") or isinstance(data, memoryview)
        return (shared if brings else original)(*arguments, **named)

    return convert


def _mode_class(base: Any, promotion: Promotion) -> Any:
    class Promoting(base):  # type: ignore[misc]
        """Give every operator float64."""

        supports_higher_order_operators = True

        def __torch_dispatch__(
            self, operator: Any, types: Any, arguments: Any = (), named: Any = None
        ) -> Any:
            return promotion.run(operator, arguments, named or {})

    return Promoting
