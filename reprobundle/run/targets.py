"""The kinds of machine a lock has to serve: how they mark and tag packages.

Sources: PEP 508 (environment markers), PEP 425 and PEP 600 (tags), and the support
tables of the newest torch release: glibc 2.28 on Linux, macOS 14 on Apple Silicon.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from reprobundle.errors import BadCallError
from reprobundle.format.lock import Interpreter

if TYPE_CHECKING:
    from packaging.tags import Tag

# The oldest system that torch is built for decides which wheels count.
GLIBC = (2, 28)
MACOS = (14, 0)


class Target(msgspec.Struct, frozen=True, dict=True):
    """One kind of machine with one Python.

    Attributes:
        name: ``linux-x86_64``, ``linux-aarch64``, ``macos-arm64``, or what an
            interpreter says of itself.
        system: As ``sys.platform`` says it.
        machine: As ``platform.machine()`` says it.
        python: Full Python version.
        implementation: ``CPython`` or another.
        platforms: Platform tags, the most specific first.
    """

    name: str
    system: str
    machine: str
    python: str
    implementation: str
    platforms: tuple[str, ...]

    @property
    def marker(self) -> str:
        """The environment marker that is true on this kind of machine only."""
        return (
            f"sys_platform == '{self.system}' and platform_machine == '{self.machine}'"
        )

    @cached_property
    def environment(self) -> Mapping[str, str]:
        """Values of all environment markers."""
        names = {"linux": "Linux", "darwin": "Darwin", "win32": "Windows"}
        return {
            "implementation_name": self.implementation.lower(),
            "implementation_version": self.python,
            "os_name": "nt" if self.system == "win32" else "posix",
            "platform_machine": self.machine,
            "platform_python_implementation": self.implementation,
            "platform_release": "",
            "platform_system": names.get(self.system, self.system),
            "platform_version": "",
            "python_full_version": self.python,
            "python_version": ".".join(self.python.split(".")[:2]),
            "sys_platform": self.system,
        }

    @cached_property
    def tags(self) -> tuple[Tag, ...]:
        """Tags of the wheels it installs, the best ones first."""
        from packaging.tags import compatible_tags, cpython_tags

        major, minor = self.python.split(".")[:2]
        version = (int(major), int(minor))
        interpreter = f"cp{major}{minor}"
        return (
            *cpython_tags(version, platforms=self.platforms),
            *compatible_tags(version, interpreter, self.platforms),
        )


TARGETS = ("linux-x86_64", "linux-aarch64", "macos-arm64")


def target_named(name: str, python: Interpreter) -> Target:
    """Return one of `TARGETS` with the Python of a lock.

    Raises:
        BadCallError: There is no such target.
    """
    if name not in TARGETS:
        raise BadCallError(
            f"no target {name!r}", advice=f"choose from {', '.join(TARGETS)}"
        )
    system, _, machine = name.partition("-")
    linux = system == "linux"
    return Target(
        name=name,
        system="linux" if linux else "darwin",
        machine=machine,
        python=python.version,
        implementation=python.implementation,
        platforms=_linux(machine, GLIBC) if linux else _macos(machine, MACOS),
    )


def all_targets(python: Interpreter) -> tuple[Target, ...]:
    """Return every target with the Python of a lock."""
    return tuple(target_named(name, python) for name in TARGETS)


def target_of(
    python: Interpreter | None = None,
    *,
    version: str = "",
    implementation: str = "",
    system: str = "",
    machine: str = "",
    release: tuple[int, int] = (0, 0),
) -> Target:
    """Return what a machine of this kind is as a target.

    Args:
        python: Takes the place of all but `release`.
        version: Python version.
        implementation: ``CPython`` or another.
        system: As ``sys.platform`` says it.
        machine: As ``platform.machine()`` says it.
        release: glibc's or macOS's version, as far as it is known.
    """
    if python is not None:
        version, implementation = python.version, python.implementation
        system, machine = python.system, python.architecture
    if system == "darwin":
        platforms = _macos(machine, max(release, (11, 0)))
    else:
        platforms = _linux(machine, max(release, (2, 17)))
    return Target(
        name=f"{'macos' if system == 'darwin' else system}-{machine}",
        system=system,
        machine=machine,
        python=version,
        implementation=implementation,
        platforms=platforms,
    )


def _linux(machine: str, glibc: tuple[int, int]) -> tuple[str, ...]:
    major, newest = glibc
    legacy = {17: "manylinux2014"}
    if machine == "x86_64":
        legacy |= {12: "manylinux2010", 5: "manylinux1"}
    found = []
    for minor in range(newest, 4, -1):
        found.append(f"manylinux_{major}_{minor}_{machine}")
        if minor in legacy:
            found.append(f"{legacy[minor]}_{machine}")
    return (*found, f"linux_{machine}")


def _macos(machine: str, release: tuple[int, int]) -> tuple[str, ...]:
    from packaging.tags import mac_platforms

    return tuple(mac_platforms(release, machine))
