"""Tell whether models were given nothing but random draws.

A reduced run that feeds ``torch.randn`` to a model shows its operators and says nothing
of real data. A tensor is a draw if an operator of torch drew it, or if it was made of
draws alone; what numpy or Python drew looks like data here.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

from .evidence import Observer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .operators import OperatorCall
    from .session import Session

# They draw an order, not data.
_ORDERS = ("aten.randperm",)


class DrawnInputs(Observer):
    """Count the tensors that outermost modules were called with."""

    name = "inputs"
    sees_operators = True

    def __init__(self, session: Session) -> None:
        self._session = session
        self._torch: Any = None
        self._seeded: Any = None
        self._draws: dict[int, Any] = {}
        self._depth = 0
        self._drawn = 0
        self._others = 0

    def start(self, torch: Any) -> None:
        """Attach to the calls of modules."""
        self._torch = torch
        self._seeded = torch.Tag.nondeterministic_seeded
        module = torch.nn.modules.module
        module.register_module_forward_pre_hook(self._enter)
        module.register_module_forward_hook(self._leave, always_call=True)

    def operator(self, call: OperatorCall) -> None:
        """Follow draws through an operator."""
        name = str(call.operator)
        given = [*self._tensors(call.arguments), *self._tensors(call.named.values())]
        seeded = self._seeded in call.operator.tags and not name.startswith(_ORDERS)
        base = name.split(".")[1] if name.startswith("aten.") else ""
        drawn = seeded and (not given or base.endswith(("_", "_like")))
        if not drawn:
            drawn = bool(given) and all(map(self._is_drawn, given))
        for tensor in self._tensors((call.result,)):
            self._note(tensor, drawn=drawn)

    def _note(self, tensor: Any, *, drawn: bool) -> None:
        import weakref

        if tensor.layout != self._torch.strided:
            return
        storage = tensor.untyped_storage()
        key = storage._cdata
        draws = self._draws
        if not drawn:
            # Data copied into the memory of a draw are data.
            draws.pop(key, None)
        elif key not in draws:
            draws[key] = weakref.ref(storage, lambda _: draws.pop(key, None))

    def _is_drawn(self, tensor: Any) -> bool:
        functorch = self._torch._C._functorch
        while functorch.is_functorch_wrapped_tensor(tensor):
            # vmap and grad give modules tensors that have no memory of their own.
            tensor = functorch.get_unwrapped(tensor)
        if tensor.layout != self._torch.strided:
            return False
        return tensor.untyped_storage()._cdata in self._draws

    def _enter(self, module: Any, arguments: Any) -> None:
        if self._torch.compiler.is_compiling():
            return
        self._depth += 1
        if self._depth == 1:
            self._session.attempt("inputs", self._count, arguments)

    def _leave(self, module: Any, arguments: Any, result: Any) -> None:
        if not self._torch.compiler.is_compiling():
            self._depth -= 1

    def _count(self, arguments: Any) -> None:
        for tensor in self._tensors(arguments):
            if self._is_drawn(tensor):
                self._drawn += 1
            else:
                self._others += 1

    def _tensors(self, values: Any) -> Iterator[Any]:
        for value in values:
            if isinstance(value, self._torch.Tensor):
                yield value
            elif isinstance(value, (list, tuple)):
                yield from self._tensors(value)

    def finish(self) -> None:
        """Send both counts."""
        if self._drawn or self._others:
            self._session.emit("steered_inputs", drawn=self._drawn, others=self._others)
