"""Say in the record why MPS was not there for a run, with the key of the remedy.

Only this lets a reader of a bundle from a machine without MPS tell "nobody wanted it"
from "it could not be had". The causes and keys are those of ``hardware.mps_obstacle``
and docs/mac.md.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

from .facts import UnknownFactError
from .hardware.mps_obstacle import mps_obstacle
from .hardware.obstacle import Machine, Obstacle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .facts import Probe

# Devices for which `hiding` answers in torch's place.
_HIDING = ("cpu", "cuda")


def probes_at_import(torch: Any, machine: Machine) -> Iterator[Probe]:
    """Yield the probes right after the import of torch, where nothing may be asked."""
    decided = machine.platform != "darwin" and not torch.backends.mps.is_built()
    return _probes(mps_obstacle(torch, machine) if decided else None, asked=decided)


def probes_at_end(torch: Any, device: str, machine: Machine) -> Iterator[Probe]:
    """Yield the probes at the end of a process, where MPS may be asked.

    Args:
        torch: The module.
        device: The device the run was asked for, or ``as-is``.
        machine: Where it ran.
    """
    return _probes(_obstacle(torch, device, machine), asked=True)


def _obstacle(torch: Any, device: str, machine: Machine) -> Obstacle | None:
    answer = torch.backends.mps.is_available
    if device in _HIDING and getattr(answer, "__wrapped__", answer)():
        return Obstacle(
            "hidden",
            f"MPS was hidden from the command, which was asked for {device}",
            "ask for --device mps",
        )
    return mps_obstacle(torch, machine)


def _probes(found: Obstacle | None, *, asked: bool) -> Iterator[Probe]:
    def part(name: str) -> str:
        if found is None:
            message = "MPS is there" if asked else "asked only at the end of a process"
            raise UnknownFactError(message)
        return str(getattr(found, name))

    yield "torch.mps.missing", "torch.backends.mps", lambda: part("key")
    yield "torch.mps.missing_cause", "torch.backends.mps", lambda: part("cause")
    yield "torch.mps.missing_remedy", "torch.backends.mps", lambda: part("remedy")
