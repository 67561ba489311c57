"""Fingerprint what modules and operators give, to lay two runs side by side.

One entry is a place (step, module path, call, operator) and two numbers of its tensor,
both in float64: the Euclidean norm and the sum. Taken are the first 3 steps and every
step that is a power of two, in at most `MOST_ENTRIES` entries.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import os
from _thread import get_ident

from .evidence import Observer
from .jsontext import encode
from .transforms import unwrapped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from .operators import OperatorCall
    from .phases import Clock
    from .session import Session

FILE = "fingerprints.jsonl"
FORMAT = "reprobundle/fingerprints/1"
MOST_ENTRIES = 20_000
# Of a larger tensor every k-th element is read, beginning with the first.
MOST_ELEMENTS = 1 << 22
_FIRST_STEPS = 3
# Their results are memory as it lies: two equal runs find other numbers there.
_UNWRITTEN = ("aten.empty", "aten.new_empty")


def is_sampled(step: int) -> bool:
    """Tell whether a step, counted from 0, is one of those that are fingerprinted."""
    return step < _FIRST_STEPS or step & (step - 1) == 0


class Fingerprints(Observer):
    """Write one line for each input, module output, operator, gradient, parameter."""

    name = "fingerprints"
    sees_operators = True

    def __init__(self, session: Session, clock: Clock) -> None:
        self._session = session
        self._clock = clock
        self._thread = get_ident()
        self._lines: list[str] = []
        self._roots: list[Any] = []
        self._paths: dict[int, str] = {}
        self._open: list[tuple[str, int]] = []
        self._calls: dict[tuple[int, str], int] = {}
        self._operators: dict[tuple[str, int, str], int] = {}
        self._step = -1
        self._returned: set[tuple[int, str, int, int]] = set()
        self._complete = True
        self._hooks: list[Any] = []

    def start(self, torch: Any) -> None:
        """Attach to all module calls."""
        from torch.utils._python_dispatch import _disable_current_modes

        self._torch = torch
        self._unseen = _disable_current_modes
        hooks = torch.nn.modules.module
        self._hooks = [
            hooks.register_module_forward_pre_hook(self._before),
            hooks.register_module_forward_hook(self._after, always_call=True),
        ]

    def _is_ours(self) -> bool:
        compiling = self._torch.compiler.is_compiling()
        return not compiling and get_ident() == self._thread

    def _before(self, module: Any, inputs: Any) -> None:
        if not self._is_ours():
            return
        step = self._clock.steps
        if step != self._step:
            self._step = step
            self._calls, self._operators = {}, {}
        if not self._open and id(module) not in self._paths:
            self._add_root(module)
        path = self._paths.get(id(module), type(module).__name__)
        call = self._calls[step, path] = self._calls.get((step, path), -1) + 1
        self._session.attempt("fingerprints", self._note, "input", path, call, inputs)
        self._open.append((path, call))

    def _add_root(self, module: Any) -> None:
        # Kept alive: an address must not come to mean another module.
        number = len(self._roots)
        self._roots.append(module)
        for name, part in module.named_modules():
            path = f"{number}.{name}" if name else str(number)
            self._paths.setdefault(id(part), path)

    def _after(self, module: Any, inputs: Any, output: Any) -> None:
        if not self._is_ours() or not self._open:
            return
        path, call = self._open.pop()
        self._session.attempt("fingerprints", self._note, "module", path, call, output)
        self._session.attempt("fingerprints", self._watch_gradient, path, call, output)

    def _watch_gradient(self, path: str, call: int, output: Any) -> None:
        """Note the gradient that comes back to what a module gave."""
        step = self._clock.steps
        if not is_sampled(step) or not self._torch.is_grad_enabled():
            return
        for place, tensor in enumerate(self._tensors(output)):
            if tensor.requires_grad:
                tensor.register_hook(self._gradient_hook(path, call, place, step))

    def _gradient_hook(
        self, path: str, call: int, place: int, step: int
    ) -> Callable[[Any], None]:
        def hook(gradient: Any) -> None:
            # Whoever goes backward twice does so for another loss: the first counts.
            key = (step, path, call, place)
            if not self._torch.compiler.is_compiling() and key not in self._returned:
                self._returned.add(key)
                self._session.attempt(
                    "fingerprints",
                    lambda: self._note(
                        "returned", path, call, gradient, step=step, first=place
                    ),
                )

        return hook

    def operator(self, call: OperatorCall) -> None:
        """Note the result of an operator that a module called."""
        if not self._open or not self._is_ours() or not is_sampled(call.step):
            return
        path, number = self._open[-1]
        name = str(call.operator)
        if name.startswith(_UNWRITTEN):
            return
        key = (path, number, name)
        index = self._operators[key] = self._operators.get(key, -1) + 1
        self._note("operator", path, number, call.result, f"{name}#{index}")

    def step(self, number: int) -> None:
        """Note gradients and updated parameters."""
        if not is_sampled(number - 1):
            return
        for kind in ("gradient", "parameter"):
            for root, module in enumerate(self._roots):
                for name, parameter in module.named_parameters():
                    value = parameter.grad if kind == "gradient" else parameter
                    self._note(kind, f"{root}.{name}", 0, value, step=number - 1)

    def _note(
        self,
        kind: str,
        path: str,
        call: int,
        value: Any,
        operator: str = "",
        step: int | None = None,
        first: int = 0,
    ) -> None:
        step = self._clock.steps if step is None else step
        if not is_sampled(step):
            return
        for place, tensor in enumerate(self._tensors(value), first):
            if len(self._lines) >= MOST_ENTRIES:
                self._complete = False
                return
            norm, total = self._numbers(tensor)
            entry = {
                "kind": kind,
                "step": step,
                "path": path,
                "call": call,
                "operator": operator,
                "place": place,
                "dtype": str(tensor.dtype).removeprefix("torch."),
                "shape": tuple(tensor.shape),
                "stride": tuple(tensor.stride()),
                "norm": norm,
                "sum": total,
            }
            self._lines.append(encode(entry))

    def _tensors(self, value: Any) -> Iterator[Any]:
        if isinstance(value, self._torch.Tensor):
            value = unwrapped(self._torch, value)
            if value.layout == self._torch.strided and value.device.type != "meta":
                yield value
        elif isinstance(value, (list, tuple)):
            for part in value:
                yield from self._tensors(part)
        elif isinstance(value, dict):
            for part in value.values():
                yield from self._tensors(part)

    def _numbers(self, tensor: Any) -> tuple[float, float]:
        # Other observers must not take our own operators for the run's.
        with self._unseen(), self._torch.no_grad():
            flat = tensor.detach().reshape(-1)
            if flat.numel() > MOST_ELEMENTS:
                flat = flat[:: -(-flat.numel() // MOST_ELEMENTS)]
            if flat.is_complex():
                flat = self._torch.view_as_real(flat.resolve_conj()).reshape(-1)
            wide = flat.to("cpu").to(self._torch.float64)
            return float((wide * wide).sum()) ** 0.5, float(wide.sum())

    def finish(self) -> None:
        """Write the file; only the main process has one."""
        for hook in self._hooks:
            hook.remove()
        if self._session.kind != "main" or not self._lines:
            return
        header = encode({"format": FORMAT, "complete": self._complete})
        path = os.path.join(self._session.values, FILE)
        with open(path + ".part", "w", encoding="utf-8") as file:
            file.write("\n".join((header, *self._lines, "")))
        os.replace(path + ".part", path)
