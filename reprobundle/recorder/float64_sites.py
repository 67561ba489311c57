"""Find the places where a run would meet float64 on a device that has none.

MPS has neither float64 nor complex128. A run on the CPU or on CUDA shows where such a
tensor is made on the steered device, moved to it, or comes out of an operator there
whose inputs were narrower: at these places a run on MPS raises. A wide tensor that
stays on the CPU is no such place, and neither is a number of Python's.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

from .call_sources import function_called
from .callers import caller, calling_frame
from .evidence import Observer
from .steered import Steered, unseen_graphs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from .operators import OperatorCall
    from .phases import Clock
    from .session import Session

_MOST_SITES = 200
# Where torch itself takes float32 on MPS: the reciprocal of a scale, and the
# tolerances of these functions (aten/src/ATen/native/LinearAlgebra.cpp, get_atol_rtol).
_SPARED_FILE = "/torch/amp/grad_scaler.py"
_SPARED = frozenset({"matrix_rank", "pinv"})


class Float64Sites(Observer):
    """Report each place once, with how often it was passed.

    Attributes:
        holds: Tells whether a tensor is on the steered device.
        steered: What knows that.
        on_arrival: In a forecast, told of each tensor that came to the device.
        on_site: In a strict forecast, called at each place.
    """

    on_arrival: Callable[[Any, str], None] | None = None
    on_site: Callable[[], None] | None = None

    name = "float64"
    sees_operators = True

    def __init__(self, session: Session, clock: Clock) -> None:
        self._session = session
        self._clock = clock
        self.steered = Steered(session, self._arrived)
        self.holds = self.steered.holds
        self._sites: dict[tuple[str, str, str, str, str], int] = {}
        self._lost = 0
        self._torch: Any = None
        self._wide: tuple[Any, ...] = ()

    def start(self, torch: Any) -> None:
        """Attach to what moves tensors."""
        self._torch = torch
        self._wide = (torch.float64, torch.complex128)
        self.steered.start(torch)

    def operator(self, call: OperatorCall) -> None:
        """Follow a tensor through an operator, and look at what came out."""
        given = [*self._tensors(call.arguments), *self._tensors(call.named.values())]
        made = list(self._tensors((call.result,)))
        if not self.steered.follow(call, given, made):
            return
        holds = self.steered.holds
        if any(tensor.dtype in self._wide and holds(tensor) for tensor in given):
            return
        for tensor in made:
            if tensor.dtype in self._wide and holds(tensor) and not self._is_spared():
                how = "made" if not given else "computed"
                self._add(how, str(call.operator), tensor)
                return

    def _is_spared(self) -> bool:
        """Tell whether torch computes in float32 where it runs on MPS."""
        frame = calling_frame()
        if frame is None:
            return False
        is_scaler = frame.f_code.co_filename.endswith(_SPARED_FILE)
        return is_scaler or function_called(frame) in _SPARED

    def _arrived(self, tensor: Any, how: str) -> None:
        if self.on_arrival is not None:
            self.on_arrival(tensor, how)
        if tensor.dtype in self._wide:
            self._add(how, "", tensor)

    def _add(self, how: str, operator: str, tensor: Any) -> None:
        if self.on_site is not None:
            self.on_site()
        dtype = str(tensor.dtype).removeprefix("torch.")
        where = caller(self._session.project)
        key = (how, operator, dtype, where, self._clock.open_phase)
        if key not in self._sites and len(self._sites) >= _MOST_SITES:
            self._lost += 1
            return
        self._sites[key] = self._sites.get(key, 0) + 1

    def _tensors(self, values: Any) -> Iterator[Any]:
        for value in values:
            if isinstance(value, self._torch.Tensor):
                yield value
            elif isinstance(value, (list, tuple)):
                yield from self._tensors(value)

    def finish(self) -> None:
        """Send the places, and whether there was anything to look at."""
        if self._torch is None:
            return
        events: list[dict[str, object]] = [
            {
                "event": "float64_site",
                "how": how,
                "operator": operator,
                "dtype": dtype,
                "where": where,
                "phase": phase,
                "count": count,
            }
            for (how, operator, dtype, where, phase), count in self._sites.items()
        ]
        events.append(
            {
                "event": "float64_search",
                "operators": self.steered.seen,
                "reason": self._reason(),
            }
        )
        self._session.emit_all(events)

    def _reason(self) -> str:
        """Return why a place may be missing; empty if there is no reason."""
        reasons = [f"{self._lost} more places"] if self._lost else []
        return "; ".join([*reasons, *unseen_graphs()])
