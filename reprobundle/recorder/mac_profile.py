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


def probes(run: Run, *, numbered: bool = False) -> Iterator[Probe]:
    """Yield the probes about the hardware profile and the moment.

    Args:
        run: Runs a system command.
        numbered: Name other programs with their process ids (see `linux_state`).
    """
    profile = _Profile(run)
    programs = _Programs(run, numbered=numbered)
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


class _Program:
    """Another program: its share of a CPU in percent, resident bytes, name and id."""

    # No named tuple: `typing` loads `re` and `enum` before a project's own.
    def __init__(self, *, percent: float, size: int, name: str, pid: int) -> None:
        self.percent = percent
        self.size = size
        self.name = name
        self.pid = pid


class _Programs:
    """Other programs, asked once."""

    def __init__(self, run: Run, *, numbered: bool) -> None:
        self._run = run
        self._numbered = numbered
        self._found: list[_Program] | None = None

    def _all(self) -> list[_Program]:
        if self._found is None:
            # -c gives the program's name alone: paths and arguments may hold secrets.
            columns = "pid=,%cpu=,rss=,comm="
            text = self._run(("/bin/ps", "-A", "-c", "-o", columns))
            rows = (line.split(None, 3) for line in text.splitlines())
            self._found = [
                _Program(
                    percent=float(percent.replace(",", ".")),
                    size=int(kibibytes) * 1024,
                    name=name.strip(),
                    pid=int(pid),
                )
                for pid, percent, kibibytes, name in (r for r in rows if len(r) == 4)
            ]
        return self._found

    def running(self) -> list[str]:
        busy = [one for one in self._all() if one.percent >= _BUSY_PERCENT]
        busy.sort(key=lambda one: (one.percent, one.size), reverse=True)
        told = [self._told(one, f"{one.percent:.0f} %") for one in busy]
        return told[:_MOST_NAMED]

    def large(self) -> list[str]:
        found = [one for one in self._all() if one.size >= _LARGE_BYTES]
        found.sort(key=lambda one: one.size, reverse=True)
        told = [self._told(one, f"{one.size / 2**30:.1f} GiB") for one in found]
        return told[:_MOST_NAMED]

    def _told(self, one: _Program, amount: str) -> str:
        number = f" (pid {one.pid})" if self._numbered else ""
        return f"{one.name} {amount}{number}"
