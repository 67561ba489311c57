"""Sample the memory of this process: at named points and by the clock."""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import os
import sys
from _thread import allocate_lock, start_new_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .devices import Devices
    from .session import Session

_INTERVAL_S = 0.2
_LONGEST_INTERVAL_S = 5.0
# After so many samples the interval doubles: a day of training gives a few thousand.
_SAMPLES_PER_INTERVAL = 1500
_CLOCK = "clock"
_TRIES = 200


class Memory:
    """Read the counters, without ever starting or waiting for a device."""

    def __init__(self, session: Session, devices: Devices) -> None:
        self._session = session
        self._devices = devices
        self._torch: Any = None

    def use_torch(self, torch: Any) -> None:
        """Read torch's allocators too from now on, where they are in use."""
        self._torch = torch

    def sample(self, point: str, *, peaks: bool = False) -> None:
        """Send one sample.

        Args:
            point: ``start``, ``torch imported``, ``step 8``, ``clock``, ``end`` …
            peaks: Add the largest values since the process started.
        """
        self._session.attempt("memory", self._sample, point, peaks)

    def _sample(self, point: str, peaks: bool) -> None:
        counters = host_counters(peaks=peaks)
        if self._torch is not None:
            self._session.attempt("memory cuda", self._add_cuda, counters, peaks)
            self._session.attempt("memory mps", self._add_mps, counters)
        self._session.emit("memory", point=point, bytes=counters)

    def _add_cuda(self, counters: dict[str, int], peaks: bool) -> None:
        if not self._devices.cuda_in_use:
            return
        cuda = self._torch.cuda
        numbers = range(cuda.device_count())
        counters["cuda_allocated"] = sum(cuda.memory_allocated(n) for n in numbers)
        counters["cuda_reserved"] = sum(cuda.memory_reserved(n) for n in numbers)
        if peaks:
            peak = sum(cuda.max_memory_allocated(n) for n in numbers)
            counters["cuda_peak_allocated"] = peak

    def _add_mps(self, counters: dict[str, int]) -> None:
        if not self._devices.mps_in_use:
            return
        mps = self._torch.mps
        counters["mps_allocated"] = mps.current_allocated_memory()
        counters["mps_driver"] = mps.driver_allocated_memory()


def host_counters(*, peaks: bool) -> dict[str, int]:
    """Return ``rss`` in bytes where it can be read, and ``rss_peak`` if asked.

    The peak comes from ``VmHWM`` on Linux: ``ru_maxrss`` there survives ``exec`` and
    may be that of the program that started this one.
    """
    if sys.platform == "darwin":
        from .macos import resident_counters

        return resident_counters(peaks=peaks)
    with open("/proc/self/statm", "rb") as file:
        pages = int(file.read().split()[1])
    counters = {"rss": pages * os.sysconf("SC_PAGE_SIZE")}
    if peaks:
        counters["rss_peak"] = _high_water_mark()
    return counters


def _high_water_mark() -> int:
    with open("/proc/self/status", "rb") as file:
        for line in file:
            if line.startswith(b"VmHWM:"):
                return int(line.split()[1]) * 1024
    message = "/proc/self/status has no VmHWM line"
    raise OSError(message)


class Sampler:
    """Take a sample every fifth of a second in a thread of its own.

    The thread is a bare one: it is not in ``threading.enumerate()``, so a script that
    waits for all other threads does not wait for it. It ends before a fork and starts
    again after it: a fork in a process with several threads is a warning in Python
    3.12 and later, and could copy an allocator's lock in a locked state.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._wake = allocate_lock()
        self._ended = allocate_lock()
        self._running = False
        self._taken = 0
        self._interval_s = _INTERVAL_S

    def start(self) -> None:
        """Start sampling, unless it runs."""
        if self._running:
            return
        self._wake = allocate_lock()
        self._ended = allocate_lock()
        self._wake.acquire()
        self._ended.acquire()
        start_new_thread(self._run, (self._wake, self._ended))
        self._running = True

    def stop(self) -> bool:
        """Stop sampling and wait for the thread's end; tell whether it ran."""
        if not self._running:
            return False
        self._running = False
        counted = sys.version_info >= (3, 12)
        before = _thread_count() if counted else 0
        self._wake.release()
        self._ended.acquire()
        if counted:
            _wait_for_fewer_threads(before)
        return True

    def forget(self) -> None:
        """Do not look for the thread any more: this is the child of a fork."""
        self._running = False

    def _run(self, wake: Any, ended: Any) -> None:
        try:
            while not wake.acquire(timeout=self._interval_s):
                self._memory.sample(_CLOCK)
                self._taken += 1
                if self._taken % _SAMPLES_PER_INTERVAL == 0:
                    longer = self._interval_s * 2
                    self._interval_s = min(longer, _LONGEST_INTERVAL_S)
        finally:
            ended.release()


def _thread_count() -> int:
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return 0


def _wait_for_fewer_threads(before: int) -> None:
    """Wait until the kernel has removed the ended thread, for some microseconds.

    Python counts threads by what the kernel shows; one that has just run its last
    instruction is still there.
    """
    for _ in range(_TRIES):
        if _thread_count() < before:
            break
