"""Answer what a script asks torch about MPS, where the CPU stands for it.

That MPS is there, as a Mac says; what ``torch.mps`` measures, with 0, and that is told.
torch's own code gets torch's answers: it would go on to call Metal.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import os
import sys

from .asked_device import default_device
from .callers import direct_caller, is_ours
from .replace import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    from .mapped_calls import MappedCalls

    Function = Callable[..., Any]

_DONE = (
    "empty_cache",
    "manual_seed",
    "seed",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "synchronize",
)
_MEASURED = (
    "current_allocated_memory",
    "driver_allocated_memory",
    "recommended_max_memory",
)
# What stands between a question and the answer: modes, of which torch's default device
# is one.
_BETWEEN = (
    "/redirect.py",
    "/named_mps.py",
    "/mps_answers.py",
    "/torch/utils/_device.py",
)


class MpsAnswers:
    """Stand for ``torch.backends.mps``, ``torch.mps`` and ``torch.accelerator``.

    Args:
        torch: The module.
        calls: Told of what is answered with 0.
    """

    def __init__(self, torch: Any, calls: MappedCalls) -> None:
        self._torch = torch
        self._calls = calls
        self._folder = os.path.join(os.path.dirname(torch.__file__), "")

    def is_users(self) -> bool:
        """Tell whether the question is the script's: not torch's, and not ours."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename.endswith(_BETWEEN):
            frame = frame.f_back
        name = frame.f_code.co_filename if frame is not None else ""
        return not is_ours(name) and not name.startswith(self._folder)

    def install(self) -> None:
        """Attach."""
        torch = self._torch
        for name in ("is_available", "is_built", "is_macos_or_newer"):
            replace(torch.backends.mps, name, self._answer(True))
        mps = torch.mps
        replace(mps, "is_available", self._answer(True))
        replace(mps, "device_count", self._answer(1))
        for name in _DONE:
            replace(mps, name, self._answer(None))
        for name in _MEASURED:
            replace(mps, name, self._measured)
        replace(mps, "get_rng_state", self._state)
        mps.Event = self._event(mps.Event)
        device = torch.device("mps")
        replace(torch, "get_default_device", self._default)
        accelerator = torch.accelerator
        replace(accelerator, "is_available", self._answer(True))
        replace(accelerator, "current_accelerator", self._answer(device))
        replace(accelerator, "device_count", self._answer(1))
        replace(accelerator, "synchronize", self._answer(None))

    def _answer(self, value: Any) -> Callable[[Function], Function]:
        def make(original: Function) -> Function:
            def answer(*arguments: Any, **named: Any) -> Any:
                if self._is_torchs():
                    return original(*arguments, **named)
                return value

            return answer

        return make

    def _is_torchs(self) -> bool:
        return direct_caller().startswith(self._folder)

    def _measured(self, original: Function) -> Function:
        def measured(*arguments: Any, **named: Any) -> int:
            if self.is_users():
                self._calls.note(f"torch.mps.{original.__name__}", "", "0")
            return 0

        return measured

    def _state(self, original: Function) -> Function:
        del original

        def get_rng_state(*arguments: Any, **named: Any) -> Any:
            return self._torch.get_rng_state()

        return get_rng_state

    def _default(self, original: Function) -> Function:
        torch = self._torch

        def get_default_device() -> Any:
            found = default_device()
            is_mps = found is not None and found.type == "mps"
            return torch.device("mps", 0) if is_mps else original()

        return get_default_device

    def _event(self, original: Any) -> Any:
        """Return a class in the place of ``torch.mps.Event``: nothing is waited for."""
        calls = self._calls

        class Event(original):  # type: ignore[misc]
            def __init__(self, enable_timing: bool = False) -> None:
                del enable_timing

            def __del__(self) -> None:
                """Leave alone what was never made."""

            def record(self) -> None:
                """Do nothing."""

            wait = synchronize = record

            def query(self) -> bool:
                """Return True: all is done."""
                return True

            def elapsed_time(self, end_event: Any) -> float:
                """Return 0 ms."""
                del end_event
                calls.note("torch.mps.Event.elapsed_time", "", "0")
                return 0.0

        return Event
