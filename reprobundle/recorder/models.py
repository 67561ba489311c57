"""Time how parameters come about, and how tensors move between devices.

Two phases: ``model`` is the drawing of initial parameters (``reset_parameters`` of
torch's layers, the functions of ``torch.nn.init``) and the loading of given ones
(``load_state_dict``). Python code around them, such as a long constructor, is no part
of it: nothing tells from outside when a constructor ends. ``transfer`` is what moves a
tensor or a module to another device type; a call that moves nothing is no entry.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import sys

from .callers import is_ours
from .replace import replace
from .spans import timed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from .devices import Devices
    from .phases import Clock
    from .session import Session

    Function = Callable[..., Any]

_RESETS = ("reset_parameters", "_reset_parameters")
_MODULE_MOVES = ("to", "cuda", "cpu", "xpu")
_TENSOR_MOVES = ("to", "cuda", "cpu")


class Models:
    """Measure the phases ``model`` and ``transfer``."""

    def __init__(self, session: Session, clock: Clock, devices: Devices) -> None:
        self._session = session
        self._clock = clock
        self._devices = devices
        self._torch: Any = None
        self._watched = False

    def install(self, torch: Any) -> None:
        """Attach to a torch that was just imported."""
        self._torch = torch
        make = timed(self._clock, "model", torch.compiler.is_compiling)
        for kind in _layers():
            for name in _RESETS:
                if name in vars(kind):
                    replace(kind, name, make)
        for name in list(vars(torch.nn.init)):
            if name.endswith("_") and not name.startswith("_"):
                replace(torch.nn.init, name, make)
        replace(torch.nn.Module, "load_state_dict", make)
        for name in _MODULE_MOVES:
            replace(torch.nn.Module, name, self._moving(_module_device))
        if getattr(torch._C, "_has_mps", False) or self._clock.may_wait:
            self.watch_tensors()

    def watch_tensors(self) -> None:
        """Measure what moves single tensors too, now that there may be a device.

        Where torch knows no accelerator nothing can move, and a call as frequent as
        ``Tensor.to`` stays untouched.
        """
        if self._torch is None or self._watched:
            return
        self._watched = True
        for name in _TENSOR_MOVES:
            replace(self._torch.Tensor, name, self._moving(_tensor_device))

    def _moving(self, device_of: Callable[[Any], str]) -> Callable[[Function], Any]:
        clock, attempt = self._clock, self._session.attempt
        is_compiling = self._torch.compiler.is_compiling
        wanted = _Wanted(self._torch)

        def make(original: Function) -> Function:
            name = original.__name__

            def moves(moved: Any, arguments: Any, named: Any) -> bool:
                target = wanted.by(name, arguments, named)
                if not target or target == device_of(moved):
                    return False
                # A copy of the recorder's own is no transfer of the run. The frames
                # between are `attempt` and the wrapper.
                return not is_ours(sys._getframe(3).f_code.co_filename)

            def note(result: Any) -> None:
                self._devices.note(device_of(result), "transfer")

            def wrapper(moved: Any, /, *arguments: Any, **named: Any) -> Any:
                if (
                    is_compiling()
                    or not attempt("transfers", moves, moved, arguments, named)
                    or not clock.begin("transfer")
                ):
                    return original(moved, *arguments, **named)
                try:
                    result = original(moved, *arguments, **named)
                    # Before the clock is read: a device that this call is the first
                    # to use must be waited for.
                    attempt("transfers", note, result)
                    return result
                finally:
                    clock.end()

            return wrapper

        return make


class _Wanted:
    """Read the target device type out of the arguments of ``to`` and its kin."""

    def __init__(self, torch: Any) -> None:
        self._device = torch.device
        self._tensor = torch.Tensor

    def by(self, name: str, arguments: Any, named: Any) -> str:
        """Return the device type asked for; empty when there is none."""
        if name != "to":
            return name
        device = named.get("device")
        if device is None:
            device = named.get("other", arguments[0] if arguments else None)
        if isinstance(device, str):
            return device.partition(":")[0]
        if isinstance(device, self._tensor):
            device = device.device
        return device.type if isinstance(device, self._device) else ""


def _tensor_device(tensor: Any) -> str:
    kind: str = tensor.device.type
    return kind


def _module_device(module: Any) -> str:
    """Return the device type of the first parameter or buffer, ``cpu`` without any."""
    for tensors in (module.parameters, module.buffers):
        for tensor in tensors():
            return _tensor_device(tensor)
    return "cpu"


def _layers() -> Iterator[type]:
    """Yield torch's own layers, each once."""
    seen: set[type] = set()
    for name, module in list(sys.modules.items()):
        if not name.startswith("torch.nn.modules."):
            continue
        for kind in list(vars(module).values()):
            if isinstance(kind, type) and kind.__module__ == name and kind not in seen:
                seen.add(kind)
                yield kind
