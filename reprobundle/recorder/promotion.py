"""What happens to one operator of a run in float64 (`truth`).

Data are rounded to the dtype that the code states and then cast, and random draws are
made in that dtype, because a float64 draw takes other bits from the generator
(ATen/core/DistributionsHelper.h). Integers and booleans are left alone.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

from .device_draws import DRAWING, DRAWING_IN_PASSING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .truth import Truth

# Factories that draw; the written ones and the rest are those of a device.
_DRAWING_FACTORIES = ("rand", "randn", "rand_like", "randn_like", "normal", "bernoulli")
_NOMINAL = "_reprobundle_nominal"
_WIDER = {
    "float16": "float64",
    "bfloat16": "float64",
    "float32": "float64",
    "complex32": "complex128",
    "complex64": "complex128",
}
_SHORTEST = ("float8", "float4")


class Promotion:
    """What happens to one operator."""

    def __init__(self, torch: Any, truth: Truth) -> None:
        self._torch = torch
        self._truth = truth
        self._map = torch.utils._pytree.tree_map
        self._leaves = torch.utils._pytree.tree_leaves
        self._wider = {
            getattr(torch, short): getattr(torch, wide)
            for short, wide in _WIDER.items()
            if hasattr(torch, short)
        }
        self._draws = {
            *DRAWING,
            *(f"{name}.default" for name in DRAWING if "." not in name),
        }

    def run(self, operator: Any, arguments: Any, named: Any) -> Any:
        """Return what `operator` gives in float64."""
        truth, name = self._truth, str(operator).removeprefix("aten.")
        truth.operators += 1
        packet, _, overload = name.partition(".")
        plain = packet if overload == "default" else name
        if plain in DRAWING_IN_PASSING:
            truth.leave(name, "it draws while it computes")
        if plain in self._draws or packet in _DRAWING_FACTORIES:
            return self._drawn(operator, arguments, named)
        if packet == "lift_fresh":
            return self._lifted(arguments[0])
        if _is_view(operator):
            # A view of what comes from outside is no arithmetic: its bytes stay.
            self._check_bits(name, arguments)
            return operator(*arguments, **named)
        return self._computed(operator, name, arguments, named)

    def _computed(self, operator: Any, name: str, arguments: Any, named: Any) -> Any:
        written = self._written(operator, arguments, named)
        for tensor in written:
            if self._is_short(tensor):
                self._truth.leave(name, f"it writes to {_words(tensor)} from outside")
        kept = {id(tensor) for tensor in written}
        chosen = self._explicit(arguments, named)
        arguments, named = self._map(
            lambda value: self._operand(value, kept), (tuple(arguments), named)
        )
        result = operator(*arguments, **named)
        if not written and any(map(self._is_short, self._leaves(result))):
            result = self._by_default(operator, arguments, named)
        for tensor in self._leaves(result):
            self._check_result(name, tensor, kept)
            if chosen and isinstance(tensor, self._torch.Tensor):
                setattr(tensor, _NOMINAL, chosen)
        return result

    def _by_default(self, operator: Any, arguments: Any, named: Any) -> Any:
        """Run an operator again whose result has the default dtype, such as 1 / 2."""
        torch = self._torch
        default = torch.get_default_dtype()
        torch._C._set_default_dtype(torch.float64)
        try:
            return operator(*arguments, **named)
        finally:
            torch._C._set_default_dtype(default)

    def _drawn(self, operator: Any, arguments: Any, named: Any) -> Any:
        """Draw in the dtype of the reference and cast."""
        torch = self._torch
        self._truth.draws += 1
        pairs: dict[int, tuple[Any, Any]] = {}

        def nominal(value: Any) -> Any:
            if not self._is_wide(value):
                return value
            dtype = getattr(value, _NOMINAL, None) or self._shorter(value)
            if dtype == value.dtype:
                return value
            # The operator itself: a default device of the user's must not see it.
            drawn = torch.ops.aten.empty_strided.default(
                value.shape, value.stride(), dtype=dtype, device=value.device
            )
            pairs[id(value)] = (value, drawn.copy_(value))
            return pairs[id(value)][1]

        written = self._written(operator, arguments, named)
        there = {id(tensor) for tensor in written}
        here, here_named = self._map(nominal, (tuple(arguments), named))
        result = operator(*here, **here_named)
        back = {
            id(drawn): value.copy_(drawn)
            for key, (value, drawn) in pairs.items()
            if key in there
        }
        return self._map(lambda one: back.get(id(one), self.promoted(one)), result)

    def _lifted(self, tensor: Any) -> Any:
        """Return data that Python code states: rounded as it asks for, then cast."""
        if self._is_short(tensor):
            return self.promoted(tensor)
        fresh = self._torch.ops.aten.lift_fresh.default(tensor)
        if self._is_wide(fresh):
            setattr(fresh, _NOMINAL, fresh.dtype)
        return fresh

    def promoted(self, value: Any) -> Any:
        """Return a tensor of short floats as float64, and anything else as it is."""
        if not self._is_short(value):
            return value
        if type(value) is not self._torch.Tensor and not value.is_leaf:
            return value
        wide: Any = self._torch.ops.aten._to_copy.default(
            value.detach(), dtype=self._wider[value.dtype]
        )
        return wide

    def _operand(self, value: Any, kept: set[int]) -> Any:
        if id(value) in kept:
            return value
        if self._is_short(value):
            self._truth.entered += 1
            return self.promoted(value)
        if isinstance(value, self._torch.dtype):
            return self._wider.get(value, value)
        return value

    def _explicit(self, arguments: Any, named: Any) -> Any:
        """Return float64 or complex128 where the code itself asks for it."""
        for value in (*arguments, *named.values()):
            wide = (self._torch.float64, self._torch.complex128)
            if isinstance(value, self._torch.dtype) and value in wide:
                return value
        return None

    def _check_result(self, name: str, tensor: Any, kept: set[int]) -> None:
        if not isinstance(tensor, self._torch.Tensor):
            return
        if tensor.device.type not in ("cpu", "meta"):
            self._truth.leave(name, f"it runs on {tensor.device.type}")
        elif id(tensor) not in kept and (
            self._is_short(tensor) or str(tensor.dtype)[6:].startswith(_SHORTEST)
        ):
            self._truth.leave(name, f"it gives {_words(tensor)}")

    def _check_bits(self, name: str, arguments: Any) -> None:
        """Count bits of a promoted tensor that are read as another type."""
        reads = name == "view.dtype" and arguments[1] != self._torch.uint8
        if reads and self._is_wide(arguments[0]) and arguments[0].dtype != arguments[1]:
            self._truth.leave(name, "it reads the bits of a float")

    def _written(self, operator: Any, arguments: Any, named: Any) -> list[Any]:
        """Return the tensors that an operator writes to."""
        found: list[Any] = []
        for place, argument in enumerate(operator._schema.arguments):
            alias = argument.alias_info
            if alias is None or not alias.is_write:
                continue
            value = arguments[place] if place < len(arguments) else None
            found += self._leaves(named.get(argument.name, value))
        return [one for one in found if isinstance(one, self._torch.Tensor)]

    def _is_short(self, value: Any) -> bool:
        return isinstance(value, self._torch.Tensor) and value.dtype in self._wider

    def _is_wide(self, value: Any) -> bool:
        torch = self._torch
        wide = (torch.float64, torch.complex128)
        return isinstance(value, torch.Tensor) and value.dtype in wide

    def _shorter(self, value: Any) -> Any:
        torch = self._torch
        return torch.complex64 if value.is_complex() else torch.float32


def _is_view(operator: Any) -> bool:
    """Tell whether the results share the memory of an argument and nothing is written.

    `_to_copy` and the like share nothing; `detach`, `view` and `slice` do.
    """
    returns = operator._schema.returns
    return bool(returns) and all(
        one.alias_info is not None and not one.alias_info.is_write for one in returns
    )


def _words(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("torch.")
