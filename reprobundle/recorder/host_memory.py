"""Read the memory of this process and of the whole system, on Linux.

Sources: ``proc(5)`` for ``/proc/self/statm``, ``status``, ``smaps_rollup`` and
``/proc/meminfo``; the kernel's ``Documentation/accounting/psi.rst`` for
``/proc/pressure/memory``. What this system does not offer is left out.
"""

from __future__ import annotations

import os
import sys

from .session import moved_up

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class _Statm:
    """``/proc/self/statm``, opened once: opening takes longer than reading.

    The open file stays that of the process which opened it, so a fork opens anew; so
    does one whose script closed all descriptors.
    """

    def __init__(self) -> None:
        self._descriptor = -1
        self._pid = 0
        self._identity = (0, 0)
        self._page_bytes = os.sysconf("SC_PAGE_SIZE")

    def read(self) -> bytes:
        """Return what stands there.

        Raises:
            OSError: There is no ``/proc``.
        """
        if self._pid != os.getpid() or not self._is_open():
            self._open()
        return os.pread(self._descriptor, 200, 0)

    def decode(self, text: bytes) -> dict[str, int]:
        """Return the resident bytes, and those that no file stands behind."""
        pages = text.split()
        resident, shared = int(pages[1]), int(pages[2])
        size = self._page_bytes
        return {"rss": resident * size, "anonymous": (resident - shared) * size}

    def _is_open(self) -> bool:
        """Tell whether the descriptor is still ours, and not a file of the user's."""
        if self._descriptor < 0:
            return False
        try:
            status = os.fstat(self._descriptor)
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == self._identity

    def _open(self) -> None:
        if self._is_open():
            os.close(self._descriptor)  # The parent's, in a fork.
        self._descriptor = -1
        flags = os.O_RDONLY | os.O_CLOEXEC
        descriptor = moved_up(os.open("/proc/self/statm", flags))
        status = os.fstat(descriptor)
        self._identity = (status.st_dev, status.st_ino)
        self._descriptor, self._pid = descriptor, os.getpid()


_statm = _Statm()


def reading() -> bytes | dict[str, int]:
    """Read the counters of this process as fast as can be; `counters_of` decodes.

    Raises:
        OSError: This system does not tell.
    """
    if sys.platform == "darwin":
        from .macos import resident_counters

        return resident_counters(peaks=False)
    return _statm.read()


def counters_of(read: bytes | dict[str, int]) -> dict[str, int]:
    """Return bytes by counter, new and the caller's own.

    Args:
        read: By `reading`.
    """
    return _statm.decode(read) if isinstance(read, bytes) else dict(read)


def process_counters(*, whole: bool) -> dict[str, int]:
    """Return bytes by counter.

    ``rss`` is what is resident, ``anonymous`` the part of it that no file stands
    behind: tensors and Python objects are there, libraries are not. On macOS
    ``footprint`` stands in its place.

    Args:
        whole: Add ``rss_peak``, and on Linux ``pss`` (pages shared with n processes
            count 1/n), which the kernel has to walk all page tables for.
    """
    if sys.platform == "darwin":
        from .macos import resident_counters

        return resident_counters(peaks=whole)
    counters = _statm.decode(_statm.read())
    if whole:
        # ``ru_maxrss`` survives ``exec`` on Linux and may be that of the program that
        # started this one.
        counters.update(_kibibytes("/proc/self/status", {"VmHWM": "rss_peak"}))
        counters.update(_kibibytes("/proc/self/smaps_rollup", {"Pss": "pss"}))
    return counters


def system_counters() -> dict[str, int]:
    """Return ``system_available`` and ``system_swap_free`` in bytes."""
    if sys.platform == "darwin":
        return {}
    wanted = {"MemAvailable": "system_available", "SwapFree": "system_swap_free"}
    return _kibibytes("/proc/meminfo", wanted)


def pressure() -> dict[str, float]:
    """Return how short of memory the system is.

    On Linux ``some_avg10_percent``: the share of the last ten seconds in which some
    task waited for memory. On macOS ``level`` (1 normal, 2 warning, 4 critical) and
    ``free_percent``, the two that ``memory_pressure(1)`` prints.
    """
    if sys.platform == "darwin":
        return _pressure_of_macos()
    try:
        with open("/proc/pressure/memory", "rb") as file:
            first = file.readline().split()
    except OSError:
        return {}
    shares = [float(part[6:]) for part in first if part.startswith(b"avg10=")]
    return {"some_avg10_percent": shares[0]} if shares else {}


def _pressure_of_macos() -> dict[str, float]:
    """Read two integers by ``sysctlbyname(3)``; a name it does not know is left out."""
    import ctypes

    library = ctypes.CDLL("/usr/lib/libSystem.B.dylib")
    names = {
        b"kern.memorystatus_vm_pressure_level": "level",
        b"kern.memorystatus_level": "free_percent",
    }
    found = {}
    for name, counter in names.items():
        value, size = ctypes.c_int(0), ctypes.c_size_t(4)
        failed = library.sysctlbyname(
            name, ctypes.byref(value), ctypes.byref(size), None, ctypes.c_size_t(0)
        )
        if not failed:
            found[counter] = float(value.value)
    return found


def _kibibytes(path: str, names: dict[str, str]) -> dict[str, int]:
    try:
        with open(path, "rb") as file:
            return dict(_found(file, names))
    except OSError:
        return {}


def _found(lines: Iterable[bytes], names: dict[str, str]) -> list[tuple[str, int]]:
    found = []
    for line in lines:
        name, _, rest = line.partition(b":")
        counter = names.get(name.decode("ascii", "replace"))
        if counter:
            found.append((counter, int(rest.split()[0]) * 1024))
            if len(found) == len(names):
                break
    return found
