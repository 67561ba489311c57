"""Count the operators that a run on MPS would give the device, on a run on the CPU.

Only a forecast does this. It looks at each operator after it ran and changes nothing.
The memory is that of the steered tensors that operators saw: a lower bound of what a
device needs, for it has workspaces, caches and fragments besides.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import threading

from .callers import caller
from .evidence import Observer
from .steered import unseen_graphs
from .transforms import unwrapped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from .operators import OperatorCall
    from .phases import Clock
    from .session import Session

_MOST_ROWS = 4000
# What the kernels that a table of operators names are made for. float64 and complex128
# raise on MPS, and their places are told for themselves.
_TOLD = (
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
)


class SteeredCensus(Observer):
    """Count operators by phase, apart for those on steered tensors.

    Args:
        session: Where the events go.
        clock: Knows the open phase.
        holds: Tells whether a tensor is on the steered device.
        layer_of: Names what MPS is asked for in the place of an operator, if it is part
            of that.
    """

    name = "forecast"
    sees_operators = True

    def __init__(
        self,
        session: Session,
        clock: Clock,
        holds: Callable[[Any], bool],
        layer_of: Callable[[OperatorCall], str],
    ) -> None:
        self._session = session
        self._clock = clock
        self._holds = holds
        self._layer_of = layer_of
        self._torch: Any = None
        self._told: tuple[Any, ...] = ()
        self._rows: dict[tuple[str, str, bool, str, str], dict[str, Any]] = {}
        self._memory: dict[int, tuple[int, Any]] = {}
        self._live_bytes = 0
        self._peak_bytes = 0
        self._steps = 0
        self._lost = 0
        # A storage may be freed in any thread, and during an operator of this one.
        self._lock = threading.RLock()

    def start(self, torch: Any) -> None:
        """Remember torch."""
        self._torch = torch
        self._told = tuple(getattr(torch, name) for name in _TOLD)

    def operator(self, call: OperatorCall) -> None:
        """Count one operator, and the memory it meets."""
        given = [*self._tensors(call.arguments), *self._tensors(call.named.values())]
        made = list(self._tensors((call.result,)))
        on = [tensor for tensor in (*given, *made) if self._holds(tensor)]
        for tensor in on:
            self._keep(tensor)
        layer = self._layer_of(call) if on else ""
        unlike = next(filter(None, map(self._unlike, on)), "")
        key = (str(call.operator), call.phase, bool(on), layer, unlike)
        row = self._rows.get(key)
        if row is None:
            if len(self._rows) >= _MOST_ROWS:
                self._lost += 1
                return
            where = caller(self._session.project)
            row = {"count": 0, "steps": 0, "last": -1, "where": where}
            self._rows[key] = row
        row["count"] += 1
        if row["last"] != call.step:
            row["last"] = call.step
            row["steps"] += 1

    def _unlike(self, tensor: Any) -> str:
        """Name a layout or dtype that has kernels of its own, or none at all."""
        if tensor.is_nested:
            return "layout nested"
        for kind, value, usual in (
            ("layout", tensor.layout, (self._torch.strided,)),
            ("dtype", tensor.dtype, self._told),
        ):
            if value not in usual:
                return f"{kind} {str(value).removeprefix('torch.')}"
        return ""

    def _tensors(self, values: Any) -> Iterator[Any]:
        for value in values:
            if isinstance(value, self._torch.Tensor):
                yield value
            elif isinstance(value, (list, tuple)):
                yield from self._tensors(value)

    def _keep(self, tensor: Any) -> None:
        import weakref

        if tensor.layout != self._torch.strided:
            return
        storage = unwrapped(self._torch, tensor).untyped_storage()
        key = storage._cdata
        with self._lock:
            if key in self._memory:
                return
            size = storage.nbytes()
            gone = weakref.ref(storage, lambda _: self._forget(key))
            self._memory[key] = (size, gone)
            self._live_bytes += size
            self._peak_bytes = max(self._peak_bytes, self._live_bytes)

    def _forget(self, key: int) -> None:
        with self._lock:
            size, _ = self._memory.pop(key, (0, None))
            self._live_bytes -= size

    def step(self, number: int) -> None:
        """Remember how many steps were made."""
        self._steps = number

    def finish(self) -> None:
        """Send all rows and how far this saw."""
        if self._torch is None:
            return
        events: list[dict[str, object]] = [
            {
                "event": "steered_operator",
                "operator": operator,
                "phase": phase,
                "steered": steered,
                "layer": layer,
                "unlike": unlike,
                **{name: value for name, value in row.items() if name != "last"},
            }
            for (operator, phase, steered, layer, unlike), row in self._rows.items()
        ]
        events.append(
            {
                "event": "steered_end",
                "steps": self._steps,
                "peak_bytes": self._peak_bytes,
                "reason": self._reason(),
            }
        )
        self._session.emit_all(events)

    def _reason(self) -> str:
        reasons = [f"{self._lost} operators were not counted"] if self._lost else []
        return "; ".join([*reasons, *unseen_graphs()])
