"""Tell `doctor` about this interpreter, its torch and the machine, in one JSON line.

It is imported from a copy of this package in the interpreter that is asked:
``main()`` prints a mapping from fact to value, reason why it is unknown, and source.
"""

# ruff: noqa: ANN401 -- torch has no types here
from __future__ import annotations

import os
import sys

from . import environment, linux_state, macos, variables
from .facts import UnknownFactError, measured
from .hardware.cuda import Cuda
from .hardware.mps_obstacle import mps_obstacle, oldest_macos
from .hardware.obstacle import Machine
from .jsontext import encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from .facts import Probe

    Run = Callable[[Sequence[str]], str]


_NEWEST = "99.0"


def examine(run: Run = macos.run_command) -> dict[str, tuple[object, str, str]]:
    """Return every fact as value, reason why it is unknown, and source.

    Args:
        run: Runs a system command of macOS.
    """
    found: dict[str, tuple[object, str, str]] = {}
    groups: tuple[Callable[[], Iterator[Probe]], ...] = (
        environment.python_probes,
        variables.probes,
        lambda: _machine(run),
        lambda: torch_probes(run, sys.platform),
    )
    for group in groups:
        try:
            for name, source, read in group():
                value, unknown = measured(read)
                found[name] = (value, unknown, source)
        except Exception as error:
            # One group that breaks must not hide the others.
            found[f"trouble.{len(found)}"] = (None, repr(error), "doctor")
    return found


def _machine(run: Run) -> Iterator[Probe]:
    if sys.platform == "darwin":
        yield from macos.probes(run, numbered=True)
        yield from mac_extras(run)
        return
    yield from environment.linux_probes()
    yield from linux_state.probes(numbered=True)


def mac_extras(run: Run) -> Iterator[Probe]:
    """Yield what a recorded run does not need to know of a Mac."""

    def virtual() -> bool:
        text = run(("/usr/sbin/sysctl", "-n", "kern.hv_vmm_present"))
        return text.strip() == "1"

    def tools() -> str:
        return run(("/usr/bin/xcode-select", "-p")).strip()

    def programs() -> list[str]:
        text = run(("/bin/ps", "-A", "-c", "-o", "comm="))
        names = {line.strip() for line in text.splitlines()}
        return sorted(names & {"caffeinate"}) or ["none that keeps it awake"]

    yield "state.keeps_awake", "ps", programs
    yield "machine.virtual", "sysctl kern.hv_vmm_present", virtual
    yield "tools.xcode", "xcode-select -p", tools


def torch_probes(run: Run, platform: str) -> Iterator[Probe]:
    """Yield what torch says of itself and of MPS, with a tensor computed there."""
    held: list[Any] = []

    def torch() -> Any:
        if not held:
            import torch as module

            held.append(module)
        return held[0]

    def told(argv: Sequence[str]) -> str:
        try:
            return run(argv)
        except UnknownFactError:
            return ""

    def obstacle(part: str) -> str:
        # The trial of a tensor is a fact of its own.
        found = mps_obstacle(torch(), Machine(platform=platform, run=told))
        return str(getattr(found, part, ""))

    def oldest() -> list[int]:
        try:
            version = str(torch().__version__)
        except ImportError:
            # Whoever installs torch next gets the newest.
            version = _NEWEST
        return list(oldest_macos(version))

    def cuda(part: str) -> str:
        here = Machine(platform=platform, run=told, tried=True)
        return str(getattr(Cuda(torch()).obstacle(here), part, ""))

    yield "torch.version", "torch.__version__", lambda: str(torch().__version__)
    yield "torch.file", "torch.__file__", lambda: os.path.dirname(torch().__file__)
    yield "mps.built", "is_built()", lambda: bool(torch().backends.mps.is_built())
    yield (
        "mps.available",
        "is_available()",
        lambda: bool(torch().backends.mps.is_available()),
    )
    yield "mps.trial", "2 + 2 on mps", lambda: trial(torch())
    yield "mps.oldest_macos", "texts in torch's libraries", oldest
    yield "mps.key", "availability", lambda: obstacle("key")
    yield "mps.cause", "availability", lambda: obstacle("cause")
    yield "mps.remedy", "availability", lambda: obstacle("remedy")
    yield "mps.recommended_max_bytes", "torch.mps", lambda: working_set(torch())
    yield "cuda.available", "is_available()", lambda: torch().cuda.is_available()
    yield "cuda.cause", "availability", lambda: cuda("cause")


def working_set(torch: Any) -> int:
    """Return the bytes the GPU may hold without loss of speed, as Metal recommends.

    Raises:
        UnknownFactError: There is no MPS to ask; without one torch asks an allocator
            that has no device.
    """
    if not torch.backends.mps.is_available():
        raise UnknownFactError("MPS is not available")
    return int(torch.mps.recommended_max_memory())


def trial(torch: Any) -> str:
    """Compute something on mps; return ``ok``, or what was computed instead.

    Raises:
        RuntimeError: As torch says it.
    """
    result = float((torch.ones(2, device="mps") * 2).sum().item())
    return "ok" if result == 4.0 else f"computed {result} where 4 is right"


def main() -> None:
    """Print all facts."""
    sys.stdout.write(encode(examine()) + "\n")
