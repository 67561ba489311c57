"""See every operator that torch runs, below autograd, in all threads of the process.

The dispatch mode used here is torch's own (``torch.utils._python_dispatch``). It lies
on the stack of each thread; backward passes that run in a device's thread inherit it
from the caller, other threads get one of their own when they start.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import _thread
import threading
from typing import NamedTuple

from .replace import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .phases import Clock
    from .session import Session


# ATen/mps/MPSAllocator.mm; c10/cuda/CUDACachingAllocator.cpp and CUDAException.cpp.
OUT_OF_MEMORY = (
    "MPS backend out of memory",
    "Invalid buffer size:",
    "CUDA out of memory",
    "CUDA error: out of memory",
)


# Of both sentences about float64 (ATen/native/mps/OperationUtils.mm, Copy.mm).
_NO_FLOAT64 = "MPS framework doesn't support float64"


class OperatorCall(NamedTuple):
    """One operator that ran.

    Attributes:
        operator: A ``torch._ops.OpOverload``; ``str`` of it is ``aten.add.Tensor``.
        arguments, named: What it was called with.
        result: What it returned.
        step: Optimizer steps completed before it.
        phase: The open phase: ``forward``, ``backward``, ``optimizer``, ``data`` …;
            empty between phases.
    """

    operator: Any
    arguments: Any
    named: Any
    result: Any
    step: int
    phase: str


class OperatorStream:
    """Call `see` after each operator of the user's code.

    Args:
        session: Where trouble goes.
        clock: Knows the step and the open phase.
        see: Gets each call; what it runs itself is not reported.

    Attributes:
        before: In a strict forecast, called before each operator; it may raise.
        after: Likewise, after each; it may raise.
        refused: Gets each call that its device has no kernel or no dtype for, without
            a result.
        starved: Gets each call that its device had no memory for, likewise.
    """

    before: Callable[[Any, Any, Any], None] | None = None
    after: Callable[[], None] | None = None
    refused: Callable[[OperatorCall], None] | None = None
    starved: Callable[[OperatorCall], None] | None = None

    def __init__(
        self, session: Session, clock: Clock, see: Callable[[OperatorCall], None]
    ) -> None:
        self._session = session
        self._clock = clock
        self._see = see
        self._inside = threading.local()
        self._mode: Any = None

    def start(self, torch: Any) -> None:
        """Push the mode on this thread, and on every thread that starts later."""
        from torch.utils._python_dispatch import TorchDispatchMode

        mode = _mode_class(TorchDispatchMode, self)
        self._mode = mode()
        self._mode.__enter__()
        self._follow_threads(mode)

    def stop(self) -> None:
        """Take the mode off this thread, if it lies on top.

        One that still lies there when the interpreter goes down is freed by whichever
        thread ends last: a crash after the run was done.
        """
        from torch.utils import _python_dispatch

        mode, self._mode = self._mode, None
        stack = _python_dispatch._get_current_dispatch_mode_stack()
        if mode is not None and stack and stack[-1] is mode:
            mode.__exit__(None, None, None)

    def _follow_threads(self, mode: Any) -> None:
        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def run_with_mode(thread: threading.Thread) -> None:
                with mode():
                    original(thread)

            return run_with_mode

        def make_bare(original: Callable[..., Any]) -> Callable[..., Any]:
            def start_new_thread(
                function: Callable[..., Any], arguments: Any, *named: Any
            ) -> Any:
                def run_with_mode(*arguments: Any, **named: Any) -> None:
                    with mode():
                        function(*arguments, **named)

                return original(run_with_mode, arguments, *named)

            return start_new_thread

        # Not `run`: classes of the user's override that one.
        replace(threading.Thread, "_bootstrap_inner", make)
        replace(_thread, "start_new_thread", make_bare)

    def report(self, operator: Any, arguments: Any, named: Any, result: Any) -> None:
        """Pass a call on, unless it is one of an observer's own."""
        self._pass_on(self._see, operator, arguments, named, result)

    def report_raised(
        self, error: Exception, operator: Any, arguments: Any, named: Any
    ) -> None:
        """Pass on a call that its device refused: the script may catch that and go on.

        On MPS a lack of memory is a plain RuntimeError, known by its text.
        """
        see = None
        if isinstance(error, NotImplementedError) or _NO_FLOAT64 in str(error):
            see = self.refused
        elif any(text in str(error) for text in OUT_OF_MEMORY):
            see = self.starved
        if see is not None:
            self._pass_on(see, operator, arguments, named, None)

    def _pass_on(
        self,
        see: Callable[[OperatorCall], None],
        operator: Any,
        arguments: Any,
        named: Any,
        result: Any,
    ) -> None:
        inside = self._inside
        if getattr(inside, "busy", False):
            return
        inside.busy = True
        try:
            clock = self._clock
            call = OperatorCall(
                operator, arguments, named, result, clock.steps, clock.open_phase
            )
            see(call)
        finally:
            inside.busy = False


def _mode_class(base: Any, stream: OperatorStream) -> Any:
    """Return a dispatch mode that reports to `stream` and changes nothing.

    torch is imported by the user's code, so its classes exist only now.
    """

    class Operators(base):  # type: ignore[misc]
        """Report each operator after it ran."""

        # With an ordinary mode on the stack the compiler skips every frame, and
        # would go on skipping it; see torch/_dynamo/convert_frame.py.
        @classmethod
        def ignore_compile_internals(cls) -> bool:
            return True

        supports_higher_order_operators = True

        def __torch_dispatch__(
            self, operator: Any, types: Any, arguments: Any = (), named: Any = None
        ) -> Any:
            if stream.before is not None:
                stream.before(operator, arguments, named or {})
            try:
                result = operator(*arguments, **(named or {}))
            except (RuntimeError, TypeError) as error:
                stream.report_raised(error, operator, arguments, named or {})
                raise
            stream.report(operator, arguments, named or {}, result)
            if stream.after is not None:
                stream.after()
            return result

    return Operators
