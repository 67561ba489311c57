"""Know which tensors of a run on the CPU would lie on another device.

A run that was given the CPU as its device moves tensors to it with ``to(device)``,
which does nothing there. Here such a call gives another tensor object over the same
memory, and what it gives counts as *steered*: it, what operators make of it, and what
is made with ``device=``. A device that the source names outright (``.cpu()``,
``"cpu"``) is meant and not steered. Only evidence passes do this; no value changes.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import sys

from .asked_device import AskedInSource
from .callers import is_ours
from .replace import replace
from .transforms import unwrapped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import FrameType
    from typing import Any

    from .operators import OperatorCall
    from .session import Session

    Function = Callable[..., Any]

HOST = ("cpu", "meta")
# Wrappers of the recorder that may stand between a call and the one here.
_WRAPPERS = ("/models.py", "/steered.py", "/session.py")
# What makes a tensor without an operator that names its device.
_MAKERS = ("tensor", "as_tensor", "asarray")


class Steered:
    """Tell whether a tensor is on the steered device.

    Args:
        session: Says which device was asked for, and takes trouble.
        arrived: Called with a tensor that was just moved there or made there, and how.

    Attributes:
        asked: Tells which device a call asks for.
        seen: Operators and moves that had to do with a steered tensor.
        left: Called with a tensor that was just copied to the CPU, if set.
        after: Called at the end of each call that moves or makes; it may raise.
    """

    left: Callable[[Any], None] | None = None
    after: Callable[[], None] | None = None

    def __init__(self, session: Session, arrived: Callable[[Any, str], None]) -> None:
        self._session = session
        self._arrived = arrived
        self._torch: Any = None
        self._moving = False
        # Single tensors of which it is known, and memory that steered operators made.
        self._known: Any = None
        self._memory: dict[int, Any] = {}
        self.seen = 0
        self.asked = AskedInSource(session.project, self.holds)

    def start(self, torch: Any) -> None:
        """Attach, unless there is an accelerator: then tensors tell by themselves."""
        self._torch = torch
        asked = self._session.device
        # Imported here: only traced runs need them.
        from torch.utils._python_dispatch import _disable_current_modes
        from torch.utils.weak import WeakTensorKeyDictionary

        self._unseen = _disable_current_modes
        self._known = WeakTensorKeyDictionary()
        if asked == "cpu" or (
            asked == "as-is" and not torch.accelerator.is_available()
        ):
            self._attach(torch)

    def _attach(self, torch: Any) -> None:
        replace(torch.Tensor, "to", self._watch_move)
        replace(torch.Tensor, "cpu", self._watch_cpu)
        replace(torch.Tensor, "type_as", self._watch_type_as)
        for name in ("to", "cpu"):
            replace(torch.nn.Module, name, self._watch_module)
        replace(torch, "load", self._watch_load)
        replace(torch.jit, "load", self._watch_load)
        replace(torch.Tensor, "new_tensor", self._watch_new)
        replace(torch.Tensor, "__deepcopy__", self._watch_deep_copy)
        register = getattr(torch.jit._builtins, "_register_builtin", None)
        # torch keeps the list of what heeds a default device from its first use on. It
        # is asked for by what stands here now.
        from torch.utils._device import _device_constructors

        _device_constructors()
        for name in _MAKERS:
            replace(torch, name, self._watch_maker)
            if register is not None:
                register(getattr(torch, name), f"aten::{name}")

    def holds(self, tensor: Any) -> bool:
        """Tell whether a tensor is on the steered device."""
        if tensor.device.type not in HOST:
            return True
        known = self._known.get(tensor)
        if known is not None:
            return bool(known)
        return bool(self._memory) and self._key(tensor) in self._memory

    def follow(self, call: OperatorCall, given: list[Any], made: list[Any]) -> bool:
        """Note what an operator made; tell whether it ran on the steered device."""
        on = any(self.holds(tensor) for tensor in given)
        if not given and made and "device" in call.named:
            on = made[0].device.type not in HOST or self.asked.is_made_by_operator()
        elif made and self.asked.is_named_now():
            on = True
        for tensor in made:
            if tensor.device.type in HOST:
                self._inherit(tensor, given, on)
        self.seen += on
        return on

    def _inherit(self, tensor: Any, given: list[Any], on: bool) -> None:
        """Have a view be where its base is, and new memory where the operator ran."""
        key = self._key(tensor)
        for one in given:
            if self._key(one) == key:
                known = self._known.get(one)
                if one is not tensor and known is not None:
                    self._known[tensor] = known
                return
        if on:
            self._keep(tensor)

    def _keep(self, tensor: Any) -> None:
        import weakref

        if tensor.layout != self._torch.strided:
            self._known[tensor] = True
            return
        storage = unwrapped(self._torch, tensor).untyped_storage()
        key = storage._cdata
        memory = self._memory
        memory[key] = weakref.ref(storage, lambda _: memory.pop(key, None))

    def _key(self, tensor: Any) -> int:
        if tensor.layout != self._torch.strided:
            return id(tensor)
        key: int = unwrapped(self._torch, tensor).untyped_storage()._cdata
        return key

    def _watch_new(self, original: Function) -> Function:
        def new_tensor(tensor: Any, *arguments: Any, **named: Any) -> Any:
            result = original(tensor, *arguments, **named)
            self._session.attempt("float64", self._like, result, tensor)
            return result

        return new_tensor

    def _like(self, result: Any, tensor: Any) -> None:
        if self.holds(tensor):
            self._known[result] = True

    def _watch_deep_copy(self, original: Function) -> Function:
        """Follow a copy of the memory itself, which no operator makes."""

        def deep_copy(tensor: Any, memo: Any) -> Any:
            result = original(tensor, memo)
            if result is not tensor:
                self._session.attempt("float64", self._like, result, tensor)
            return result

        return deep_copy

    def adopt(self, tensor: Any) -> None:
        """Have a tensor that was made inside an operator's call be where that ran."""
        self._keep(tensor)

    def _watch_move(self, original: Function) -> Function:
        is_compiling = self._torch.compiler.is_compiling

        def to(tensor: Any, /, *arguments: Any, **named: Any) -> Any:
            if is_compiling() or self._moving or _is_ours_to_make(sys._getframe(1)):
                return original(tensor, *arguments, **named)
            goal = self._session.attempt("float64", self._goal, arguments, named)
            if not goal:
                return original(tensor, *arguments, **named)
            if goal == "host":
                tensor = self._try(self._leave, tensor, tensor)
                return original(tensor, *arguments, **named)
            result = original(tensor, *arguments, **named)
            result = self._try(self._arrive, result, tensor)
            self._end()
            return result

        return to

    def _watch_type_as(self, original: Function) -> Function:
        """Follow ``x.type_as(y)``, which goes to where ``y`` is."""
        is_compiling = self._torch.compiler.is_compiling

        def type_as(tensor: Any, other: Any) -> Any:
            if is_compiling() or self._moving or _is_ours_to_make(sys._getframe(1)):
                return original(tensor, other)
            if not self._session.attempt("float64", self.holds, other):
                tensor = self._try(self._leave, tensor, tensor)
                return original(tensor, other)
            result = self._try(self._arrive, original(tensor, other), tensor)
            self._end()
            return result

        return type_as

    def _end(self) -> None:
        if self.after is not None:
            self.after()

    def _try(self, action: Callable[[Any, Any], Any], result: Any, tensor: Any) -> Any:
        """Return what `action` gives in the place of `result`; on a failure, that."""
        given = self._session.attempt("float64", action, result, tensor)
        return result if given is None else given

    def _goal(self, arguments: Any, named: Any) -> str:
        """Return ``steered``, ``host``, or nothing where no device is asked for."""
        torch = self._torch
        first = arguments[0] if arguments else None
        wanted = named.get("device", named.get("other", first))
        if isinstance(wanted, torch.Tensor):
            return "steered" if self.holds(wanted) else "host"
        if not isinstance(wanted, (str, torch.device)):
            return ""
        return "steered" if self.asked.is_goal(wanted) else "host"

    def _arrive(self, result: Any, tensor: Any) -> Any:
        if result.device.type not in HOST:
            return result
        if result is tensor and not self.holds(tensor):
            result = self._alias(tensor)
            self._arrived(result, "moved")
        elif result is not tensor and not self.holds(tensor):
            self._arrived(result, "moved")
        self._known[result] = True
        self.seen += 1
        return result

    def _leave(self, result: Any, tensor: Any) -> Any:
        if not self.holds(tensor) or tensor.device.type not in HOST:
            return result
        if self.left is not None:
            self.left(tensor)
        if result is tensor:
            result = self._alias(tensor)
        if result is not tensor:
            self._known[result] = False
        return result

    def _alias(self, tensor: Any) -> Any:
        """Return another tensor over the same memory.

        A leaf with a gradient is returned itself, and so is what is of a class of its
        own: both would become something else.
        """
        kind = type(tensor)
        if kind is not self._torch.Tensor and kind.__name__ != "FakeTensor":
            return tensor
        with self._unseen():
            if not tensor.requires_grad:
                return tensor.detach()
            if tensor.is_leaf or not self._torch.is_grad_enabled():
                return tensor
            return tensor.view_as(tensor)

    def _watch_cpu(self, original: Function) -> Function:
        is_compiling = self._torch.compiler.is_compiling

        def cpu(tensor: Any, /, *arguments: Any, **named: Any) -> Any:
            result = original(tensor, *arguments, **named)
            if is_compiling() or self._moving or _is_ours_to_make(sys._getframe(1)):
                return result
            return self._try(self._leave, result, tensor)

        return cpu

    def _watch_module(self, original: Function) -> Function:
        is_compiling = self._torch.compiler.is_compiling

        def move(module: Any, /, *arguments: Any, **named: Any) -> Any:
            if is_compiling() or self._moving:
                return original(module, *arguments, **named)
            self._moving = True
            try:
                result = original(module, *arguments, **named)
            finally:
                self._moving = False
            goal = "host"
            if original.__name__ == "to":
                goal = self._session.attempt("float64", self._goal, arguments, named)
            if goal:
                tensors = (*module.parameters(), *module.buffers())
                self._session.attempt("float64", self._settle, tensors, goal)
            self._end()
            return result

        return move

    def _watch_load(self, original: Function) -> Function:
        """Follow what a file's tensors are told by ``map_location``."""

        def load(
            f: Any, map_location: Any = None, *arguments: Any, **named: Any
        ) -> Any:
            result = original(f, map_location, *arguments, **named)
            if isinstance(map_location, (str, self._torch.device)):
                self._session.attempt("float64", self._loaded, result, map_location)
            self._end()
            return result

        return load

    def _loaded(self, result: Any, wanted: Any) -> None:
        if not self.asked.is_goal(wanted):
            return
        torch = self._torch
        for one in torch.utils._pytree.tree_leaves(result):
            if isinstance(one, torch.nn.Module):
                self._settle((*one.parameters(), *one.buffers()), "steered")
            elif isinstance(one, torch.Tensor):
                self._settle((one,), "steered")

    def _settle(self, tensors: Iterable[Any], goal: str) -> None:
        for tensor in tensors:
            if tensor.device.type in HOST:
                arrives = goal == "steered" and not self.holds(tensor)
                self._known[tensor] = goal == "steered"
                self.seen += 1
                if arrives:
                    self._arrived(tensor, "moved")

    def _watch_maker(self, original: Function) -> Function:
        is_compiling = self._torch.compiler.is_compiling

        def make(*arguments: Any, **named: Any) -> Any:
            result = original(*arguments, **named)
            wanted = named.get("device")
            wanted = self.asked.default() if wanted is None else wanted
            if not is_compiling() and wanted is not None:
                here = sys._getframe(1)
                self._session.attempt("float64", self._made, result, wanted, here)
            self._end()
            return result

        return make

    def _made(self, result: Any, wanted: Any, frame: FrameType) -> None:
        if result.device.type in HOST and self.asked.is_made_by(wanted, frame):
            self._known[result] = True
            self.seen += 1
            self._arrived(result, "made")


def _is_ours_to_make(frame: FrameType) -> bool:
    """Tell whether the recorder itself, and no wrapper of the user's call, called."""
    found: FrameType | None = frame
    while found is not None:
        name = found.f_code.co_filename
        if not is_ours(name):
            return False
        if not name.endswith(_WRAPPERS):
            return True
        found = found.f_back
    return False


def unseen_graphs() -> list[str]:
    """Return why operators may be missing: a compiled graph hides its own.

    Source: ``torch._dynamo.utils.counters``, which torch's own tests read.
    """
    compiler: Any = sys.modules.get("torch._dynamo.utils")
    graphs = compiler.counters["stats"].get("unique_graphs", 0) if compiler else 0
    return [f"{graphs} compiled graphs were not looked into"] if graphs else []
