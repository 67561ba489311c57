"""Read the facts about macOS and a Mac, and the memory of a process there.

Everything that runs a command goes through a `Run` that tests replace by recorded
outputs. Sources: ``sw_vers(1)``, ``sysctl(8)``, ``<libproc.h>``.
"""

from __future__ import annotations

import os
import sys

from . import mac_profile
from .facts import UnknownFactError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .facts import Probe

    Run = Callable[[Sequence[str]], str]

_FRAMEWORK = "/System/Library/Frameworks/MetalPerformanceShadersGraph.framework"
_INFO_FILES = (
    f"{_FRAMEWORK}/Versions/Current/Resources/Info.plist",
    f"{_FRAMEWORK}/Resources/Info.plist",
)
_COMMAND_SECONDS = 5.0
_FLAGS = (
    "FEAT_FP16",
    "FEAT_BF16",
    "FEAT_DotProd",
    "FEAT_I8MM",
    "FEAT_SME",
    "FEAT_SME2",
)
_INTEL_FLAGS = {"AVX1.0", "AVX2", "FMA", "F16C", "SSE4.2", "AVX512F", "AVX512VNNI"}


def run_command(argv: Sequence[str]) -> str:
    """Return what a system command prints.

    Raises:
        UnknownFactError: It cannot be started, fails, or does not end in time.
    """
    import subprocess

    try:
        done = subprocess.run(
            list(argv),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_COMMAND_SECONDS,
            check=False,
            # A Python started by one of these must not be taken for the user's.
            env={"PATH": "/usr/bin:/bin:/usr/sbin:/sbin"},
        )
    except (OSError, subprocess.SubprocessError) as error:
        message = f"{argv[0]}: {type(error).__name__}: {error}"
        raise UnknownFactError(message) from error
    if done.returncode != 0:
        message = f"{argv[0]} ended with status {done.returncode}"
        raise UnknownFactError(message)
    return done.stdout.decode("utf-8", "replace")


def probes(
    run: Run = run_command, *, moment: bool = True, numbered: bool = False
) -> Iterator[Probe]:
    """Yield the probes about macOS and its machine.

    Args:
        run: Runs a system command.
        moment: Also ask what takes half a second: the hardware profile, power and
            other programs. One process of a run is enough.
        numbered: Name other programs with their process ids (see `linux_state`).
    """
    system = _Settings(run)
    yield "os.system", "os.uname()", lambda: os.uname().sysname
    yield "os.name", "sw_vers", lambda: system.version("ProductName")
    yield "os.version", "sw_vers", lambda: system.version("ProductVersion")
    yield "os.build", "sw_vers", lambda: system.version("BuildVersion")
    yield "os.kernel", "os.uname()", lambda: os.uname().release
    yield "os.kernel_build", "os.uname()", lambda: os.uname().version
    yield "machine.architecture", "os.uname()", lambda: os.uname().machine
    yield "machine.model", "sysctl hw.model", lambda: system.text("hw.model")
    yield "machine.rosetta", "sysctl sysctl.proc_translated", system.translated
    yield (
        "cpu.model",
        "sysctl machdep.cpu.brand_string",
        lambda: system.text("machdep.cpu.brand_string"),
    )
    yield "cpu.logical", "sysctl hw.logicalcpu", lambda: system.number("hw.logicalcpu")
    yield (
        "cpu.physical",
        "sysctl hw.physicalcpu",
        lambda: system.number("hw.physicalcpu"),
    )
    yield (
        "cpu.performance_cores",
        "sysctl hw.perflevel0.physicalcpu",
        lambda: system.number("hw.perflevel0.physicalcpu"),
    )
    yield "state.load", "os.getloadavg()", lambda: round(os.getloadavg()[0], 2)
    yield "memory.total_bytes", "sysctl hw.memsize", lambda: system.number("hw.memsize")
    yield (
        "state.memory_pressure_level",
        "sysctl kern.memorystatus_vm_pressure_level",
        lambda: system.number("kern.memorystatus_vm_pressure_level"),
    )
    yield (
        "state.memory_free_percent",
        "sysctl kern.memorystatus_level",
        lambda: system.number("kern.memorystatus_level"),
    )
    yield "state.swap", "sysctl vm.swapusage", lambda: system.text("vm.swapusage")
    yield "cpu.flags", "sysctl hw.optional", system.flags
    yield "mps.graph_version", "MetalPerformanceShadersGraph Info.plist", graph_version
    if moment:
        yield from mac_profile.probes(run, numbered=numbered)


class _Settings:
    """Outputs of ``sysctl`` and ``sw_vers``, each asked once."""

    _NAMES = (
        "hw.model",
        "machdep.cpu.brand_string",
        "hw.memsize",
        "hw.logicalcpu",
        "hw.physicalcpu",
        "hw.perflevel0.physicalcpu",
        "sysctl.proc_translated",
        "kern.memorystatus_vm_pressure_level",
        "kern.memorystatus_level",
        "vm.swapusage",
        *(f"hw.optional.arm.{flag}" for flag in _FLAGS),
        "machdep.cpu.features",
        "machdep.cpu.leaf7_features",
    )

    def __init__(self, run: Run) -> None:
        self._run = run
        self._values: dict[str, str] | None = None
        self._versions: dict[str, str] | None = None

    def text(self, name: str) -> str:
        if self._values is None:
            # -i: a name this machine does not know is left out, and no error.
            output = self._run(("/usr/sbin/sysctl", "-i", *self._NAMES))
            self._values = _pairs(output)
        if name not in self._values:
            message = f"sysctl knows no {name} here"
            raise UnknownFactError(message)
        return self._values[name]

    def number(self, name: str) -> int:
        return int(self.text(name))

    def flags(self) -> list[str]:
        """Return the instruction sets that numeric libraries choose their code by."""
        arm = [f for f in _FLAGS if self._known(f"hw.optional.arm.{f}") == "1"]
        intel = f"{self._known('machdep.cpu.features')} "
        intel += self._known("machdep.cpu.leaf7_features")
        found = sorted([*arm, *(_INTEL_FLAGS & set(intel.split()))])
        if not found:
            message = "sysctl lists no instruction sets"
            raise UnknownFactError(message)
        return found

    def _known(self, name: str) -> str:
        self.text("hw.model")
        return (self._values or {}).get(name, "")

    def translated(self) -> bool:
        """Tell whether this process runs under Rosetta.

        Intel Macs do not know the name at all, which means no.
        """
        try:
            return self.text("sysctl.proc_translated") == "1"
        except UnknownFactError:
            if self._values:
                return False
            raise

    def version(self, name: str) -> str:
        if self._versions is None:
            self._versions = _pairs(self._run(("/usr/bin/sw_vers",)))
        if name not in self._versions:
            message = f"sw_vers prints no {name}"
            raise UnknownFactError(message)
        return self._versions[name]


def _pairs(output: str) -> dict[str, str]:
    """Return ``name: value`` lines as a mapping."""
    lines = (line.partition(":") for line in output.splitlines())
    return {name.strip(): value.strip() for name, mark, value in lines if mark}


def graph_version(files: Sequence[str] = _INFO_FILES) -> str:
    """Return the version of the MPSGraph framework, which decides the numbers."""
    import plistlib

    for path in files:
        if not os.path.exists(path):
            continue
        with open(path, "rb") as file:
            content = plistlib.load(file)
        for key in ("CFBundleVersion", "CFBundleShortVersionString"):
            if content.get(key):
                return str(content[key])
    message = "the framework's Info.plist was not found"
    raise UnknownFactError(message)


def resident_counters(*, peaks: bool) -> dict[str, int]:
    """Return ``rss``, ``footprint`` and, if asked, ``rss_peak`` of this process.

    Source: ``proc_pid_rusage`` with ``RUSAGE_INFO_V0`` of ``<libproc.h>``: a UUID of
    16 bytes, then 64-bit fields; the resident size is the 7th, the footprint the 8th.
    """
    import ctypes

    buffer = (ctypes.c_uint64 * 64)()
    library = ctypes.CDLL("/usr/lib/libSystem.B.dylib")
    if library.proc_pid_rusage(os.getpid(), 0, ctypes.byref(buffer)) != 0:
        message = "proc_pid_rusage failed"
        raise OSError(message)
    counters = {"rss": int(buffer[8]), "footprint": int(buffer[9])}
    if peaks:
        import resource

        # In bytes on macOS, unlike Linux.
        used = resource.getrusage(resource.RUSAGE_SELF)
        counters["rss_peak"] = used.ru_maxrss * (
            1 if sys.platform == "darwin" else 1024
        )
    return counters
