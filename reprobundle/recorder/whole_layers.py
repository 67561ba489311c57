"""Know which products of matrices are parts of a layer that MPS has one operator for.

The CPU takes ``linear`` apart into ``mm`` and ``addmm`` above the place where operators
can be seen; a torch for macOS asks MPS for ``linear`` and ``linear_backward``
(``native_functions.yaml``: ``MPS: _mps_linear``, and RNN.cpp, whose cells call it). So
the calls are watched by name, and the nodes that they add to the graph of autograd by
number: what runs for such a node in a backward pass is part of the layer's own.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import os
import sys
import threading
from bisect import bisect_right

from .callers import is_ours
from .evidence import Observer
from .replace import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    from .operators import OperatorCall

    Function = Callable[..., Any]

_LINEAR = ("linear", "linear_backward")
_LSTM = ("_lstm_mps", "lstm_mps_backward")
# Functions of torch._VF → what MPS is asked for, forward and backward.
_RECURRENT = {
    "lstm": _LSTM,
    **dict.fromkeys(
        (
            "gru",
            "rnn_relu",
            "rnn_tanh",
            "lstm_cell",
            "gru_cell",
            "rnn_relu_cell",
            "rnn_tanh_cell",
        ),
        _LINEAR,
    ),
}
# Of torch/autograd/graph.py: what lies above it called the backward pass.
_ENGINE = "_engine_run_backward"
_PRODUCTS = frozenset({"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm"})
# Graphs of older steps are gone; their numbers are let go.
_MOST_CALLS = 200_000


class WholeLayers(Observer):
    """Follow the calls of layers; nothing is counted and nothing sent."""

    name = "whole layers"

    def __init__(self) -> None:
        self._torch: Any = None
        self._folder = self._checkpoint = ""
        self._now = threading.local()
        # Nodes numbered from `_first` to before `_end` were made by one call each.
        self._first: list[int] = []
        self._end: list[int] = []
        self._backward: list[str] = []

    def start(self, torch: Any) -> None:
        """Put wrappers in the places of the functions that layers call."""
        if not hasattr(torch.autograd, "_get_sequence_nr"):
            return
        self._torch = torch
        self._folder = os.path.join(os.path.dirname(torch.__file__), "")
        self._checkpoint = os.path.join(self._folder, "utils", "checkpoint.py")
        self._put(torch.nn.functional, "linear", _LINEAR)
        for name, parts in _RECURRENT.items():
            self._put(torch._VF, name, parts)

    def _put(self, owner: Any, name: str, parts: tuple[str, str]) -> None:
        if replace(owner, name, self._watch(parts)) is None:
            return
        # TorchScript knows its own functions by their identity.
        register = getattr(self._torch.jit._builtins, "_register_builtin", None)
        if register is not None:
            register(getattr(owner, name), f"aten::{name}")

    def _watch(self, parts: tuple[str, str]) -> Callable[[Function], Function]:
        is_compiling = self._torch.compiler.is_compiling
        number = self._torch.autograd._get_sequence_nr
        tensor = self._torch.Tensor

        def make(original: Function) -> Function:
            def layer(*arguments: Any, **named: Any) -> Any:
                if is_compiling():
                    return original(*arguments, **named)
                before, first = getattr(self._now, "layer", ""), number()
                # Packed sequences have no kernel for all of the layer: their batch
                # sizes stand in the place of the state.
                packed = len(arguments) > 1 and isinstance(arguments[1], tensor)
                asked = _LINEAR if parts == _LSTM and packed else parts
                self._now.layer = before or asked[0]
                try:
                    return original(*arguments, **named)
                finally:
                    self._now.layer = before
                    if not before:
                        self._keep(first, number(), asked[1])

            return layer

        return make

    def _keep(self, first: int, end: int, backward: str) -> None:
        # Each thread counts for itself; those of one are kept in their order.
        if first == end or (self._end and first < self._end[-1]):
            return
        if len(self._first) >= _MOST_CALLS:
            for kept in (self._first, self._end, self._backward):
                del kept[: _MOST_CALLS // 2]
        self._first.append(first)
        self._end.append(end)
        self._backward.append(backward)

    def layer_of(self, call: OperatorCall) -> str:
        """Return what MPS is asked for in the place of a product of matrices.

        Args:
            call: That just ran in this thread.

        Returns:
            Such as ``linear``; empty for other operators, and for a product that is
            not part of such a layer.
        """
        if self._torch is None or call.operator._schema.name not in _PRODUCTS:
            return ""
        layer: str = getattr(self._now, "layer", "")
        if layer:
            return layer
        node = self._torch._C._current_autograd_node()
        if node is None or not self._runs_itself():
            return ""
        number = node._sequence_nr()
        place = bisect_right(self._first, number) - 1
        if place >= 0 and number < self._end[place]:
            return self._backward[place]
        return ""

    def _runs_itself(self) -> bool:
        """Tell whether a node runs its operators, and not Python that it called.

        A checkpoint runs the forward pass again for the node that wants its tensors,
        and hooks run in nodes as well.
        """
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_name != _ENGINE:
            name = frame.f_code.co_filename
            is_torchs = name.startswith(self._folder) and name != self._checkpoint
            if not (is_torchs or is_ours(name)):
                return False
            frame = frame.f_back
        return True
