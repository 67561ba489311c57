"""MPS, the GPU of a Mac.

Sources: ``torch.mps`` since torch 2.0 (``recommended_max_memory`` since 2.5) and
``torch.backends.mps`` (``is_built`` and ``is_available`` since 2.0, ``get_name`` and
``get_core_count`` since 2.9); what an older torch lacks is an unknown fact.
``torch.mps.Event`` is never used: before torch 2.15 its times are the host's and may
hang (pytorch/pytorch#162872).
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

from .kind import reader
from .mps_obstacle import mps_obstacle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from typing import Any

    from ..facts import Probe
    from .obstacle import Machine, Obstacle


class Mps:
    """See `DeviceKind`."""

    type = "mps"
    name = "mps"
    seed_functions: tuple[str, ...] = ("manual_seed",)
    # Not asked: the first answer is kept for the whole process. A tensor tells.
    starts_unseen = False
    starting: Mapping[str, object] | None = None

    def __init__(self, torch: Any) -> None:
        self._torch = torch

    def is_used(self, seen: AbstractSet[str]) -> bool:
        """Tell whether a tensor was seen there."""
        return "mps" in seen

    def held_tensors(self) -> bool:
        """Tell whether the driver holds memory for this process.

        Only at the end may MPS be asked whether it is there: the answer is kept for
        the whole process.
        """
        torch = self._torch
        available = torch.backends.mps.is_available()
        return bool(available and torch.mps.driver_allocated_memory() > 0)

    def is_capturing(self) -> bool:
        """Return False: MPS has no graphs of that kind."""
        return False

    def synchronize(self) -> None:
        """Wait for all work given to the GPU."""
        self._torch.mps.synchronize()

    def counters(self, *, whole: bool) -> Iterator[tuple[str, int]]:
        """Yield what tensors and the driver hold, with `whole` the limit too.

        A buffer that a queued kernel still uses is counted although nobody holds it.
        """
        mps = self._torch.mps
        yield "mps_allocated", mps.current_allocated_memory()
        yield "mps_driver", mps.driver_allocated_memory()
        if whole and hasattr(mps, "recommended_max_memory"):
            yield "mps_recommended_max", mps.recommended_max_memory()

    def facts(self, *, used: bool) -> Iterator[Probe]:
        """Yield working set, name and cores of the GPU, and whether it is one."""
        torch = self._torch
        when_used = reader("MPS", used=used)
        yield "torch.mps.used", "tensors seen", lambda: used
        yield (
            "torch.mps.recommended_max_bytes",
            "torch.mps",
            when_used(lambda: torch.mps.recommended_max_memory()),
        )
        yield (
            "torch.mps.name",
            "torch.backends.mps",
            when_used(lambda: torch.backends.mps.get_name()),
        )
        yield (
            "torch.mps.core_count",
            "torch.backends.mps",
            when_used(lambda: torch.backends.mps.get_core_count()),
        )
        yield (
            "torch.mps.standin",
            "sys.platform",
            lambda: used and self.name != self.type,
        )

    def generator_places(self) -> Sequence[str]:
        """Return the one GPU there is."""
        return ("mps",)

    def generator_states(self) -> Iterator[tuple[str, Any]]:
        """Yield the state of the default generator."""
        yield "mps", self._torch.mps.get_rng_state()

    def obstacle(self, machine: Machine) -> Obstacle | None:
        """Return why MPS cannot be used, one of ten causes."""
        return mps_obstacle(self._torch, machine)
