"""Read the facts about the accelerators that this process uses."""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import sys

from .facts import UnknownFactError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from .devices import Devices
    from .facts import Probe


def device_probes(torch: Any, devices: Devices) -> Iterator[Probe]:
    """Yield the probes about the accelerators that this process uses."""
    yield from _cuda_probes(torch, in_use=devices.cuda_in_use)
    yield from _mps_probes(torch, in_use=devices.mps_in_use)


def _cuda_probes(torch: Any, *, in_use: bool) -> Iterator[Probe]:
    cuda = torch.cuda

    def used(read: Callable[[], Any]) -> Callable[[], Any]:
        return read if in_use else _not_used("CUDA")

    yield "torch.cuda.used", "torch.cuda.is_initialized()", lambda: in_use
    yield "torch.cuda.device_count", "torch.cuda", used(lambda: cuda.device_count())
    yield (
        "torch.cuda.devices",
        "torch.cuda",
        used(lambda: [cuda.get_device_name(n) for n in range(cuda.device_count())]),
    )
    yield (
        "torch.cuda.capabilities",
        "torch.cuda",
        used(
            lambda: [
                "{}.{}".format(*cuda.get_device_capability(n))
                for n in range(cuda.device_count())
            ]
        ),
    )
    yield (
        "torch.cuda.memory_bytes",
        "torch.cuda",
        used(
            lambda: [
                str(cuda.get_device_properties(n).total_memory)
                for n in range(cuda.device_count())
            ]
        ),
    )
    yield (
        "torch.cudnn.version",
        "torch.backends.cudnn",
        used(lambda: torch.backends.cudnn.version()),
    )


def _mps_probes(torch: Any, *, in_use: bool) -> Iterator[Probe]:
    def used(read: Callable[[], Any]) -> Callable[[], Any]:
        return read if in_use else _not_used("MPS")

    yield "torch.mps.used", "tensors seen", lambda: in_use
    yield (
        "torch.mps.recommended_max_bytes",
        "torch.mps",
        used(lambda: torch.mps.recommended_max_memory()),
    )
    yield (
        "torch.mps.name",
        "torch.backends.mps",
        used(lambda: torch.backends.mps.get_name()),
    )
    yield (
        "torch.mps.core_count",
        "torch.backends.mps",
        used(lambda: torch.backends.mps.get_core_count()),
    )
    yield (
        "torch.mps.standin",
        "sys.platform",
        lambda: in_use and sys.platform != "darwin",
    )


def _not_used(device: str) -> Callable[[], Any]:
    def read() -> Any:
        message = f"{device} was not used by this process"
        raise UnknownFactError(message)

    return read
