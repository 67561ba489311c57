"""Tell the causes apart why MPS cannot be used.

Sources: ``torch.backends.mps.is_built``, ``is_available`` (torch 2.0) and
``is_macos_or_newer`` (torch 2.3) as documented; ``hw.optional.arm64``,
``sysctl.proc_translated`` and ``kern.hv_vmm_present`` of macOS's sysctl(3).
"""

# ruff: noqa: ANN401 -- torch has no types here
from __future__ import annotations

from .obstacle import ELSEWHERE, Obstacle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .obstacle import Machine, Run

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


def mps_obstacle(torch: Any, machine: Machine) -> Obstacle | None:
    """Return the first cause that holds; None if MPS can be used."""
    mps = torch.backends.mps
    if mps.is_available():
        return _failure(torch, machine.run) if machine.tried else None
    if machine.platform != "darwin":
        cause = f"MPS exists on macOS only, this is {machine.platform}"
        return Obstacle("not-macos", cause, "replay on a Mac")
    mac = _sysctl(machine.run)
    if mac.get("sysctl.proc_translated") == "1":
        return Obstacle(
            "rosetta",
            "this Python is an Intel program that runs translated (Rosetta)",
            "install a Python for Apple Silicon and torch for it",
        )
    if mac and mac.get("hw.optional.arm64") != "1":
        return Obstacle(
            "intel-mac",
            "this Mac has an Intel processor, and torch runs MPS on Apple Silicon",
            "replay on a Mac with Apple Silicon",
        )
    if not mps.is_built():
        return Obstacle(
            "build-without-mps",
            f"this build of torch ({torch.__version__}) has no MPS",
            "install torch from its own index or PyPI, for arm64",
        )
    oldest = oldest_macos(str(torch.__version__))
    newer = getattr(mps, "is_macos_or_newer", None)
    if newer is not None and not newer(*oldest):
        return _old_macos(torch, machine.run, oldest)
    return _no_device(mac, machine)


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


def _old_macos(torch: Any, run: Run, oldest: tuple[int, int]) -> Obstacle:
    here = run(("/usr/bin/sw_vers", "-productVersion")).strip() or "this macOS"
    needed = "{}.{}".format(*oldest)
    return Obstacle(
        "macos-too-old",
        f"macOS {here} is older than {needed}, which torch {torch.__version__} needs",
        "update macOS, or install an older torch",
    )


def _no_device(mac: Mapping[str, str], machine: Machine) -> Obstacle:
    """Tell why Metal offers no device although torch and macOS could use one."""
    for name in _SANDBOX_VARIABLES:
        if machine.environ.get(name):
            return Obstacle(
                "sandbox",
                f"a parent process runs in a sandbox without the GPU ({name} is set)",
                "start it from Terminal or over SSH, outside the sandbox",
            )
    if mac.get("kern.hv_vmm_present") == "1":
        return Obstacle(
            "virtual-machine",
            "this is a virtual machine, and its GPU cannot run MPS",
            f"replay on a bare Mac: {ELSEWHERE}",
        )
    displays = machine.run(("/usr/sbin/system_profiler", "SPDisplaysDataType"))
    if displays and "Metal" not in displays:
        return Obstacle(
            "unfit-gpu",
            "macOS lists no GPU with Metal: the device is unfit",
            ELSEWHERE,
        )
    return Obstacle(
        "no-metal-device",
        "Metal offers no device here, as in a sandbox or without a login session",
        "run it in Terminal, in a session of a logged-in user",
    )


def _failure(torch: Any, run: Run) -> Obstacle | None:
    """Make one tensor: some virtual machines offer a device that can hold none.

    Source: pytorch/pytorch#112265, "Skip virtualized devices".
    """
    try:
        if torch.ones(1, device="mps").item() == 1.0:
            return None
        told = "it does not give back what was written"
    except Exception as error:
        told = " ".join(f"{type(error).__name__}: {error}".split())[:200]
    where = "MPS is offered here and its first tensor fails"
    if _sysctl(run).get("kern.hv_vmm_present") == "1":
        where = "this is a virtual machine whose GPU cannot run MPS"
    return Obstacle("first-tensor-fails", f"{where} ({told})", ELSEWHERE)


def _sysctl(run: Run) -> dict[str, str]:
    # -i: a name this machine does not know is left out, and no error.
    lines = run(("/usr/sbin/sysctl", "-i", *_SWITCHES)).splitlines()
    pairs = (line.partition(":") for line in lines)
    return {name.strip(): value.strip() for name, mark, value in pairs if mark}
