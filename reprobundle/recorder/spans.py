"""Wrap functions so that their calls are entries of a phase."""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .phases import Clock

    Function = Callable[..., Any]
    Maker = Callable[[Function], Function]


def _never() -> bool:
    return False


def timed(clock: Clock, phase: str, is_compiling: Callable[[], bool] = _never) -> Maker:
    """Return a maker of wrappers whose outermost calls are entries of `phase`.

    Args:
        clock: Measures them.
        phase: Name of the phase.
        is_compiling: Whether torch's compiler is tracing: reading a clock would break
            its graph. Only functions that compiled code may call have to ask.
    """
    begin, end = clock.begin, clock.end

    def make(original: Function) -> Function:
        def wrapper(*arguments: Any, **named: Any) -> Any:
            if is_compiling() or not begin(phase):
                return original(*arguments, **named)
            try:
                return original(*arguments, **named)
            finally:
                end()

        return wrapper

    return make
