"""Sample the memory of this process: at named points and by the clock."""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import os
import sys
from _thread import allocate_lock, start_new_thread
from time import monotonic_ns

from . import host_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable
    from typing import Any

    from .devices import Devices
    from .hardware.kind import DeviceKind
    from .session import Session
    from .shapes import Shapes

    # When, the point, what was read, further counters, pressure, how the device was
    # waited for, optimizer steps, different inputs.
    _Sample = tuple[
        int,
        str,
        bytes | dict[str, int],
        dict[str, int],
        dict[str, float],
        str,
        int,
        int,
    ]
else:
    # ``collections`` is Python code, and may be the project's own by that name.
    from _collections import deque

_INTERVAL_S = 0.2
# After so many samples the interval doubles, and so on: their number grows with the
# logarithm of the run time, a day gives some 3,200.
_SAMPLES_PER_INTERVAL = 300
_CLOCK = "clock"
_TRIES = 200
# A sample between steps is written this much later at most, by the next one.
_HELD_NS = 500_000_000


class Memory:
    """Read the counters, without ever starting a device.

    A sample between two steps is only read there. It is decoded and written with the
    next one by the clock, or half a second later: between kernels, with nothing of
    ours in the caches, that takes ten times as long as reading. A process that is
    killed loses those of its last fifth of a second, nothing else.

    Args:
        session: Where events go.
        devices: Which allocators are in use; waits for the device at named points.
        shapes: The model inputs so far.
        steps: Returns the number of optimizer steps so far.
    """

    def __init__(
        self,
        session: Session,
        devices: Devices,
        shapes: Shapes,
        steps: Callable[[], int],
    ) -> None:
        self._session = session
        self._devices = devices
        self._shapes = shapes
        self._steps = steps
        self._torch: Any = None
        # Appending and taking are single operations for all threads.
        self._unwritten: deque[_Sample] = deque()
        self._due_ns = 0

    def continue_in_fork(self) -> None:
        """Forget what is not written yet: it is the parent's."""
        self._unwritten.clear()

    def use_torch(self, torch: Any) -> None:
        """Read torch's allocators too from now on, where they are in use."""
        self._torch = torch

    @property
    def device_in_use(self) -> bool:
        """Tell whether an allocator of a device is in use."""
        return bool(self._devices.accelerators_in_use())

    def sample(
        self, point: str, *, whole: bool = False, held: dict[str, int] | None = None
    ) -> None:
        """Take one sample of a named point, after waiting for the device in use.

        Args:
            point: ``start``, ``torch imported``, ``step 8``, ``end`` …
            whole: Add what takes longer to read (peaks, shared pages, the system), and
                write it at once.
            held: Further counters that the caller read.
        """
        self._session.attempt("memory", self._sample, point, whole, held)

    def sample_by_clock(self) -> None:
        """Send one sample from a thread of ours, which never waits for a device."""
        self._session.attempt("memory", self._sample_by_clock)

    def flush(self) -> None:
        """Write the samples that were only read so far."""
        samples = []
        while self._unwritten:
            try:
                samples.append(self._unwritten.popleft())
            except IndexError:
                break  # Another thread took the last one.
        if samples:
            self._session.emit_all([_event(sample) for sample in samples])

    def _sample(self, point: str, whole: bool, held: dict[str, int] | None) -> None:
        waited = self._devices.synchronize() if self._torch is not None else "cpu"
        read = host_memory.process_counters(whole=True) if whole else None
        # After a wait for nothing no device is in use.
        more = self._of_devices(whole=whole) if waited != "cpu" else {}
        if held:
            more.update(held)
        if not self._unwritten:
            self._due_ns = monotonic_ns() + _HELD_NS
        t_ns = self._hold(point, read, more, waited, system=whole)
        if whole or t_ns > self._due_ns:
            self.flush()

    def _sample_by_clock(self) -> None:
        self._hold(_CLOCK, None, self._of_devices(whole=False), "", system=True)
        self.flush()

    def _hold(
        self,
        point: str,
        read: bytes | dict[str, int] | None,
        more: dict[str, int],
        waited: str,
        *,
        system: bool,
    ) -> int:
        """Keep one sample to be written; return when it was taken."""
        if read is None:
            read = host_memory.reading()
        t_ns = monotonic_ns()
        pressure: dict[str, float] = {}
        if system:
            more = {**more, **host_memory.system_counters()}
            pressure = host_memory.pressure()
        shapes = self._shapes.distinct
        self._unwritten.append(
            (t_ns, point, read, more, pressure, waited, self._steps(), shapes)
        )
        return t_ns

    def _of_devices(self, *, whole: bool) -> dict[str, int]:
        counters: dict[str, int] = {}
        for kind in self._devices.accelerators_in_use():
            self._session.attempt(
                f"memory {kind.type}", self._add, kind, counters, whole
            )
        return counters

    @staticmethod
    def _add(kind: DeviceKind, counters: dict[str, int], whole: bool) -> None:
        # What was read before one counter fails stays.
        counters.update(kind.counters(whole=whole))


def _event(sample: _Sample) -> dict[str, object]:
    t_ns, point, read, more, pressure, waited, step, shapes = sample
    return {
        "t_ns": t_ns,
        "event": "memory",
        "point": point,
        "bytes": {**host_memory.counters_of(read), **more},
        "pressure": pressure,
        "synchronized": waited,
        "step": step,
        "shapes": shapes,
    }


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
                self._memory.sample_by_clock()
                self._taken += 1
                if self._taken % _SAMPLES_PER_INTERVAL == 0:
                    self._interval_s *= 2
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
