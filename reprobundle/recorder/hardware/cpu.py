"""The CPU: always there, never waited for, its memory the process's own."""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from typing import Any

    from ..facts import Probe
    from .obstacle import Machine, Obstacle


class Cpu:
    """See `DeviceKind`. The facts about the machine are those of ``environment``."""

    type = name = "cpu"
    # torch.manual_seed and torch.seed are not the CPU's own: they seed every device.
    seed_functions: tuple[str, ...] = ()
    starts_unseen = False
    starting: Mapping[str, object] | None = None

    def __init__(self, torch: Any) -> None:
        self._torch = torch

    def is_used(self, seen: AbstractSet[str]) -> bool:
        """Return True: every process does."""
        return True

    def held_tensors(self) -> bool:
        """Return False: a tensor on the CPU is reported where one is seen."""
        return False

    def is_capturing(self) -> bool:
        """Return False."""
        return False

    def synchronize(self) -> None:
        """Do nothing: an operator has returned when its work is done."""

    def counters(self, *, whole: bool) -> Iterator[tuple[str, int]]:
        """Yield nothing: torch counts no memory of the CPU."""
        yield from ()

    def facts(self, *, used: bool) -> Iterator[Probe]:
        """Yield nothing."""
        yield from ()

    def generator_places(self) -> Sequence[str]:
        """Return the CPU."""
        return ("cpu",)

    def generator_states(self) -> Iterator[tuple[str, Any]]:
        """Yield the state of torch's default generator."""
        yield "cpu", self._torch.default_generator.get_state()

    def obstacle(self, machine: Machine) -> Obstacle | None:
        """Return None."""
        return None
