"""Tell whether this interpreter's torch can use a device, else why not.

Run as ``python availability.py cuda|mps`` in the user's environment, before a replay
that was asked for that device. One JSON line answers: ``cause`` and ``remedy``, both
empty if the device is there or if nothing can be said without torch.

Sources: ``torch.backends.mps.is_built``, ``is_available``, ``is_macos_or_newer`` and
``torch.cuda.is_available`` as documented for torch 2.9 to 2.13; ``kern.hv_vmm_present``
and ``sysctl.proc_translated`` of macOS.
"""

# ruff: noqa: ANN401 -- torch has no types here
from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Switch = Callable[[str], bool]

# The oldest macOS that torch runs MPS on: 2.9 to 2.14, and 2.15 and newer.
OLDEST_MACOS = 14
OLDEST_MACOS_2_15 = 15
_ELSEWHERE = "replay on a machine that has the device, or ask for another --device"


def cuda_obstacle(torch: Any) -> tuple[str, str]:
    """Return cause and remedy if CUDA cannot be used; both empty if it can."""
    version = torch.version
    if not (getattr(version, "cuda", None) or getattr(version, "hip", None)):
        return (
            f"this build of torch ({torch.__version__}) has neither CUDA nor ROCm",
            "install a build with CUDA, or ask for another --device",
        )
    if torch.cuda.is_available():
        return "", ""
    if os.environ.get("CUDA_VISIBLE_DEVICES", "x") in ("", "-1"):
        return "CUDA_VISIBLE_DEVICES hides every GPU", "unset CUDA_VISIBLE_DEVICES"
    return (
        "torch finds no usable GPU: none is there, or its driver is too old or absent",
        f"see nvidia-smi; {_ELSEWHERE}",
    )


def mps_obstacle(torch: Any, platform: str, switch: Switch) -> tuple[str, str]:
    """Return cause and remedy if MPS cannot be used; both empty if it can.

    Args:
        torch: The module.
        platform: As ``sys.platform``.
        switch: Tells whether a sysctl of this name is 1.
    """
    mps = torch.backends.mps
    if mps.is_available():
        return "", ""
    if platform != "darwin":
        return f"MPS exists on macOS only, this is {platform}", "replay on a Mac"
    if switch("sysctl.proc_translated"):
        cause = "this Python is an Intel program that runs translated (Rosetta)"
        return cause, "install a Python for Apple Silicon and torch for it"
    if not mps.is_built():
        return (
            f"this build of torch ({torch.__version__}) has no MPS",
            "install torch from its own index or PyPI, for arm64",
        )
    oldest = _oldest_macos(torch.__version__)
    if not mps.is_macos_or_newer(oldest, 0):
        return f"this macOS is older than {oldest}", "update macOS"
    if switch("kern.hv_vmm_present"):
        return "this is a virtual machine without Metal", _ELSEWHERE
    cause = "Metal offers no device here, as in a sandbox or without a login session"
    return cause, "run it in Terminal, in a session of a logged-in user"


def _oldest_macos(version: str) -> int:
    parts = str(version).partition("+")[0].split(".")
    release = tuple(int(part) for part in parts[:2] if part.isdigit())
    return OLDEST_MACOS_2_15 if release >= (2, 15) else OLDEST_MACOS


def _sysctl(name: str) -> bool:
    import subprocess

    command = ["/usr/sbin/sysctl", "-n", name]
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    return done.stdout.strip() == "1"


def main(device: str) -> None:
    """Print the answer for one device."""
    import json

    cause = remedy = ""
    try:
        import torch
    except ImportError:
        # A command that needs no torch runs all the same.
        pass
    else:
        if device == "cuda":
            cause, remedy = cuda_obstacle(torch)
        elif device == "mps":
            cause, remedy = mps_obstacle(torch, sys.platform, _sysctl)
    sys.stdout.write(json.dumps({"cause": cause, "remedy": remedy}) + "\n")


if __name__ == "__main__":
    # The folder of this file holds modules of ours that torch must not find.
    _here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != _here]
    main(sys.argv[1])
