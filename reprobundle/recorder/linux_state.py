"""Read what a Linux machine is doing at the moment: pressure, load, other programs.

A figure from a busy machine is another figure than one from a quiet machine. All of
it is read once, before the user's code starts; nothing is measured over time here.
"""

from __future__ import annotations

import os

from .facts import UnknownFactError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .facts import Probe

_MOST_NAMED = 8
# A program that holds this share of the memory may push ours out.
_LARGE_SHARE = 0.05
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def probes(root: str = "", *, numbered: bool = False) -> Iterator[Probe]:
    """Yield the probes about the moment.

    Args:
        root: Folder that stands for ``/``.
        numbered: Name other programs with their process ids: whoever reads it now may
            want to end them. In a record the ids would mean nothing.
    """
    for resource in ("cpu", "memory", "io"):
        yield _pressure(root, resource, "some")
    for resource in ("memory", "io"):
        yield _pressure(root, resource, "full")
    yield (
        "state.running_processes",
        "/proc/*/stat",
        lambda: running_processes(root, numbered=numbered),
    )
    yield (
        "state.large_processes",
        "/proc/*/stat",
        lambda: large_processes(root, numbered=numbered),
    )
    yield "state.power_source", "/sys/class/power_supply", lambda: power_source(root)
    yield "cpu.governor", "/sys/devices/system/cpu", lambda: governor(root)


def _pressure(root: str, resource: str, kind: str) -> Probe:
    path = f"{root}/proc/pressure/{resource}"
    name = f"state.pressure_{resource}_{kind}_percent"
    return name, f"/proc/pressure/{resource}", lambda: pressure(path, kind)


def pressure(path: str, kind: str) -> float:
    """Return the share of the last 10 seconds in which tasks waited, in percent.

    Source: Documentation/accounting/psi.rst of the Linux kernel.

    Args:
        path: Of the resource's pressure file.
        kind: ``some`` (at least one task waited) or ``full`` (all of them did).
    """
    if not os.path.exists(path):
        message = "this kernel keeps no pressure stall information"
        raise UnknownFactError(message)
    for line in _read(path).splitlines():
        words = line.split()
        if words[:1] == [kind]:
            return float(words[1].removeprefix("avg10="))
    message = f"the pressure file has no line {kind!r}"
    raise UnknownFactError(message)


def running_processes(root: str = "", *, numbered: bool = False) -> list[str]:
    """Return the names of other programs that run or wait for a disk right now."""
    mine = {os.getpid(), os.getppid()}
    found = [
        _told(name, pid, numbered)
        for pid, name, state, _ in _processes(root)
        if state in "RD" and pid not in mine
    ]
    return sorted(found)[:_MOST_NAMED]


def large_processes(root: str = "", *, numbered: bool = False) -> list[str]:
    """Return names and sizes of other programs that hold much memory, largest first."""
    least = _LARGE_SHARE * _total_bytes(root)
    found = [
        (size, name, pid)
        for pid, name, _, size in _processes(root)
        if size >= least and pid != os.getpid()
    ]
    found.sort(reverse=True)
    return [
        _told(f"{name} {size / 2**30:.1f} GiB", pid, numbered)
        for size, name, pid in found[:_MOST_NAMED]
    ]


def _told(text: str, pid: int, numbered: bool) -> str:
    return f"{text} (pid {pid})" if numbered else text


def _processes(root: str) -> Iterator[tuple[int, str, str, int]]:
    """Yield process id, name, state and resident bytes of every process seen.

    Names only: arguments may hold secrets. Source: proc_pid_stat(5); a name may hold
    blanks and parentheses, so the last one ends it.
    """
    for entry in os.listdir(f"{root}/proc"):
        if not entry.isdigit():
            continue
        try:
            text = _read(f"{root}/proc/{entry}/stat")
        except OSError:
            continue  # It ended meanwhile.
        head, _, tail = text.rpartition(")")
        fields = tail.split()
        if len(fields) > 21:
            name = head.partition("(")[2]
            yield int(entry), name, fields[0], int(fields[21]) * _PAGE_BYTES


def _total_bytes(root: str) -> int:
    for line in _read(f"{root}/proc/meminfo").splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    message = "/proc/meminfo has no MemTotal"
    raise UnknownFactError(message)


def power_source(root: str = "") -> str:
    """Return ``mains`` or ``battery``; on battery many machines are slower."""
    folder = f"{root}/sys/class/power_supply"
    names = os.listdir(folder) if os.path.isdir(folder) else []
    for name in sorted(names):
        path = f"{folder}/{name}/online"
        if os.path.exists(path):
            return "mains" if _read(path).strip() == "1" else "battery"
    message = "this machine tells of no power supply"
    raise UnknownFactError(message)


def governor(root: str = "") -> str:
    """Return how the kernel chooses the clock rate of the first CPU."""
    path = f"{root}/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
    if not os.path.exists(path):
        message = "this kernel does not choose clock rates"
        raise UnknownFactError(message)
    return _read(path).strip()


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()
