"""Run a command without its values: every tensor has shape and dtype and no memory.

torch's fake tensors (``torch._subclasses.fake_tensor``) stand for all tensors from the
import of torch on, so a model that does not fit here goes through the same operators.
What needs values gets invented ones (`Invented`); what cannot do without memory is
replaced here: arrays, lists, saved files, worker processes.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import os

from .evidence import Observer
from .invented import Invented
from .replace import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .session import Session

    Function = Callable[..., Any]


class Dry(Observer):
    """Take the values out of everything that follows the import of torch."""

    name = "dry run"

    def __init__(self, session: Session) -> None:
        self._session = session
        self._torch: Any = None
        self._invented: Any = None
        self._saved: dict[str, Any] = {}
        self._modes: list[Any] = []

    def start(self, torch: Any) -> None:
        """Enter the modes, and replace what cannot do without memory."""
        from torch._subclasses.fake_tensor import FakeTensorMode
        from torch.utils._python_dispatch import TorchDispatchMode

        self._torch = torch
        self._invented = Invented(torch, self._session.project)
        fake = FakeTensorMode(allow_non_fake_inputs=True)
        for mode in (fake, _answering(TorchDispatchMode, self._invented)()):
            mode.__enter__()
            self._modes.append(mode)
        replace(torch.Tensor, "numpy", self._as_array)
        replace(torch.Tensor, "tolist", self._as_list)
        replace(torch.Tensor, "__array__", self._as_array)
        replace(torch, "save", self._keep_saved, torch.serialization)
        replace(torch, "load", self._give_saved, torch.serialization)
        replace(torch.nn.Module, "_apply", self._convert)
        replace(torch.utils.data.DataLoader, "__init__", self._load_here)

    def finish(self) -> None:
        """Say what was invented, and where."""
        if self._invented is None:
            return
        self._session.emit_all(
            [
                {"event": "steered_invented", "where": where, "how": how, "count": n}
                for (where, how), n in self._invented.places.items()
            ]
        )
        # One mode that stays when the interpreter goes down is freed too late.
        for mode in reversed(self._modes):
            self._session.attempt("dry run", mode.__exit__, None, None, None)
        self._modes = []

    def _as_array(self, original: Function) -> Function:
        def numpy(tensor: Any, *arguments: Any, **named: Any) -> Any:
            import numpy as np

            self._invented.note("array")
            name = str(tensor.dtype).removeprefix("torch.")
            shape = tuple(tensor.shape)
            return np.zeros(shape, dtype=getattr(np, name, np.float32))

        return numpy

    def _as_list(self, original: Function) -> Function:
        def tolist(tensor: Any) -> Any:
            self._invented.note("list")
            dtype = tensor.dtype
            one: Any = 0.0 if dtype.is_floating_point else 0
            one = False if dtype == self._torch.bool else one
            return _nested(tuple(tensor.shape), one)

        return tolist

    def _keep_saved(self, original: Function) -> Function:
        def save(obj: Any, f: Any, *arguments: Any, **named: Any) -> None:
            if isinstance(f, (str, os.PathLike)):
                # A script may look whether the file is there.
                open(f, "wb").close()
                self._saved[os.path.abspath(os.fspath(f))] = obj

        return save

    def _give_saved(self, original: Function) -> Function:
        def load(f: Any, *arguments: Any, **named: Any) -> Any:
            if isinstance(f, (str, os.PathLike)):
                place = os.path.abspath(os.fspath(f))
                if place in self._saved:
                    return self._saved[place]
            return original(f, *arguments, **named)

        return load

    def _convert(self, original: Function) -> Function:
        """Return ``Module._apply`` without the swap that fake tensors refuse."""
        parameter = self._torch.nn.Parameter
        no_grad = self._torch.no_grad

        def _apply(module: Any, fn: Function, recurse: bool = True) -> Any:
            for child in module.children() if recurse else ():
                child._apply(fn)
            with no_grad():
                for name, one in module._parameters.items():
                    new = one if one is None else fn(one)
                    if new is not one:
                        module._parameters[name] = parameter(new, one.requires_grad)
                for name, one in module._buffers.items():
                    if one is not None:
                        module._buffers[name] = fn(one)
            return module

        return _apply

    def _load_here(self, original: Function) -> Function:
        """Return a constructor that loads in this process: workers send memory."""

        def load_here(loader: Any, *arguments: Any, **named: Any) -> None:
            import inspect

            given = inspect.signature(original).bind(loader, *arguments, **named)
            if given.arguments.get("num_workers"):
                for name in (
                    "num_workers",
                    "prefetch_factor",
                    "persistent_workers",
                    "multiprocessing_context",
                    "timeout",
                ):
                    given.arguments.pop(name, None)
            original(*given.args, **given.kwargs)

        return load_here


def _nested(shape: tuple[int, ...], one: Any) -> Any:
    if not shape:
        return one
    return [_nested(shape[1:], one) for _ in range(shape[0])]


def _answering(base: Any, invented: Invented) -> Any:
    """Return a dispatch mode that answers for what needs values.

    torch is imported by the user's code, so its classes exist only now.
    """

    class Answering(base):  # type: ignore[misc]
        """Answer, or let the operator run on fake tensors."""

        @classmethod
        def ignore_compile_internals(cls) -> bool:
            return True

        supports_higher_order_operators = True

        def __torch_dispatch__(
            self, operator: Any, types: Any, arguments: Any = (), named: Any = None
        ) -> Any:
            named = named or {}
            answer = invented.answer(operator)
            if answer is not None:
                return answer(*arguments, **named)
            return operator(*invented.by_positions(operator, arguments), **named)

    return Answering
