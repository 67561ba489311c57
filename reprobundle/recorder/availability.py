"""Tell whether this interpreter's torch can use a device, else why not.

Run as ``python availability.py cuda|mps`` in the user's environment, before a replay
that was asked for that device. One JSON line answers: ``cause`` and ``remedy``, both
empty if the device is there or if nothing can be said without torch.

Sources: ``torch.backends.mps.is_built``, ``is_available``, ``is_macos_or_newer`` (torch
2.3) and ``torch.cuda.is_available`` as documented; ``hw.optional.arm64``,
``sysctl.proc_translated`` and ``kern.hv_vmm_present`` of macOS's sysctl(3).
"""

# ruff: noqa: ANN401 -- torch has no types here
from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    Run = Callable[[Sequence[str]], str]

# From which torch on → the oldest macOS, the newest first.
_OLDEST_MACOS = (
    ((2, 15), (15, 0)),
    ((2, 9), (14, 0)),
    ((2, 6), (13, 0)),
    ((2, 0), (12, 3)),
)
_SWITCHES = ("hw.optional.arm64", "sysctl.proc_translated", "kern.hv_vmm_present")
# Set by macOS for programs in the App Sandbox, and by an agent that runs its commands
# under seatbelt; both keep Metal from a child (openai/codex#10199).
_SANDBOX_VARIABLES = ("APP_SANDBOX_CONTAINER_ID", "CODEX_SANDBOX")
_COMMAND_SECONDS = 10.0
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


def mps_obstacle(
    torch: Any, platform: str, run: Run, environ: Mapping[str, str], *, tried: bool
) -> tuple[str, str]:
    """Return cause and remedy if MPS cannot be used; both empty if it can.

    Args:
        torch: The module.
        platform: As ``sys.platform``.
        run: Returns what a system command prints; empty where it cannot tell.
        environ: The environment variables.
        tried: Whether one tensor may be made on the device, to see that it works.
    """
    mps = torch.backends.mps
    if mps.is_available():
        return _failure(torch, run) if tried else ("", "")
    if platform != "darwin":
        return f"MPS exists on macOS only, this is {platform}", "replay on a Mac"
    mac = _sysctl(run)
    if mac.get("sysctl.proc_translated") == "1":
        cause = "this Python is an Intel program that runs translated (Rosetta)"
        return cause, "install a Python for Apple Silicon and torch for it"
    if mac and mac.get("hw.optional.arm64") != "1":
        cause = "this Mac has an Intel processor, and torch runs MPS on Apple Silicon"
        return cause, "replay on a Mac with Apple Silicon"
    if not mps.is_built():
        return (
            f"this build of torch ({torch.__version__}) has no MPS",
            "install torch from its own index or PyPI, for arm64",
        )
    oldest = oldest_macos(str(torch.__version__))
    newer = getattr(mps, "is_macos_or_newer", None)
    if newer is not None and not newer(*oldest):
        return _old_macos(torch, run, oldest)
    return _no_device(mac, run, environ)


def oldest_macos(version: str) -> tuple[int, int]:
    """Return the oldest macOS, major and minor, on which this torch runs MPS.

    Source: the text "The MPS backend is supported on macOS …" in torch's libraries for
    macOS: 12.3 up to torch 2.5, 13.0 up to 2.8, 14.0 up to 2.14, 15.0 from 2.15 on.
    """
    numbers = [int(part) for part in version.split(".")[:2] if part.isdigit()]
    for first, oldest in _OLDEST_MACOS:
        if tuple(numbers) >= first:
            return oldest
    return _OLDEST_MACOS[-1][1]


def _old_macos(torch: Any, run: Run, oldest: tuple[int, int]) -> tuple[str, str]:
    here = run(("/usr/bin/sw_vers", "-productVersion")).strip() or "this macOS"
    needed = "{}.{}".format(*oldest)
    return (
        f"macOS {here} is older than {needed}, which torch {torch.__version__} needs",
        "update macOS, or install an older torch",
    )


def _no_device(
    mac: Mapping[str, str], run: Run, environ: Mapping[str, str]
) -> tuple[str, str]:
    """Tell why Metal offers no device although torch and macOS could use one."""
    for name in _SANDBOX_VARIABLES:
        if environ.get(name):
            cause = (
                f"a parent process runs in a sandbox without the GPU ({name} is set)"
            )
            return cause, "start it from Terminal or over SSH, outside the sandbox"
    if mac.get("kern.hv_vmm_present") == "1":
        cause = "this is a virtual machine, and its GPU cannot run MPS"
        return cause, f"replay on a bare Mac: {_ELSEWHERE}"
    displays = run(("/usr/sbin/system_profiler", "SPDisplaysDataType"))
    if displays and "Metal" not in displays:
        return "macOS lists no GPU with Metal: the device is unfit", _ELSEWHERE
    cause = "Metal offers no device here, as in a sandbox or without a login session"
    return cause, "run it in Terminal, in a session of a logged-in user"


def _failure(torch: Any, run: Run) -> tuple[str, str]:
    """Make one tensor: some virtual machines offer a device that can hold none.

    Source: pytorch/pytorch#112265, "Skip virtualized devices".
    """
    try:
        if torch.ones(1, device="mps").item() == 1.0:
            return "", ""
        told = "it does not give back what was written"
    except Exception as error:
        told = " ".join(f"{type(error).__name__}: {error}".split())[:200]
    where = "MPS is offered here and its first tensor fails"
    if _sysctl(run).get("kern.hv_vmm_present") == "1":
        where = "this is a virtual machine whose GPU cannot run MPS"
    return f"{where} ({told})", _ELSEWHERE


def _sysctl(run: Run) -> dict[str, str]:
    # -i: a name this machine does not know is left out, and no error.
    lines = run(("/usr/sbin/sysctl", "-i", *_SWITCHES)).splitlines()
    pairs = (line.partition(":") for line in lines)
    return {name.strip(): value.strip() for name, mark, value in pairs if mark}


def system_output(argv: Sequence[str]) -> str:
    """Return what a system command prints; nothing where it cannot tell."""
    import subprocess

    try:
        done = subprocess.run(
            list(argv),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            text=True,
            timeout=_COMMAND_SECONDS,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout


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
            cause, remedy = mps_obstacle(
                torch, sys.platform, system_output, os.environ, tried=True
            )
    sys.stdout.write(json.dumps({"cause": cause, "remedy": remedy}) + "\n")


if __name__ == "__main__":
    # The folder of this file holds modules of ours that torch must not find.
    _here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != _here]
    main(sys.argv[1])
