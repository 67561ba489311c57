"""Fingerprint what a run begins with: weights, first inputs, first batches.

Two runs that begin with other numbers cannot be expected to end with equal ones, and
seeds alone do not tell: the same seed draws other numbers on another machine. Reading
a tensor changes nothing in it, draws nothing, and allocates nothing on its device.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import os
import sys
from _weakref import ReferenceType
from contextlib import ExitStack, contextmanager

from .generators import fingerprint
from .tensor_file import plain_torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .devices import Devices
    from .session import Session

    Field = dict[str, object]

_MOST_MODULES = 4
_MOST_BATCHES = 2
_MOST_TENSORS = 1000
_MOST_IN_A_BATCH = 16
_DEEPEST = 4
# Hashing runs at about 1 GB/s. Of larger tensors, and of all once this much was read,
# a part is read: 16 blocks, evenly spread.
_WHOLE_BYTES = 4 << 20
_ALL_BYTES = 32 << 20
_BLOCKS = 16
_BLOCK_ELEMENTS = 4096


def is_ours(mode: Any) -> bool:
    """Tell whether a dispatch mode is that of a traced pass."""
    return type(mode).__module__ == f"{__package__}.operators"


class Beginnings:
    """Report the tensors that a run begins with, each once.

    Args:
        session: Where events go.
        devices: Tells whether CUDA is in use.
    """

    def __init__(self, session: Session, devices: Devices) -> None:
        self._session = session
        self._devices = devices
        self._torch: Any = None
        self._read_bytes = 0
        # Not by id: another module may get the id of one that is gone.
        self._modules: list[ReferenceType[Any]] = []
        self._names: dict[str, int] = {}
        self._batches = 0
        self._inputs_seen = False
        self._stepped = False
        rank = os.environ.get("RANK", "")
        self._prefix = f"rank{rank}/" if rank.isdigit() else ""

    def use_torch(self, torch: Any) -> None:
        """Attach to a torch that was just imported."""
        self._torch = torch
        hooks: Any = sys.modules["torch.optim.optimizer"]
        handle: Any = None

        def before_first_step(optimizer: Any, arguments: Any, named: Any) -> None:
            if not torch.compiler.is_compiling() and not self._stepped:
                self._session.attempt("beginnings", self._see_step, optimizer)
                if handle is not None:
                    handle.remove()

        handle = hooks.register_optimizer_step_pre_hook(before_first_step)

    def see_call(self, module: Any, arguments: Any, named: dict[str, Any]) -> None:
        """Report the weights of a module before its first call, and the first inputs.

        Only of the first module with weights are the inputs reported: those of later
        ones (a loss, a second network) are results already.
        """
        if self._stepped or any(known() is module for known in self._modules):
            return
        if len(self._modules) >= _MOST_MODULES or not self._may_read():
            return
        with self._unseen():
            self._see_module(module, arguments, named)

    def _see_module(self, module: Any, arguments: Any, named: dict[str, Any]) -> None:
        weights = list(_weights(module))
        if not weights:
            return
        self._modules.append(ReferenceType(module))
        name = self._unique(_class_name(module))
        tensors = [self._field(f"{name}/{key}", "weight", w) for key, w in weights]
        if not self._inputs_seen:
            self._inputs_seen = True
            values: dict[Any, Any] = {**dict(enumerate(arguments)), **named}
            tensors += self._fields(f"{name}/input", "input", values)
        self._send(tensors)

    def _see_step(self, optimizer: Any) -> None:
        """Report the parameters of the first optimizer, if no module was seen."""
        self._stepped = True
        if self._modules or not self._may_read():
            return
        name = self._unique(type(optimizer).__name__)
        with self._unseen():
            tensors = [
                self._field(f"{name}/{group}.{place}", "weight", parameter)
                for group, content in enumerate(optimizer.param_groups)
                for place, parameter in enumerate(content["params"])
            ]
        self._send(tensors)

    def see_batch(self, batch: Any) -> None:
        """Report a first batch; further ones are not looked at."""
        if self.wants_batches and self._may_read():
            self._batches += 1
            with self._unseen():
                tensors = self._fields(self._unique("batch"), "batch", batch)
            self._send(tensors)

    @property
    def wants_batches(self) -> bool:
        """Tell whether another first batch is worth a look."""
        return self._batches < _MOST_BATCHES

    def is_disturbed(self) -> bool:
        """Tell whether reading a tensor now would be seen or is forbidden.

        A profiler or a dispatch mode of the user's would count our copies, a tracer
        would put them into the user's graph; inside a function transform there are no
        values to read; while CUDA captures a graph, no copy may be made.
        """
        return bool(self._torch._C._len_torch_dispatch_stack()) or self._is_followed()

    def _may_read(self) -> bool:
        """Tell whether a tensor can be read unseen; our own mode can look away."""
        stack = self._torch._C._len_torch_dispatch_stack
        get = self._torch._C._get_dispatch_stack_at
        foreign = any(not is_ours(get(place)) for place in range(stack()))
        return not (foreign or self._is_followed())

    def _is_followed(self) -> bool:
        torch = self._torch
        if torch.autograd._profiler_enabled() or torch.jit.is_tracing():
            return True
        if torch._C._functorch.peek_interpreter_stack() is not None:
            return True
        return self._devices.are_capturing

    @contextmanager
    def _unseen(self) -> Iterator[None]:
        """Keep function modes of the user's, and our own mode, from what is done."""
        with ExitStack() as stack:
            stack.enter_context(self._torch._C.DisableTorchFunction())
            if self._torch._C._len_torch_dispatch_stack():
                # It imports half of torch.fx: only where it is needed.
                from torch.utils._python_dispatch import _disable_current_modes

                stack.enter_context(_disable_current_modes())
            yield

    def _unique(self, name: str) -> str:
        count = self._names[name] = self._names.get(name, 0) + 1
        unique = name if count == 1 else f"{name}#{count}"
        return self._prefix + unique

    def _fields(self, name: str, kind: str, value: Any) -> list[Field]:
        found: list[Field] = []
        for key, tensor in _tensors(self._torch, value):
            if len(found) == _MOST_IN_A_BATCH:
                break
            found.append(self._field(f"{name}/{key}" if key else name, kind, tensor))
        return found

    def _send(self, tensors: list[Field]) -> None:
        if len(tensors) > _MOST_TENSORS:
            rest = tensors[_MOST_TENSORS]
            reason = f"only {_MOST_TENSORS} of {len(tensors)} tensors are reported"
            tensors = [*tensors[:_MOST_TENSORS], {**_unread(rest), "reason": reason}]
        if tensors:
            self._session.emit("beginning", tensors=tensors)

    def _field(self, name: str, kind: str, tensor: Any) -> Field:
        field: Field = {"name": name, "kind": kind, "dtype": "", "shape": []}
        try:
            field["dtype"] = str(tensor.dtype).removeprefix("torch.")
            field["shape"] = [int(extent) for extent in tensor.shape]
            field.update(self._content(tensor))
        except Exception as error:
            # Tensors on the meta device, not yet made, or kept elsewhere.
            words = " ".join(f"{type(error).__name__}: {error}".split())
            field["reason"] = f"its values could not be read: {words}"[:300]
        return field

    def _content(self, tensor: Any) -> Field:
        torch = self._torch
        with torch.no_grad():
            size = tensor.numel() * tensor.element_size()
            whole = size <= _WHOLE_BYTES and self._read_bytes + size <= _ALL_BYTES
            parts = [tensor] if whole else list(_sample(tensor.detach()))
            plain = [plain_torch(torch, part) for part in parts]
            self._read_bytes += sum(part.data.nbytes for part in plain)
            return {
                "fingerprint": fingerprint(*(part.data for part in plain)),
                "sampled": not whole,
                "l2": _norm(torch, parts),
            }


def _weights(module: Any) -> Iterator[tuple[str, Any]]:
    """Yield parameters and buffers by name, without a compiler's own prefix."""
    for pairs in (module.named_parameters(), module.named_buffers()):
        for name, tensor in pairs:
            if tensor is not None:
                yield name.replace("_orig_mod.", ""), tensor


def _class_name(module: Any) -> str:
    inner = getattr(module, "_orig_mod", module)
    original = getattr(inner, "original_name", None)
    return original if isinstance(original, str) else type(inner).__name__


def _sample(tensor: Any) -> Iterator[Any]:
    """Yield pieces of a large tensor that lie evenly spread.

    Slices of a contiguous tensor are views, so nothing is allocated on its device; of
    any other one, rows are copied one by one.
    """
    if tensor.is_contiguous():
        flat = tensor.view(-1)
        last = max(flat.numel() - _BLOCK_ELEMENTS, 0)
        for place in sorted({last * n // (_BLOCKS - 1) for n in range(_BLOCKS)}):
            yield flat[place : place + _BLOCK_ELEMENTS]
        return
    last = tensor.shape[0] - 1
    for row in sorted({last * n // (_BLOCKS - 1) for n in range(_BLOCKS)}):
        yield tensor[row].reshape(-1)[:_BLOCK_ELEMENTS]


def _norm(torch: Any, parts: list[Any]) -> float | None:
    """Return the Euclidean norm over all parts, in float64; None without one."""
    total = 0.0
    for part in parts:
        if part.is_complex() or part.dtype == torch.bool:
            return None
        if part.numel():
            values = part.detach().cpu().double().reshape(-1)
            total += float(torch.dot(values, values))
    return float(total**0.5)


def _unread(field: Field) -> Field:
    return {key: field[key] for key in ("name", "kind", "dtype", "shape")}


def _tensors(torch: Any, value: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield the tensors and arrays inside nested mappings and sequences, by place."""
    if isinstance(value, torch.Tensor):
        yield "", value
        return
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray):
        if value.dtype.kind in "biuf" and value.dtype.isnative:
            yield "", torch.from_numpy(numpy.ascontiguousarray(value))
        return
    if depth == _DEEPEST:
        return
    items: Any = ()
    if callable(getattr(value, "items", None)):
        items = value.items()
    elif isinstance(value, (list, tuple)):
        items = enumerate(value)
    for key, item in items:
        for inside, tensor in _tensors(torch, item, depth + 1):
            yield f"{key}.{inside}" if inside else str(key), tensor
