"""Report the calls that change what an allocator's counters mean.

``empty_cache`` hands unused memory back: a lower counter after it proves nothing. A
memory fraction set by the script is a limit, and two series under different limits are
not comparable. A peak that was reset is no peak of the run.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import sys

from .callers import caller
from .replace import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .memory import Memory
    from .session import Session

    Function = Callable[..., Any]

_EMPTY = "empty_cache"
_WATCHED = {
    "torch.cuda.memory": (
        _EMPTY,
        "set_per_process_memory_fraction",
        "reset_peak_memory_stats",
        "reset_max_memory_allocated",
    ),
    "torch.mps": (_EMPTY, "set_per_process_memory_fraction"),
    "torch.accelerator.memory": (_EMPTY, "reset_peak_memory_stats"),
}
# After these many calls from one place only powers of two are sent: a script may
# empty the cache in every step.
_CALLS_IN_A_ROW = 4


class Allocators:
    """Wrap the functions, and send who called them, with which value, and when."""

    def __init__(
        self, session: Session, memory: Memory, steps: Callable[[], int]
    ) -> None:
        self._session = session
        self._memory = memory
        self._steps = steps
        self._calls: dict[tuple[str, str], int] = {}

    def install(self, torch: Any) -> None:
        """Attach to a torch that was just imported."""
        for name, functions in _WATCHED.items():
            module = sys.modules.get(name)
            package = sys.modules.get(name.removesuffix(".memory"))
            for function in functions if module else ():
                replace(module, function, self._reporting(name, function), package)

    def _reporting(self, module: str, function: str) -> Callable[[Function], Function]:
        full = f"{module.removesuffix('.memory')}.{function}"

        def make(original: Function) -> Function:
            def wrapper(*arguments: Any, **named: Any) -> Any:
                result = original(*arguments, **named)
                values = (*arguments, *named.values())
                self._session.attempt("allocators", self._send, full, values)
                return result

            return wrapper

        return make

    def _send(self, function: str, values: tuple[Any, ...]) -> None:
        where = caller(self._session.project)
        calls = self._calls[function, where] = self._calls.get((function, where), 0) + 1
        if calls > _CALLS_IN_A_ROW and calls & (calls - 1):
            return
        self._session.emit(
            "allocator",
            function=function,
            value=", ".join(map(str, values))[:100],
            where=where,
            calls=calls,
            step=self._steps(),
            in_use=self._memory.device_in_use,
        )
        if function.endswith(_EMPTY) and calls == 1:
            self._memory.sample("cache emptied")
