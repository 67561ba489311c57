"""Tell whether this interpreter's torch can use a device, else why not.

``entry/ask_device.py`` calls it in the user's environment, before a replay that was
asked for that device. One JSON line answers: ``key``, ``cause`` and ``remedy``, all
empty if the device is there or if nothing can be said without torch.
"""

# ruff: noqa: ANN401 -- torch has no types here
from __future__ import annotations

import sys

from .hardware import device_kinds
from .hardware.obstacle import Machine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .hardware.obstacle import Obstacle


def obstacle(torch: Any, device: str, machine: Machine) -> Obstacle | None:
    """Return why a device type cannot be used; None if it can, or is not known."""
    for kind in device_kinds(torch, machine.platform):
        if kind.type == device:
            return kind.obstacle(machine)
    return None


def main(device: str) -> None:
    """Print the answer for one device."""
    import json

    found = None
    try:
        import torch
    except ImportError:
        # A command that needs no torch runs all the same.
        pass
    else:
        found = obstacle(torch, device, Machine(tried=True))
    words = ("key", "cause", "remedy")
    answer = {word: getattr(found, word, "") for word in words}
    sys.stdout.write(json.dumps(answer) + "\n")
