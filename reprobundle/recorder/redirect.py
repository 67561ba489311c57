"""Give every call of torch that names CUDA the device that takes its place.

One function mode sees each call of torch's Python interface: factories, methods of
tensors, ``torch.device`` itself. Names of devices are replaced before the call is made;
nothing of torch is edited, and scripts that imported a function by name are seen too. A
mode belongs to a thread, so it is entered in every thread that starts after the import
of torch. Backward passes on other threads take it with them (``at::ThreadLocalState``).

Sources: ``torch/overrides.py`` (modes), ``torch/csrc/Device.cpp`` (its constructor asks
the mode), ``torch/utils/_device.py`` (a default device is a mode above this one).
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

from .mapped_calls import device_text, is_cuda_name
from .replace import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .mapped_calls import MappedCalls
    from .named_mps import NamedMps
    from .places import Places

    Function = Callable[..., Any]
    Arguments = tuple[Any, ...]
    Named = dict[str, Any]

_TYPE_PREFIX = "torch.cuda."


class Redirect:
    """What happens to one call of torch.

    Args:
        torch: The module.
        calls: Counts what is mapped.
        places: Remembers which tensors would be on CUDA, where the target cannot tell;
            None where it can.
    """

    def __init__(self, torch: Any, calls: MappedCalls, places: Places | None) -> None:
        self._torch = torch
        self._calls = calls
        self._places = places
        self.home = torch.device(calls.target, 0)
        base = self._base = torch._C.TensorBase
        self._special: dict[Any, Callable[[Function, Arguments, Named], Any]] = {
            torch.device: self._device,
            base.to: self._to,
            base.cuda: self._cuda,
            base.type: self._type,
            base.pin_memory: self._pin_memory,
            base.is_cuda.__get__: self._is_cuda,
            base.get_device: self._get_device,
        }
        parse = getattr(torch._C._nn, "_parse_to", None)
        if parse is not None:
            self._special[parse] = self._parse_to
        if places is not None:
            self._special[base.cpu] = places.cpu
            self._special[base.data.__set__] = places.set_data
            self._special[base.device.__get__] = places.device

    def call(self, function: Function, arguments: Arguments, named: Named) -> Any:
        """Make one call, with its devices replaced."""
        plain = function
        # A method that was wrapped shows its outermost wrapper to the mode. Some are
        # wrapped twice by the recorder, where torch was built with MPS.
        while hasattr(plain, "__wrapped__"):
            plain = plain.__wrapped__
        special = self._special.get(plain)
        if special is not None:
            return special(plain, arguments, named)
        arguments, named = self._replaced(function, arguments, named)
        if named.get("pin_memory"):
            self._calls.note(self._label(function, arguments), "", "not pinned")
            named = {**named, "pin_memory": False}
        if self._places is None:
            return function(*arguments, **named)
        return self._places.follow(function, arguments, named)

    # -- finding devices among arguments

    def _asks(self, value: Any) -> bool:
        """Tell whether a value names CUDA where a device is expected."""
        if isinstance(value, str):
            return is_cuda_name(value)
        if isinstance(value, self._torch.device):
            return bool(value.type == "cuda")
        # A number alone stands for that accelerator.
        return isinstance(value, int) and not isinstance(value, bool)

    def _replaced(
        self, function: Function, arguments: Arguments, named: Named
    ) -> tuple[Arguments, Named]:
        """Return the arguments with the target in the place of CUDA."""
        device = named.get("device")
        if device is not None and self._asks(device):
            self._note(function, arguments, device)
            named = {**named, "device": self.home}
        if any(self._is_cuda_device(value) for value in arguments):
            self._note(function, arguments, "cuda")
            arguments = tuple(
                self.home if self._is_cuda_device(value) else value
                for value in arguments
            )
        return arguments, named

    def _is_cuda_device(self, value: Any) -> bool:
        return isinstance(value, self._torch.device) and value.type == "cuda"

    def _note(self, function: Function, arguments: Arguments, device: Any) -> None:
        self._calls.note(self._label(function, arguments), device_text(device))

    def _label(self, function: Function, arguments: Arguments) -> str:
        name = getattr(function, "__name__", str(function))
        of_tensor = arguments and isinstance(arguments[0], self._torch.Tensor)
        owner = "Tensor" if of_tensor and hasattr(self._base, name) else "torch"
        return f"{owner}.{name}"

    # -- calls with a form of their own

    def _device(self, function: Function, arguments: Arguments, named: Named) -> Any:
        kind = arguments[0] if arguments else named.get("type", named.get("device"))
        if not self._asks(kind):
            return function(*arguments, **named)
        asked = device_text(kind)
        index = arguments[1] if len(arguments) > 1 else named.get("index")
        if isinstance(kind, str) and index is not None:
            asked = f"{kind}:{index}"
        self._calls.note("torch.device", asked)
        return self.home

    def _to(self, function: Function, arguments: Arguments, named: Named) -> Any:
        arguments, named = self._replaced(function, arguments, named)
        if len(arguments) > 1 and self._asks(arguments[1]):
            self._note(function, arguments, arguments[1])
            arguments = (arguments[0], self.home, *arguments[2:])
        if self._places is None:
            return function(*arguments, **named)
        return self._places.to(function, arguments, named)

    def _cuda(self, function: Function, arguments: Arguments, named: Named) -> Any:
        tensor, *rest = arguments
        asked = rest[0] if rest else named.get("device")
        self._calls.note("Tensor.cuda", "cuda" if asked is None else device_text(asked))
        others = {name: value for name, value in named.items() if name != "device"}
        if len(rest) > 1:
            others["non_blocking"] = rest[1]
        if self._places is None:
            return self._base.to(tensor, self.home, **others)
        return self._places.to(self._base.to, (tensor, self.home), others)

    def _type(self, function: Function, arguments: Arguments, named: Named) -> Any:
        """Answer ``tensor.type("torch.cuda.FloatTensor")``."""
        kind = arguments[1] if len(arguments) > 1 else named.get("dtype")
        if not (isinstance(kind, str) and kind.startswith(_TYPE_PREFIX)):
            return self._plain(function, arguments, named)
        plain = getattr(self._torch, kind.removeprefix(_TYPE_PREFIX), None)
        if plain is None:
            return function(*arguments, **named)
        self._note(function, arguments, kind)
        moved = (arguments[0], self.home)
        if self._places is None:
            return self._base.to(*moved, dtype=plain.dtype)
        return self._places.to(self._base.to, moved, {"dtype": plain.dtype})

    def _plain(self, function: Function, arguments: Arguments, named: Named) -> Any:
        if self._places is None:
            return function(*arguments, **named)
        return self._places.follow(function, arguments, named)

    def _pin_memory(
        self, function: Function, arguments: Arguments, named: Named
    ) -> Any:
        """Copy, as pinning does, into memory that is not pinned."""
        del function, named
        self._calls.note("Tensor.pin_memory", "", "a copy that is not pinned")
        return arguments[0].clone()

    def _is_cuda(self, function: Function, arguments: Arguments, named: Named) -> Any:
        del function, named
        there = self._is_there(arguments[0])
        if there:
            self._calls.note("Tensor.is_cuda", "", "True")
        return there

    def _get_device(
        self, function: Function, arguments: Arguments, named: Named
    ) -> Any:
        if not self._is_there(arguments[0]):
            return function(*arguments, **named)
        self._calls.note("Tensor.get_device", "", "0")
        return 0

    def _is_there(self, tensor: Any) -> bool:
        if self._places is not None:
            return self._places.holds(tensor)
        return bool(tensor.device.type == self._calls.target)

    def _parse_to(self, function: Function, arguments: Arguments, named: Named) -> Any:
        """Read the arguments of ``Module.to``."""
        if arguments and self._asks(arguments[0]):
            self._calls.note("Module.to", device_text(arguments[0]))
            arguments = (self.home, *arguments[1:])
        device = named.get("device")
        if device is not None and self._asks(device):
            self._calls.note("Module.to", device_text(device))
            named = {**named, "device": self.home}
        return function(*arguments, **named)


def enter_everywhere(torch: Any, redirect: Redirect | NamedMps) -> Any:
    """Send every call of torch through `redirect`, in this and in later threads.

    Returns:
        The mode, which has to live as long as the process.
    """

    class MappedDevice(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return redirect.call(func, args, kwargs or {})

    mode = MappedDevice()
    mode.__enter__()
    _enter_in_threads(mode)
    return mode


def _enter_in_threads(mode: Any) -> None:
    import threading

    def make(original: Function) -> Function:
        def start(thread: Any, /, *arguments: Any, **named: Any) -> Any:
            run = thread.run

            def run_mapped() -> None:
                with mode:
                    run()

            thread.run = run_mapped
            return original(thread, *arguments, **named)

        return start

    replace(threading.Thread, "start", make)
