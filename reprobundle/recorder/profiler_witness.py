"""See CPU fallback in a profile: a child ``aten::_to_cpu`` of an operator.

``at::_to_cpu`` is called by the CPU fallback and by nothing else that runs on MPS
(``aten/src/ATen/native/CPUFallback.cpp``), so the event that encloses it names the
operator. It needs no warning and no variable. A profile grows without bound, so it is
taken in windows: from the start to the third step, then at steps 4, 8, 16 and so on.

One profile lives from the start of the process to its end, and collection is switched
off between the windows. A profile that is stopped while a scope is open (a step runs
inside ``Optimizer.step``) frees the event of that scope; if another profile runs when
the scope ends, torch writes the end of it into the freed memory (``onFunctionExit`` in
``torch/csrc/autograd/profiler_kineto.cpp``), and the process dies later of anything.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import gc
import importlib
from _thread import get_ident

from .evidence import Observer
from .replace import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .operators import OperatorCall
    from .session import Session

_FIRST_STEPS = 3
# Some 2 kB for each operator when a profile is read: 60 MB for a window, 120 MB in all.
_MOST_IN_WINDOW = 30_000
_MOST_OPERATORS = 60_000
_NO_WINDOW = -1


def window_of(step: int) -> int:
    """Return the number of the window that a step, counted from 1, belongs to."""
    if step <= _FIRST_STEPS:
        return 0
    return step if step & (step - 1) == 0 else _NO_WINDOW


class ProfilerWitness(Observer):
    """Take a profile in windows and report the operators that fell back."""

    name = "profiler"
    sees_operators = True

    def __init__(self, session: Session) -> None:
        self._session = session
        self._torch: Any = None
        self._profiler: Any = None
        self._thread = get_ident()
        self._steps = 0
        self._operators = 0
        # The open window, its first step and its operators; and one that is used up.
        self._window = _NO_WINDOW
        self._first = 1
        self._in_window = 0
        self._spent = _NO_WINDOW
        self._covered: list[list[int]] = []
        self._counts: dict[str, int] = {}
        self._cut = ""

    def start(self, torch: Any) -> None:
        """Start the profile, and with it the first window, if torch can use MPS."""
        if not torch.backends.mps.is_built():
            self.sees_operators = False
            return
        self._torch = torch
        tools = importlib.import_module("torch.profiler")
        profiler = tools.profile(activities=[tools.ProfilerActivity.CPU])
        profiler.start()
        self._profiler = profiler
        self._window = window_of(1)
        # Only now: the start above was our own.
        self._give_way(torch.autograd.profiler.profile)

    def _give_way(self, kind: Any) -> None:
        """Stop for good when the script profiles itself: two cannot run at once."""

        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def wrapper(profile: Any, *arguments: Any, **named: Any) -> Any:
                if self._profiler is not None:
                    self._session.attempt("evidence: profiler", self._leave)
                return original(profile, *arguments, **named)

            return wrapper

        for name in ("__enter__", "_prepare_trace"):
            replace(kind, name, make)

    def _leave(self) -> None:
        # The script's profile will run when these scopes end. One that was ended does
        # nothing when it ends again.
        scope = self._torch.autograd.profiler.record_function
        leave = self._torch.ops.profiler._record_function_exit._RecordFunction
        for one in gc.get_objects():
            if type(one) is scope and one.record is not None:
                leave(one.record)
        self._end_window(self._steps)
        self._stop()
        self._cut = "the script uses the profiler itself"

    def operator(self, call: OperatorCall) -> None:
        """Count an operator, and see to the window."""
        if self._window == _NO_WINDOW:
            if get_ident() == self._thread:
                self._follow()
            return
        self._operators += 1
        self._in_window += 1
        if get_ident() == self._thread:
            self._follow()
        elif not self._torch._C._autograd._profiler_enabled():
            self._cut = "the script's own threads are not profiled"

    def step(self, number: int) -> None:
        """Note the end of a step: windows open and close there."""
        self._steps = number
        # Collection is switched for one thread. If a step ends in another, such as that
        # of a backward pass, the next operator here switches it.
        if get_ident() == self._thread:
            self._follow()

    def _follow(self) -> None:
        """Switch collection on or off, as the step and the number of operators ask."""
        if self._profiler is None:
            return
        wanted = window_of(self._steps + 1)
        if wanted == self._window and self._is_full():
            self._spent = wanted
            self._cut = f"a window ends after {_MOST_IN_WINDOW:,} operators"
        if wanted == self._spent or self._operators > _MOST_OPERATORS:
            wanted = _NO_WINDOW
        if wanted == self._window:
            return
        self._end_window(self._steps)
        if _NO_WINDOW in (wanted, self._window):
            kind = self._torch.profiler.ProfilerActivity.CPU
            self._profiler.toggle_collection_dynamic(wanted != _NO_WINDOW, [kind])
        self._window = wanted
        self._first, self._in_window = self._steps + 1, 0

    def _is_full(self) -> bool:
        return self._in_window > _MOST_IN_WINDOW or self._operators > _MOST_OPERATORS

    def _end_window(self, last: int) -> None:
        """Note which steps the open window saw from beginning to end."""
        if self._window != _NO_WINDOW and last >= self._first:
            self._covered.append([self._first, last])

    def _stop(self) -> None:
        """End the profile and count what it holds."""
        profiler, self._profiler = self._profiler, None
        self._window = _NO_WINDOW
        if profiler is None:
            return
        profiler.stop()
        parents: dict[int, str] = {}
        for event in profiler.events():
            if event.name == "aten::_to_cpu" and event.cpu_parent is not None:
                parents[id(event.cpu_parent)] = event.cpu_parent.name
        for operator in parents.values():
            self._counts[operator] = self._counts.get(operator, 0) + 1

    def finish(self) -> None:
        """Close the last window and report."""
        if self._torch is None:
            return
        # What follows the last step counts as one more.
        self._end_window(self._steps + 1)
        self._session.attempt("evidence: profiler", self._stop)
        for operator, count in self._counts.items():
            self._session.emit(
                "fallback", witness="profiler", operator=operator, count=count
            )
        self._session.emit(
            "witness",
            name="profiler",
            looked=bool(self._covered or self._operators),
            steps=self._covered or [[0, 0]],
            total_steps=self._steps,
            reason=self._cut,
        )
