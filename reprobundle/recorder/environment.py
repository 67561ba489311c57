"""Read the facts about Python, the operating system and the machine, on Linux.

Everything here is read from files and system calls, before the user's code starts and
without importing what it might shadow (``platform``, ``subprocess``, ``locale``).
"""

from __future__ import annotations

import os
import sys

from .facts import UnknownFactError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .facts import Probe

# Instruction sets that numeric libraries choose their code by.
_CPU_FLAGS = frozenset(
    {
        "sse4_1",
        "sse4_2",
        "avx",
        "f16c",
        "fma",
        "avx2",
        "avx512f",
        "avx512bw",
        "avx512dq",
        "avx512vl",
        "avx512_vnni",
        "avx512_bf16",
        "avx512_fp16",
        "amx_tile",
        "amx_bf16",
        "amx_int8",
        "asimd",
        "asimddp",
        "asimdhp",
        "sve",
        "sve2",
        "bf16",
        "i8mm",
    }
)


def python_probes() -> Iterator[Probe]:
    """Yield the probes about this interpreter."""
    implementation = sys.implementation
    yield "python.version", "sys.version_info", lambda: _python_version()
    yield "python.implementation", "sys.implementation", lambda: implementation.name
    yield "python.build", "sys.version", lambda: sys.version.replace("\n", " ")
    yield "python.bits", "sys.maxsize", lambda: sys.maxsize.bit_length() + 1
    yield "python.byte_order", "sys.byteorder", lambda: sys.byteorder
    yield (
        "python.platform",
        "os.uname()",
        lambda: f"{sys.platform}-{os.uname().machine}",
    )
    yield "python.free_threaded", "sys._is_gil_enabled()", _free_threaded
    yield "python.optimize", "sys.flags", lambda: sys.flags.optimize
    yield (
        "python.hash_randomization",
        "sys.flags",
        lambda: bool(sys.flags.hash_randomization),
    )
    yield "python.utf8_mode", "sys.flags", lambda: bool(sys.flags.utf8_mode)
    yield "python.isolated", "sys.flags", lambda: bool(sys.flags.isolated)
    yield "python.dev_mode", "sys.flags", lambda: bool(sys.flags.dev_mode)
    yield (
        "python.virtual_environment",
        "sys.prefix",
        lambda: sys.prefix != sys.base_prefix,
    )
    yield "python.recursion_limit", "sys", sys.getrecursionlimit
    yield "python.flush_denormal", "arithmetic", flushes_denormal
    yield "locale.ctype", "_locale.setlocale()", _ctype
    yield "locale.file_system_encoding", "sys", sys.getfilesystemencoding
    yield "locale.stdout_encoding", "sys.stdout", lambda: sys.stdout.encoding


def linux_probes() -> Iterator[Probe]:
    """Yield the probes about a Linux system and its machine.

    Facts below ``state.`` describe the moment and differ from run to run.
    """
    yield "os.system", "os.uname()", lambda: os.uname().sysname
    yield "os.name", "/etc/os-release", lambda: _os_release("PRETTY_NAME")
    yield "os.version", "/etc/os-release", lambda: _os_release("VERSION_ID")
    yield "os.kernel", "os.uname()", lambda: os.uname().release
    yield "os.kernel_build", "os.uname()", lambda: os.uname().version
    yield "os.libc", "confstr(CS_GNU_LIBC_VERSION)", _libc
    yield "machine.architecture", "os.uname()", lambda: os.uname().machine
    yield "machine.model", "/sys/class/dmi/id", _machine_model
    yield (
        "machine.container",
        "/.dockerenv, /run/.containerenv, /proc/1/cgroup",
        _container,
    )
    yield "cpu.model", "/proc/cpuinfo", _cpu_model
    yield "cpu.flags", "/proc/cpuinfo", _cpu_flags
    yield "cpu.logical", "os.cpu_count()", os.cpu_count
    yield "cpu.physical", "/proc/cpuinfo", _physical_cores
    yield "cpu.usable", "os.sched_getaffinity()", lambda: len(os.sched_getaffinity(0))
    yield "cpu.quota", "/sys/fs/cgroup/cpu.max", _cpu_quota
    yield "state.load", "os.getloadavg()", lambda: round(os.getloadavg()[0], 2)
    yield "memory.total_bytes", "/proc/meminfo", lambda: _meminfo("MemTotal")
    yield (
        "state.memory_available_bytes",
        "/proc/meminfo",
        lambda: _meminfo("MemAvailable"),
    )
    yield "memory.swap_bytes", "/proc/meminfo", lambda: _meminfo("SwapTotal")
    yield "memory.limit_bytes", "/sys/fs/cgroup/memory.max", _memory_limit
    yield "gpu.driver", "/proc/driver/nvidia/version", _nvidia_driver
    yield "gpu.models", "/proc/driver/nvidia/gpus", _nvidia_models


def _python_version() -> str:
    release = ".".join(str(part) for part in sys.version_info[:3])
    if sys.version_info.releaselevel == "final":
        return release
    return f"{release}{sys.version_info.releaselevel}{sys.version_info.serial}"


def flushes_denormal() -> bool:
    """Tell whether the CPU takes the smallest numbers for zero on this thread.

    ``torch.set_flush_denormal`` sets that mode and offers no way to ask for it.
    """
    return 0.5 * sys.float_info.min == 0


def _free_threaded() -> bool:
    enabled = getattr(sys, "_is_gil_enabled", None)
    return enabled is not None and not enabled()


def _ctype() -> str:
    import _locale

    return _locale.setlocale(_locale.LC_CTYPE, None)


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def _os_release(key: str) -> str:
    for path in ("/etc/os-release", "/usr/lib/os-release"):
        if not os.path.exists(path):
            continue
        for line in _read(path).splitlines():
            name, _, value = line.partition("=")
            if name == key:
                return value.strip("\"'")
    message = f"no os-release file with {key}"
    raise UnknownFactError(message)


def _libc() -> str | None:
    return os.confstr("CS_GNU_LIBC_VERSION")


def _machine_model() -> str:
    parts = [
        _read(f"/sys/class/dmi/id/{name}").strip()
        for name in ("sys_vendor", "product_name")
        if os.path.exists(f"/sys/class/dmi/id/{name}")
    ]
    if not any(parts):
        message = "the firmware tells no product name"
        raise UnknownFactError(message)
    return " ".join(part for part in parts if part)


def _container() -> str:
    for path, name in (("/.dockerenv", "docker"), ("/run/.containerenv", "podman")):
        if os.path.exists(path):
            return name
    groups = _read("/proc/1/cgroup")
    for name in ("docker", "kubepods", "lxc", "containerd"):
        if name in groups:
            return name
    return "none seen"


def _cpu_lines(key: str) -> list[str]:
    pairs = (line.partition(":") for line in _read("/proc/cpuinfo").splitlines())
    return [value.strip() for name, _, value in pairs if name.strip() == key]


def _cpu_model() -> str:
    for key in ("model name", "Hardware", "Processor", "cpu model"):
        for value in _cpu_lines(key)[:1]:
            return value
    parts = _cpu_lines("CPU implementer")[:1] + _cpu_lines("CPU part")[:1]
    if not parts:
        message = "/proc/cpuinfo names no model"
        raise UnknownFactError(message)
    return "implementer " + " part ".join(parts)


def _cpu_flags() -> tuple[str, ...]:
    lines = _cpu_lines("flags") or _cpu_lines("Features")
    if not lines:
        message = "/proc/cpuinfo lists no flags"
        raise UnknownFactError(message)
    return tuple(sorted(_CPU_FLAGS.intersection(lines[0].split())))


def _physical_cores() -> int:
    pairs = set(zip(_cpu_lines("physical id"), _cpu_lines("core id"), strict=False))
    if not pairs:
        message = "/proc/cpuinfo has no core ids"
        raise UnknownFactError(message)
    return len(pairs)


def _cpu_quota() -> float:
    """Return how many CPUs' time the control group may use."""
    quota, period = _read("/sys/fs/cgroup/cpu.max").split()
    if quota == "max":
        message = "no quota"
        raise UnknownFactError(message)
    return int(quota) / int(period)


def _meminfo(key: str) -> int:
    for line in _read("/proc/meminfo").splitlines():
        name, _, value = line.partition(":")
        if name == key:
            return int(value.split()[0]) * 1024
    message = f"/proc/meminfo has no {key}"
    raise UnknownFactError(message)


def _memory_limit() -> int:
    for path in (
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    ):
        text = _read(path).strip() if os.path.exists(path) else "max"
        # Version 1 says "no limit" with the largest number of pages.
        if text != "max" and int(text) < 2**62:
            return int(text)
    message = "no limit"
    raise UnknownFactError(message)


def _nvidia_driver() -> str:
    if not os.path.exists("/proc/driver/nvidia/version"):
        message = "no NVIDIA driver is loaded"
        raise UnknownFactError(message)
    return (
        _read("/proc/driver/nvidia/version").splitlines()[0].partition(":")[2].strip()
    )


def _nvidia_models() -> tuple[str, ...]:
    folder = "/proc/driver/nvidia/gpus"
    if not os.path.isdir(folder):
        message = "no NVIDIA driver is loaded"
        raise UnknownFactError(message)
    lines = (
        line.partition(":")
        for name in sorted(os.listdir(folder))
        for line in _read(f"{folder}/{name}/information").splitlines()
    )
    return tuple(value.strip() for key, _, value in lines if key == "Model")
