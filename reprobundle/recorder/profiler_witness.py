"""See CPU fallback in a profile: a child ``aten::_to_cpu`` of an operator.

``at::_to_cpu`` is called by the CPU fallback and by nothing else that runs on MPS
(``aten/src/ATen/native/CPUFallback.cpp``), so the event that encloses it names the
operator. It needs no warning and no variable. A profile grows without bound, so it is
taken in windows: from the start to the third step, then at steps 4, 8, 16 and so on.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import importlib

from .evidence import Observer
from .replace import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .operators import OperatorCall
    from .session import Session

_FIRST_STEPS = 3
# Some 2 kB for each operator: a window never holds more than about 60 MB.
_MOST_OPERATORS = 30_000


class ProfilerWitness(Observer):
    """Take profiles in windows and report the operators that fell back."""

    name = "profiler"
    sees_operators = True

    def __init__(self, session: Session) -> None:
        self._session = session
        self._profiler: Any = None
        self._torch: Any = None
        self._first = 1
        self._operators = 0
        self._steps = 0
        self._covered: list[list[int]] = []
        self._cut: str = ""
        self._counts: dict[str, int] = {}

    def start(self, torch: Any) -> None:
        """Open the first window if this torch can use MPS."""
        if not torch.backends.mps.is_built():
            self.sees_operators = False
            return
        self._torch = torch
        importlib.import_module("torch.profiler")
        self._give_way(torch.autograd.profiler.profile)
        self._open()

    def _give_way(self, kind: Any) -> None:
        """Stop for good when the script profiles itself: two cannot run at once."""

        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def wrapper(profile: Any, *arguments: Any, **named: Any) -> Any:
                own = self._profiler
                if own is not None and profile is not getattr(own, "profiler", None):
                    self._close(whole=False)
                    self._cut = "the script uses the profiler itself"
                return original(profile, *arguments, **named)

            return wrapper

        for name in ("__enter__", "_prepare_trace"):
            replace(kind, name, make)

    def _open(self) -> None:
        tools = self._torch.profiler
        # Set only when it runs: until then a start is our own.
        profiler = tools.profile(activities=[tools.ProfilerActivity.CPU])
        profiler.start()
        self._profiler = profiler
        self._operators = 0
        self._first = self._steps + 1

    def _close(self, *, whole: bool) -> None:
        """End the window and read it; `whole` if its last step came to an end."""
        profiler, self._profiler = self._profiler, None
        if profiler is None:
            return
        profiler.stop()
        last = self._steps if whole else self._steps + 1
        if last >= self._first:
            self._covered.append([self._first, last])
        parents: dict[int, str] = {}
        for event in profiler.events():
            if event.name == "aten::_to_cpu" and event.cpu_parent is not None:
                parents[id(event.cpu_parent)] = event.cpu_parent.name
        for operator in parents.values():
            self._counts[operator] = self._counts.get(operator, 0) + 1
        # A trace that the garbage collector frees after the next one began crashes in
        # libkineto's destructor (seen with torch 2.13), so it goes now.
        profiler.profiler.kineto_results = None
        profiler.profiler = None

    def operator(self, call: OperatorCall) -> None:
        """Count, and end a window that has grown too large."""
        self._operators += 1
        if self._profiler is not None and self._operators > _MOST_OPERATORS:
            self._close(whole=False)
            self._cut = f"a window ends after {_MOST_OPERATORS:,} operators"

    def step(self, number: int) -> None:
        """Open and close windows at the ends of steps."""
        self._steps = number
        if self._profiler is not None and number >= _FIRST_STEPS:
            self._close(whole=True)
        upcoming = number + 1
        can_open = self._torch is not None and not self._cut.startswith("the script")
        if self._profiler is None and can_open and upcoming & (upcoming - 1) == 0:
            self._open()

    def finish(self) -> None:
        """Close the last window and report."""
        if self._torch is None:
            return
        self._close(whole=False)
        for operator, count in self._counts.items():
            self._session.emit(
                "fallback", witness="profiler", operator=operator, count=count
            )
        self._session.emit(
            "witness",
            name="profiler",
            looked=bool(self._covered),
            steps=self._covered,
            total_steps=self._steps,
            reason=self._cut,
        )
