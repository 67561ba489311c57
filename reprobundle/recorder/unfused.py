"""Take apart what draws inside one kernel: attention, recurrent layers, compiled code.

A kernel that computes and drops at once (flash attention, cuDNN's and Metal's LSTM)
has no draw that could be made elsewhere. Torch has an unfused path for attention; for
recurrent layers the loop over the layers is the one the CPU makes. Compiled code
draws by a generator of its own and is refused.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import os

from .callers import caller
from .replace import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Function = Callable[..., Any]

_RECURRENT = ("lstm", "gru", "rnn_tanh", "rnn_relu")
_ATTENTION_KERNELS = ("flash", "mem_efficient", "cudnn")


def install(torch: Any, project: str) -> None:
    """Replace the functions that would draw inside a kernel.

    Args:
        torch: The module.
        project: The user's folder, to name the call that is refused.
    """
    functional = torch.nn.functional
    for owner in (functional, torch._C._nn):
        replace(owner, "scaled_dot_product_attention", _unfused_attention(torch))
    for name in _RECURRENT:
        layered = _layer_by_layer(torch, getattr(torch._C._VariableFunctions, name))
        setattr(torch._VF, name, layered)
        setattr(torch, name, layered)
    replace(torch, "compile", _refusing(torch, project))


def _unfused_attention(torch: Any) -> Callable[[Function], Function]:
    """Return a maker of an attention that drops outside the fused kernels."""
    backends = torch.backends.cuda

    def make(original: Function) -> Function:
        def attention(*arguments: Any, **named: Any) -> Any:
            drops = named.get("dropout_p", arguments[4] if len(arguments) > 4 else 0.0)
            query = named.get("query", arguments[0] if arguments else None)
            if not drops or query is None or query.device.type == "cpu":
                return original(*arguments, **named)
            kernels = [
                name
                for name in _ATTENTION_KERNELS
                if getattr(backends, f"{name}_sdp_enabled", bool)()
            ]
            math = backends.math_sdp_enabled()
            try:
                backends.enable_math_sdp(True)
                _switch(backends, kernels, False)
                return original(*arguments, **named)
            finally:
                _switch(backends, kernels, True)
                backends.enable_math_sdp(math)

        return attention

    return make


def _switch(backends: Any, kernels: list[str], on: bool) -> None:
    for name in kernels:
        getattr(backends, f"enable_{name}_sdp")(on)


def _layer_by_layer(torch: Any, original: Function) -> Function:
    """Return a recurrent function that drops between layers it calls one by one.

    Two forms have to be served: ``(input, hx, weights, biases, layers, dropout,
    train, bidirectional, batch_first)``, and ``(data, batch_sizes, hx, weights, …)``
    without the last argument for packed sequences.
    """

    def recurrent(*arguments: Any, **named: Any) -> Any:
        packed = len(arguments) > 3 and isinstance(arguments[3], (list, tuple))
        first = 3 if packed else 2
        if named or len(arguments) < first + 6:
            return original(*arguments, **named)
        _, layers, dropout, train = arguments[first + 1 : first + 5]
        if not (dropout and train and layers > 1) or arguments[0].device.type == "cpu":
            return original(*arguments)
        return _dropping(torch, original, arguments, first)

    return recurrent


def _dropping(
    torch: Any, original: Function, arguments: tuple[Any, ...], first: int
) -> Any:
    """Call `original` for one layer at a time and drop in between.

    Args:
        torch: The module.
        original: The recurrent function.
        arguments: All of them.
        first: Position of the weights.
    """
    weights, biases, layers, dropout, train, bidirectional = arguments[
        first : first + 6
    ]
    value, sizes = arguments[0], arguments[1 : first - 1]
    batch_first = first == 2 and arguments[first + 6]
    if batch_first:
        value = value.transpose(0, 1)
    directions = 2 if bidirectional else 1
    per_layer = len(weights) // layers
    states, joined = arguments[first - 1], []
    several = isinstance(states, (list, tuple))
    tail = () if first == 3 else (False,)
    for layer in range(layers):
        own = slice(layer * directions, (layer + 1) * directions)
        start = [state[own] for state in states] if several else states[own]
        part = list(weights[layer * per_layer : (layer + 1) * per_layer])
        rest = (part, biases, 1, 0.0, train, bidirectional, *tail)
        value, *ends = original(value, *sizes, start, *rest)
        joined.append(ends)
        if layer < layers - 1:
            value = torch.dropout(value, dropout, True)
    if batch_first:
        value = value.transpose(0, 1)
    return (value, *(torch.cat(parts) for parts in zip(*joined, strict=True)))


def _refusing(torch: Any, project: str) -> Callable[[Function], Function]:
    """Return a maker of a ``torch.compile`` whose result refuses to be called."""

    def make(original: Function) -> Function:
        def compile(model: Any = None, **options: Any) -> Any:
            if model is None:
                return lambda function: compile(function, **options)
            off = os.environ.get("TORCH_COMPILE_DISABLE") == "1"
            if off or options.get("disable"):
                return original(model, **options)
            refuse = _refusal(caller(project))
            compiled = original(model, **options)
            if isinstance(model, torch.nn.Module):
                compiled.forward = refuse
                return compiled
            refuse.__wrapped__ = compiled  # type: ignore[attr-defined]
            return refuse

        return compile

    return make


def _refusal(place: str) -> Function:
    def refuse(*_: Any, **__: Any) -> Any:
        message = (
            f"compiled code draws random numbers by itself, so --rng portable and "
            f"--rng recorded refuse torch.compile ({place}): set "
            f"TORCH_COMPILE_DISABLE=1 for both runs, or use --rng native"
        )
        raise RuntimeError(message)

    return refuse
