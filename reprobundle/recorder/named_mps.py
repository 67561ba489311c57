"""Let a forecast run scripts that name MPS outright, on the CPU.

On Linux ``"mps"`` is a device without a backend. Where a call names it, the CPU takes
its place, and `AskedByValue` learns that it was named; a tensor that counts as the
device's then says that it is there. ``torch.device("mps")`` itself stays. torch's own
Python code, which chooses kernels by the device, goes on seeing the CPU.

Sources: ``torch/overrides.py`` (modes), ``torch/utils/_device.py`` (a default device is
the lowest of the modes, so that its name has to be read here).
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import threading

from .asked_device import default_device
from .evidence import Observer
from .mapped_calls import MappedCalls, is_name_of
from .mapped_classes import MappedClasses
from .mps_answers import MpsAnswers
from .redirect import enter_everywhere

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .session import Session

    Function = Callable[..., Any]
    Arguments = tuple[Any, ...]
    Named = dict[str, Any]

_HOST = "cpu"


class NamedMps(Observer):
    """Give the CPU to every call that names MPS.

    Args:
        session: Where it is told what a Mac would do otherwise.
        holds: Tells whether a tensor counts as the device's.
        dry: Whether fake tensors stand for all.

    Attributes:
        was_asked: Whether a call of this process ever named MPS.
    """

    name = "mps by name"

    def __init__(
        self, session: Session, holds: Callable[[Any], bool], *, dry: bool
    ) -> None:
        self._dry = dry
        self._calls = MappedCalls(session, _HOST)
        self._holds = holds
        self._torch: Any = None
        self._mode: Any = None
        self._answers: Any = None
        self._special: dict[Any, Callable[[Function, Arguments, Named], Any]] = {}
        self._makers: frozenset[Any] = frozenset()
        self._now = threading.local()
        self.was_asked = False

    def start(self, torch: Any) -> None:
        """Stand between the script and torch, which was just imported."""
        # Imported here: torch loads it when it is first needed.
        from torch.utils._device import _device_constructors

        self._torch = torch
        self._makers = frozenset(_device_constructors())
        base = torch._C.TensorBase
        self._special = {
            base.to: self._to,
            base.device.__get__: self._device,
            base.is_mps.__get__: self._is_there,
            base.get_device: self._number,
        }
        parse = getattr(torch._C._nn, "_parse_to", None)
        if parse is not None:
            self._special[parse] = self._parse_to
        self._mode = enter_everywhere(torch, self)
        MappedClasses(torch, self._calls, "mps").install()
        self._answers = MpsAnswers(torch, self._calls)
        self._answers.install()
        if self._dry:
            self._watch_fakes()

    def _watch_fakes(self) -> None:
        """Have fake tensors answer too: no mode sees the question."""
        from torch._subclasses.fake_tensor import FakeTensor

        original = FakeTensor.device.fget

        def device(tensor: Any) -> Any:
            return self._device(original, (tensor,), {})

        FakeTensor.device = property(device)

    def finish(self) -> None:
        """Send the last counts."""
        self._calls.report_end()

    def names(self, device: Any) -> bool:
        """Tell whether a text or a ``torch.device`` is MPS."""
        if isinstance(device, str):
            is_mps = is_name_of("mps", device)
        else:
            is_mps = isinstance(device, self._torch.device) and device.type == "mps"
        self.was_asked = self.was_asked or is_mps
        return is_mps

    def asked_now(self) -> bool | None:
        """Tell whether the running call of this thread names MPS; None if no device."""
        return getattr(self._now, "asked", None)

    def last_device(self) -> Any:
        """Return the device that the last call of this thread was made for."""
        return getattr(self._now, "last", None)

    # -- calls of torch

    def call(self, function: Function, arguments: Arguments, named: Named) -> Any:
        """Make one call, with the CPU in the place of MPS."""
        if function is self._torch.device:
            return function(*arguments, **named)
        plain = _plain(function)
        special = self._special.get(plain)
        if special is not None:
            return special(function, arguments, named)
        device = named.get("device")
        if device is None and plain in self._makers:
            device = default_device()
        if self.names(device):
            named = {**named, "device": _HOST}
        arguments = self._without(arguments)
        before = self.asked_now()
        self._now.asked = self.names(device) if device is not None else None
        try:
            return function(*arguments, **named)
        finally:
            self._now.asked, self._now.last = before, device

    def _without(self, arguments: Arguments) -> Arguments:
        """Return arguments with no ``torch.device`` of type MPS among them."""
        device = self._torch.device
        return tuple(
            _HOST if isinstance(one, device) and one.type == "mps" else one
            for one in arguments
        )

    def _to(self, function: Function, arguments: Arguments, named: Named) -> Any:
        if len(arguments) > 1 and self.names(arguments[1]):
            arguments = (arguments[0], _HOST, *arguments[2:])
        if self.names(named.get("device")):
            named = {**named, "device": _HOST}
        return function(*arguments, **named)

    def _parse_to(self, function: Function, arguments: Arguments, named: Named) -> Any:
        """Read the arguments of ``Module.to``."""
        if arguments and self.names(arguments[0]):
            arguments = (_HOST, *arguments[1:])
        if self.names(named.get("device")):
            named = {**named, "device": _HOST}
        return function(*arguments, **named)

    def _device(self, function: Function, arguments: Arguments, named: Named) -> Any:
        if self._answers.is_users() and self._holds(arguments[0]):
            return self._torch.device("mps", 0)
        return function(*arguments, **named)

    def _is_there(self, function: Function, arguments: Arguments, named: Named) -> Any:
        del function, named
        return self._holds(arguments[0])

    def _number(self, function: Function, arguments: Arguments, named: Named) -> Any:
        if self._holds(arguments[0]):
            return 0
        return function(*arguments, **named)


def _plain(function: Any) -> Any:
    """Return a function of torch without the recorder's wrappers."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function
