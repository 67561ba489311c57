"""Find where data would pass between the device and the CPU, and where both mix.

Only a forecast does this. Copies that were asked for, reads of single values and inputs
that start on the CPU are told by the calls that make them; operators with tensors of
both devices by their arguments. A tensor that an operator's own call made, such as the
range inside ``one_hot``, is on the operator's device.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

from .call_sources import reads_value
from .callers import caller, calling_frame
from .evidence import Observer
from .replace import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from .operators import OperatorCall
    from .phases import Clock
    from .session import Session
    from .steered import Steered

    Function = Callable[..., Any]

_READS = ("aten._local_scalar_dense.default", "aten.equal.default")
# They take a tensor of the CPU beside those of the device: lengths, positions, a copy's
# source, and what compares types alone. Source: ATen/native/PackedSequence.cpp,
# TensorAdvancedIndexing.cpp, RNN.cpp.
_MAY_MIX = frozenset(
    {
        "_ctc_loss",
        "_ctc_loss_backward",
        "_has_compatible_shallow_copy_type",
        "_pack_padded_sequence",
        "_pack_padded_sequence_backward",
        "_to_copy",
        "copy",
        "copy_",
        "gru",
        "is_same_size",
        "lstm",
        "set_",
    }
)
_INDEXED = frozenset({"index", "index_put", "index_put_", "_index_put_impl_"})
_MOST_PLACES = 1000


class SteeredCrossings(Observer):
    """Count what passes between the devices, by place.

    Args:
        session: Where the events go.
        clock: Knows the step and the open phase.
        steered: Tells which tensors are on the device.

    Attributes:
        on_mixed: In a strict forecast, called where MPS would refuse both devices.
    """

    on_mixed: Callable[[str], None] | None = None

    name = "crossings"
    sees_operators = True

    def __init__(self, session: Session, clock: Clock, steered: Steered) -> None:
        self._session = session
        self._clock = clock
        self._steered = steered
        self._torch: Any = None
        self._rows: dict[tuple[str, str, str, str], dict[str, int]] = {}
        self._born: dict[int, tuple[Any, object]] = {}
        self._lost = 0

    def start(self, torch: Any) -> None:
        """Attach to what copies without an operator."""
        self._torch = torch
        self._steered.left = self._left
        replace(torch.Tensor, "numpy", self._watch_numpy)
        replace(torch.Tensor, "tolist", self._watch_list)

    def arrived(self, tensor: Any, how: str) -> None:
        """Note a tensor that came to the device."""
        if how == "moved":
            self._add("to-device", "", tensor)

    def _left(self, tensor: Any) -> None:
        self._add("to-cpu", "", tensor)

    def operator(self, call: OperatorCall) -> None:
        """Look at the arguments of an operator that just ran."""
        name = str(call.operator)
        given = [*self._tensors(call.arguments), *self._tensors(call.named.values())]
        holds = self._steered.holds
        on = [tensor for tensor in given if holds(tensor)]
        if name in _READS and on:
            # An operator of the CPU may read values by itself, as one_hot does.
            asked = reads_value(calling_frame())
            self._add("scalar-read", "" if asked else "inside", on[0])
        elif name == "aten.copy_.default" and len(given) > 1:
            self._copied(given[0], given[1])
        elif on:
            self._mixed(call, name, given)
        else:
            self._note_born(call)

    def _copied(self, target: Any, source: Any) -> None:
        goes, comes = self._steered.holds(target), self._steered.holds(source)
        if goes == comes or not source.dim():
            return
        here = source if goes else target
        if self._birth(here) == _place_of_call():
            # An operator's own call made one of both, as padding does.
            self._steered.adopt(here)
        else:
            self._add("to-device" if goes else "to-cpu", "aten.copy_.default", source)

    def _mixed(self, call: OperatorCall, name: str, given: list[Any]) -> None:
        base = name.split(".")[1] if name.startswith("aten.") else ""
        if base in _MAY_MIX:
            return
        if base in _INDEXED:
            # Positions may be on either; what is indexed may not be on the CPU.
            given = given[:1]
        holds = self._steered.holds
        here = _place_of_call()
        for tensor in given:
            if tensor.dim() == 0 or tensor.numel() == 0 or holds(tensor):
                continue
            if self._birth(tensor) == here:
                self._steered.adopt(tensor)
            else:
                self._refused(name, tensor)

    def _refused(self, operator: str, tensor: Any) -> None:
        self._add("mixed-devices", operator, tensor)
        if self.on_mixed is not None:
            self.on_mixed(operator)

    def _note_born(self, call: OperatorCall) -> None:
        """Remember from which call a tensor of the CPU came."""
        here = _place_of_call()
        for tensor in self._tensors((call.result,)):
            if tensor.layout == self._torch.strided:
                self._keep_birth(tensor.untyped_storage(), here)

    def _keep_birth(self, storage: Any, here: object) -> None:
        import weakref

        key, born = storage._cdata, self._born
        if key not in born:
            gone = weakref.ref(storage, lambda _: born.pop(key, None))
            born[key] = (here, gone)

    def _birth(self, tensor: Any) -> object:
        if tensor.layout != self._torch.strided:
            return None
        found = self._born.get(tensor.untyped_storage()._cdata)
        return found[0] if found else None

    def _watch_numpy(self, original: Function) -> Function:
        def numpy(tensor: Any, *arguments: Any, **named: Any) -> Any:
            if not getattr(self._torch.compiler, "is_compiling", bool)():
                self._session.attempt("crossings", self._array, tensor)
            if self._steered.after is not None:
                self._steered.after()
            return original(tensor, *arguments, **named)

        return numpy

    def _array(self, tensor: Any) -> None:
        if self._steered.holds(tensor):
            self._refused("numpy()", tensor)

    def _watch_list(self, original: Function) -> Function:
        def tolist(tensor: Any) -> Any:
            self._session.attempt("crossings", self._listed, tensor)
            return original(tensor)

        return tolist

    def _listed(self, tensor: Any) -> None:
        if self._steered.holds(tensor):
            self._add("to-cpu", "tolist()", tensor)

    def _add(self, kind: str, operator: str, tensor: Any) -> None:
        key = (kind, operator, self._place(), self._clock.open_phase)
        row = self._rows.get(key)
        if row is None:
            if len(self._rows) >= _MOST_PLACES:
                self._lost += 1
                return
            row = self._rows[key] = {"count": 0, "bytes": 0, "steps": 0, "last": -1}
        row["count"] += 1
        row["bytes"] += tensor.numel() * tensor.element_size()
        if row["last"] != self._clock.steps:
            row["last"] = self._clock.steps
            row["steps"] += 1

    def _place(self) -> str:
        where = caller(self._session.project)
        return "" if "/site-packages/" in where else where

    def _tensors(self, values: Any) -> Iterator[Any]:
        for value in values:
            if isinstance(value, self._torch.Tensor):
                yield value
            elif isinstance(value, (list, tuple)):
                yield from self._tensors(value)

    def finish(self) -> None:
        """Send all places."""
        if self._lost:
            message = f"{self._lost} crossings between devices were not kept"
            self._session.trouble("crossings", message)
        self._session.emit_all(
            [
                {
                    "event": "steered_crossing",
                    "kind": kind,
                    "operator": operator,
                    "where": where,
                    "phase": phase,
                    "count": row["count"],
                    "bytes": row["bytes"],
                    "steps": row["steps"],
                }
                for (kind, operator, where, phase), row in self._rows.items()
            ]
        )


def _place_of_call() -> object:
    """Return which call of which frame is being made below this package."""
    frame = calling_frame()
    return (id(frame), frame.f_code, frame.f_lasti) if frame is not None else None
