"""Say what the recorder asks of a kind of device."""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

from ..facts import UnknownFactError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from typing import Any, Protocol

    from ..facts import Probe
    from .obstacle import Machine, Obstacle
else:
    # ``typing`` is Python code that would run in every process of the user's.
    Protocol = object


class DeviceKind(Protocol):
    """Everything that is asked of one kind of device.

    No question may start a device. What touches one (`synchronize`, `counters`,
    `generator_states`) is called only while `is_used` says yes; what it raises is the
    caller's to catch, and so is the lack of a function in an older torch.

    Attributes:
        type: The device type in torch.
        name: The device in the record.
        starts_unseen: Whether this torch could use the device without a tensor of the
            user's being seen there.
        starting: What has a true ``_initialized`` once the device may be in use, where
            it starts unseen and that can be known so cheaply; else None.
        seed_functions: Functions of ``torch.<type>`` that seed this kind alone.
    """

    type: str
    name: str
    starts_unseen: bool
    starting: Mapping[str, object] | None
    seed_functions: tuple[str, ...]

    def is_used(self, seen: AbstractSet[str]) -> bool:
        """Tell whether this process uses the device.

        Args:
            seen: Device types on which a tensor was seen.
        """

    def held_tensors(self) -> bool:
        """Tell at the end of a process whether the device was used, seen or not."""

    def is_capturing(self) -> bool:
        """Tell whether work is captured into a graph now, and not done."""

    def synchronize(self) -> None:
        """Wait until all work given to the device is done."""

    def counters(self, *, whole: bool) -> Iterator[tuple[str, int]]:
        """Yield the allocator's counters in bytes, over all devices of the kind.

        Args:
            whole: Add what is wanted at named points only, such as a peak.
        """

    def facts(self, *, used: bool) -> Iterator[Probe]:
        """Yield the probes about the device, unknown where it is not used."""

    def generator_places(self) -> Sequence[str]:
        """Return the devices that have a generator, as torch names them."""

    def generator_states(self) -> Iterator[tuple[str, Any]]:
        """Yield each place and the state tensor of its default generator."""

    def obstacle(self, machine: Machine) -> Obstacle | None:
        """Return why the device cannot be used on this machine; None if it can."""


def reader(device: str, *, used: bool) -> Callable[[Callable[[], Any]], Any]:
    """Return what makes a probe of a device unknown while that is not used."""

    def not_used() -> Any:
        message = f"{device} was not used by this process"
        raise UnknownFactError(message)

    return lambda read: read if used else not_used
