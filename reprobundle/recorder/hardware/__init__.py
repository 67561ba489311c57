"""What differs between kinds of devices: one module for each, one interface.

`kind.DeviceKind` says what the recorder asks of a kind; `cpu`, `cuda`, `mps` and
`standin` answer. Which ones a process uses, and when, is the affair of `..devices`.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import sys

from .cpu import Cpu
from .cuda import Cuda
from .mps import Mps
from .standin import MpsStandin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .kind import DeviceKind


def device_kinds(torch: Any, platform: str = "") -> tuple[DeviceKind, ...]:
    """Return the kinds of devices this recorder knows, the CPU first.

    Args:
        torch: The module; nothing is asked of it here.
        platform: As ``sys.platform``; this one where it is left out. No Apple GPU
            exists off a Mac: what has the type ``mps`` there is a stand-in, and nothing
            measured on it may pass for one.
    """
    mps = Mps(torch) if (platform or sys.platform) == "darwin" else MpsStandin(torch)
    return Cpu(torch), Cuda(torch), mps
