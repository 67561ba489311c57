"""Count the operators that a run gives an accelerator, and what crosses to the CPU.

The census cannot see a fallback, only what was asked of the device; whoever has the
table of the running torch version sees from it what the device could not do. The three
ways in which the CPU takes part are told apart: a fallback is in the table, an explicit
copy or scalar read and an input that starts on the CPU are transfers with their place.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import threading

from .callers import caller
from .evidence import Observer
from .lookups import lookups

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .operators import OperatorCall
    from .session import Session

_HOST = ("cpu", "meta")
_COPIES = ("aten._to_copy.default", "aten.copy_.default")
_SCALAR = "aten._local_scalar_dense.default"
_MOST_ROWS = 4000
# Threads of these serve a notebook, a progress bar or a debugger, and compute nothing.
_SERVICES = ("ipykernel", "IPython", "zmq", "tornado", "tqdm", "debugpy", "pydevd")


class Census(Observer):
    """Count operators by device and phase, transfers and lookups by place."""

    name = "census"
    sees_operators = True

    def __init__(self, session: Session) -> None:
        self._session = session
        self._torch: Any = None
        self._rows: dict[tuple[str, str, str], dict[str, Any]] = {}
        self._transfers: dict[tuple[str, str, bool], list[int]] = {}
        self._ranges: dict[tuple[str, str], dict[str, int]] = {}
        self._steps = 0
        self._lost = 0
        self._is_used = False
        self._older: list[threading.Thread] = []

    def start(self, torch: Any) -> None:
        """Remember torch, and the older threads: no mode lies on them."""
        self._torch = torch
        self._older = [
            thread
            for thread in threading.enumerate()
            if thread is not threading.current_thread() and not _is_service(thread)
        ]

    def continue_in_fork(self) -> bool:
        """Count anew: a fork has one thread, and reports for itself."""
        self._rows, self._transfers, self._ranges = {}, {}, {}
        self._steps = self._lost = 0
        self._is_used, self._older = False, []
        return True

    def operator(self, call: OperatorCall) -> None:
        """Count one operator."""
        name = str(call.operator)
        given = [*self._tensors(call.arguments), *self._tensors(call.named.values())]
        made = list(self._tensors((call.result,)))
        devices = {tensor.device.type for tensor in (*given, *made)}
        for device in devices:
            if device not in _HOST:
                self._add(name, device, call, given, made)
        if devices == {"cpu"} and self._is_of_a_model(call, given):
            self._add(name, "cpu", call, given, made)
        if name in _COPIES or name == _SCALAR:
            self._transfer(name, call, given, made)
        elif devices - set(_HOST):
            self._lookup(name, call)

    def _is_of_a_model(self, call: OperatorCall, given: list[Any]) -> bool:
        """Tell whether the CPU does a model's work.

        That is its weights in a forward pass, or a backward pass. Single numbers are
        none: scales and counters may stay there.
        """
        wanted = {"forward": self._torch.nn.Parameter, "backward": self._torch.Tensor}
        kind = wanted.get(call.phase)
        return kind is not None and any(
            isinstance(one, kind) and one.is_floating_point() and one.numel() > 1
            for one in given
        )

    def refused(self, call: OperatorCall) -> None:
        """Count an operator that a device refused: the script may compute elsewhere."""
        self._raised(call, "refused")

    def starved(self, call: OperatorCall) -> None:
        """Count an operator that a device had no memory for: likewise."""
        self._raised(call, "out_of_memory")

    def _raised(self, call: OperatorCall, how: str) -> None:
        given = [*self._tensors(call.arguments), *self._tensors(call.named.values())]
        devices = {tensor.device.type for tensor in given}
        # What makes a tensor is given none.
        devices.add(getattr(call.named.get("device"), "type", "cpu"))
        for device in devices - set(_HOST):
            row = self._add(str(call.operator), device, call, given, [])
            if row is not None:
                row[how] = row.get(how, 0) + 1

    def _tensors(self, values: Any) -> Iterator[Any]:
        for value in values:
            if isinstance(value, self._torch.Tensor):
                yield value
            elif isinstance(value, (list, tuple)):
                yield from self._tensors(value)

    def _add(
        self, name: str, device: str, call: OperatorCall, given: Any, made: Any
    ) -> dict[str, Any] | None:
        key = (name, device, call.phase)
        row = self._rows.get(key)
        if row is None:
            if len(self._rows) >= _MOST_ROWS:
                self._lost += 1
                return None
            if device not in _HOST and not self._is_used:
                self._begin()
            where = self._place()
            row = {"count": 0, "bytes": 0, "steps": 0, "last": -1, "where": where}
            self._rows[key] = row
        row["count"] += 1
        row["bytes"] += sum(
            tensor.numel() * tensor.element_size()
            for tensor in (*given, *made)
            if tensor.device.type == device
        )
        if row["last"] != call.step:
            row["last"] = call.step
            row["steps"] += 1
        return row

    def _begin(self) -> None:
        """Say that this process owes a report: it may be killed before its end."""
        self._is_used = True
        self._older = [thread for thread in self._older if thread.is_alive()]
        self._session.emit(
            "witness",
            name="census",
            looked=False,
            reason="a process that used the device did not report its end",
        )

    def _transfer(self, name: str, call: OperatorCall, given: Any, made: Any) -> None:
        source = given[-1] if given else None
        if source is None:
            return
        start = source.device.type
        goal = "cpu" if name == _SCALAR else made[0].device.type
        if start == goal or (start in _HOST and goal in _HOST):
            return
        kind = "to-device" if start in _HOST else "from-device"
        kind = "scalar-read" if name == _SCALAR else kind
        late = bool(call.named.get("non_blocking")) or (
            name == "aten.copy_.default"
            and len(call.arguments) > 2
            and bool(call.arguments[2])
        )
        key = (kind, self._place(), late)
        counts = self._transfers.setdefault(key, [0, 0])
        counts[0] += 1
        counts[1] += source.numel() * source.element_size()

    def _lookup(self, name: str, call: OperatorCall) -> None:
        for found in lookups(call.operator, call.arguments, call.named):
            if found.indices.numel() == 0:
                continue
            low, high = int(found.indices.min()), int(found.indices.max())
            if low >= found.lowest and high < found.size:
                continue
            new = {"low": low, "high": high, "size": found.size}
            seen = self._ranges.setdefault((name, self._place()), new)
            seen["low"], seen["high"] = min(seen["low"], low), max(seen["high"], high)

    def _place(self) -> str:
        """Return the user's line; a backward pass in a device's thread has none."""
        where = caller(self._session.project)
        return "" if "/site-packages/" in where else where

    def step(self, number: int) -> None:
        """Remember how many steps were made."""
        self._steps = number

    def finish(self) -> None:
        """Send everything, unless the run kept off every accelerator."""
        if not self._is_used:
            return
        events: list[dict[str, object]] = [
            {
                "event": "operator",
                "operator": name,
                "device": device,
                "phase": phase,
                **{k: v for k, v in row.items() if k != "last"},
            }
            for (name, device, phase), row in self._rows.items()
        ]
        for (kind, where, late), (count, size) in self._transfers.items():
            events.append(
                {
                    "event": "transfer",
                    "kind": kind,
                    "where": where,
                    "non_blocking": late,
                    "count": count,
                    "bytes": size,
                }
            )
        for (name, where), seen in self._ranges.items():
            events.append(
                {"event": "index_range", "operator": name, "where": where, **seen}
            )
        events.append(
            {
                "event": "witness",
                "name": "census",
                "looked": True,
                "steps": [[1, self._steps + 1]],
                "total_steps": self._steps,
                "reason": "; ".join(self._gaps()),
            }
        )
        self._session.emit_all(events)

    def _gaps(self) -> Iterator[str]:
        if self._lost:
            yield f"{self._lost} operators not counted"
        if self._older:
            names = ", ".join(thread.name for thread in self._older)[:200]
            yield f"threads that were there before torch are not seen: {names}"


def _is_service(thread: threading.Thread) -> bool:
    owner = type(thread).__module__
    if owner == "threading":
        owner = getattr(getattr(thread, "_target", None), "__module__", None) or ""
    return owner.partition(".")[0] in _SERVICES
