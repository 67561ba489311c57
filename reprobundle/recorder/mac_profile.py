"""Read what a Mac tells slowly: its hardware profile, its power, other programs.

Sources: ``system_profiler(8)`` with ``-json``, ``pmset(1)``, ``ps(1)``. The profile
also holds serial numbers; only the named keys are taken from it.
"""

from __future__ import annotations

from .facts import UnknownFactError
from .jsontext import decode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from .facts import Probe

    Run = Callable[[Sequence[str]], str]

_PROFILER = ("/usr/sbin/system_profiler", "-json")
_KINDS = ("SPHardwareDataType", "SPDisplaysDataType")
_MOST_NAMED = 8
_BUSY_PERCENT = 20.0
_LARGE_BYTES = 1 << 30


def probes(run: Run) -> Iterator[Probe]:
    """Yield the probes about the hardware profile and the moment."""
    profile = _Profile(run)
    programs = _Programs(run)
    hardware = "system_profiler SPHardwareDataType"
    displays = "system_profiler SPDisplaysDataType"
    yield "machine.chip", hardware, lambda: profile.text(_KINDS[0], "chip_type")
    yield "gpu.models", displays, lambda: profile.texts(_KINDS[1], "sppci_model")
    yield "gpu.cores", displays, lambda: int(profile.text(_KINDS[1], "sppci_cores"))
    yield (
        "gpu.metal",
        displays,
        lambda: profile.text(_KINDS[1], "spdisplays_mtlgpufamilysupport"),
    )
    yield "state.power_source", "pmset -g batt", lambda: power_source(run)
    yield "state.low_power_mode", "pmset -g", lambda: low_power_mode(run)
    yield "state.running_processes", "ps", programs.running
    yield "state.large_processes", "ps", programs.large


class _Profile:
    """The hardware profile, asked once."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._content: dict[str, Any] | None = None

    def texts(self, kind: str, key: str) -> list[str]:
        """Return a key's value of every device of a kind.

        Raises:
            UnknownFactError: No device of this kind has the key.
        """
        if self._content is None:
            self._content = decode(self._run((*_PROFILER, *_KINDS)))
        items = self._content.get(kind, [])
        found = [str(item[key]) for item in items if key in item]
        if not found:
            message = f"system_profiler lists no {key}"
            raise UnknownFactError(message)
        return found

    def text(self, kind: str, key: str) -> str:
        return self.texts(kind, key)[0]


def power_source(run: Run) -> str:
    """Return ``mains`` or ``battery``; on battery a Mac may be slower."""
    first = run(("/usr/bin/pmset", "-g", "batt")).splitlines()[:1]
    if first and "AC Power" in first[0]:
        return "mains"
    if first and "Battery Power" in first[0]:
        return "battery"
    message = "pmset names no power source"
    raise UnknownFactError(message)


def low_power_mode(run: Run) -> bool:
    """Tell whether the low power mode is on, which slows CPU and GPU."""
    for line in run(("/usr/bin/pmset", "-g")).splitlines():
        words = line.split()
        # Macs with a high power mode have powermode: 0 automatic, 1 low, 2 high.
        if words[:1] in (["lowpowermode"], ["powermode"]):
            return words[1] == "1"
    message = "this Mac has no low power mode"
    raise UnknownFactError(message)


class _Programs:
    """Other programs, asked once: share of a CPU, resident size, name."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._found: list[tuple[float, int, str]] | None = None

    def _all(self) -> list[tuple[float, int, str]]:
        if self._found is None:
            # -c gives the program's name alone: paths and arguments may hold secrets.
            text = self._run(("/bin/ps", "-A", "-c", "-o", "%cpu=,rss=,comm="))
            rows = (line.split(None, 2) for line in text.splitlines())
            self._found = [
                (float(row[0].replace(",", ".")), int(row[1]) * 1024, row[2].strip())
                for row in rows
                if len(row) == 3
            ]
        return self._found

    def running(self) -> list[str]:
        busy = sorted(one for one in self._all() if one[0] >= _BUSY_PERCENT)
        names = [f"{name} {cpu:.0f} %" for cpu, _, name in reversed(busy)]
        return names[:_MOST_NAMED]

    def large(self) -> list[str]:
        found = [(size, name) for _, size, name in self._all() if size >= _LARGE_BYTES]
        found.sort(reverse=True)
        return [f"{name} {size / 2**30:.1f} GiB" for size, name in found[:_MOST_NAMED]]
