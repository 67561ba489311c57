"""Read a ``pylock.toml`` and select what it installs on one kind of machine.

Source: PEP 751. Selection is `packaging.pylock`'s; this adds that every package is
tried, so that all blockers are known and not just the first.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from reprobundle.errors import LockFileError
from reprobundle.format.lock import PYLOCK_MEMBER
from reprobundle.run.targets import Target

if TYPE_CHECKING:
    from packaging.pylock import Package, Pylock


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """One file that is installed.

    Attributes:
        name: Normalised name of the package.
        version: Its version with the local label; empty for a source tree without.
        file: Name of the wheel or source archive.
        kind: ``wheel``, ``sdist``, ``archive``, ``vcs`` or ``directory``.
        sha256: Its digest; empty for a source tree.
        size_bytes: Its size, if the lock tells it.
        address: Where it can be fetched; empty when only a folder of wheels or the
            reader's own index serves it.
    """

    name: str
    version: str
    file: str
    kind: str
    sha256: str = ""
    size_bytes: int | None = None
    address: str = ""


class Blocker(msgspec.Struct, frozen=True, kw_only=True):
    """A package that is needed and cannot be had there.

    Attributes:
        name, version: The package; empty when nothing at all can be had.
        reason: Why.
    """

    name: str
    version: str
    reason: str


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """What a lock comes to on one kind of machine.

    Attributes:
        target: Name of the target.
        chosen: What is installed, by name.
        blockers: What is needed there and not published for it.
        dropped: Names of packages that only other systems need.
    """

    target: str
    chosen: tuple[Chosen, ...]
    blockers: tuple[Blocker, ...]
    dropped: tuple[str, ...]

    @property
    def size_bytes(self) -> int:
        """Size of all files whose size is known."""
        return sum(one.size_bytes or 0 for one in self.chosen)


def parse_pylock(data: bytes, where: str = PYLOCK_MEMBER) -> Pylock:
    """Return the lock in `data`, validated.

    Raises:
        LockFileError: It is no lock of a version that is understood.
    """
    from packaging.pylock import (
        Pylock,
        PylockUnsupportedVersionError,
        PylockValidationError,
    )

    try:
        return Pylock.from_dict(read_toml(data))
    except (
        PylockUnsupportedVersionError,
        PylockValidationError,
        RecursionError,
        ValueError,
    ) as error:
        reason = " ".join(str(error).split())
        raise LockFileError(f"{where} is no lock that can be read: {reason}") from error


def read_toml(data: bytes) -> dict[str, Any]:
    """Return a TOML document.

    Raises:
        ValueError: It is none.
    """
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    document: dict[str, Any] = tomllib.loads(data.decode())
    return document


def select(lock: Pylock, target: Target) -> Selection:
    """Return what `lock` installs on `target`.

    Raises:
        LockFileError: A marker or a file name in it means nothing.
    """
    try:
        return _selected(lock, target)
    except (KeyError, RecursionError, ValueError) as error:
        # A marker may parse and still compare what cannot be compared.
        reason = " ".join(str(error).split())
        raise LockFileError(f"the lock cannot be evaluated: {reason}") from error


def _selected(lock: Pylock, target: Target) -> Selection:
    if not _speaks_of(lock, target):
        # Every package is marked for other machines then, and none would be missed.
        reason = f"the lock was not made for {target.name}"
        blocker = Blocker(name="", version="", reason=reason)
        return Selection(target=target.name, chosen=(), blockers=(blocker,), dropped=())
    chosen: list[Chosen] = []
    blockers: list[Blocker] = []
    needed: set[str] = set()
    everything: dict[str, None] = {}
    for package in lock.packages:
        everything[package.name] = None
        if package.marker is not None and not package.marker.evaluate(
            dict(target.environment), context="lock_file"
        ):
            continue
        needed.add(package.name)
        found = _choose(lock, package, target)
        if isinstance(found, Blocker):
            blockers.append(found)
        else:
            chosen.append(found)
    blockers += _unavailable(lock, target)
    return Selection(
        target=target.name,
        chosen=tuple(sorted(chosen, key=lambda one: one.name)),
        blockers=tuple(blockers),
        dropped=tuple(name for name in everything if name not in needed),
    )


def _speaks_of(lock: Pylock, target: Target) -> bool:
    """Whether `target` is one of the environments that the lock names, if it does."""
    markers = lock.environments
    return not markers or any(
        marker.evaluate(dict(target.environment), context="lock_file")
        for marker in markers
    )


def _unavailable(lock: Pylock, target: Target) -> Iterator[Blocker]:
    """Yield what the resolver found to be needed there and published nowhere."""
    ours = (lock.tool or {}).get("reprobundle", {})
    listed = ours.get("unavailable", ()) if isinstance(ours, dict) else ()
    for one in listed:
        if not isinstance(one, dict) or not _holds(str(one.get("marker", "")), target):
            continue
        yield Blocker(
            name=str(one.get("name", "")),
            version=str(one.get("version", "")),
            reason=str(one.get("reason", "no file of it is published for it")),
        )


def _holds(marker: str, target: Target) -> bool:
    from packaging.markers import InvalidMarker, Marker

    try:
        return not marker or Marker(marker).evaluate(
            dict(target.environment), context="lock_file"
        )
    except InvalidMarker:
        return True


def _choose(lock: Pylock, package: Package, target: Target) -> Chosen | Blocker:
    from dataclasses import replace

    from packaging.pylock import PylockSelectError

    alone = replace(lock, packages=(package,), environments=None, requires_python=None)
    try:
        picks = list(
            alone.select(environment=dict(target.environment), tags=target.tags)  # type: ignore[arg-type]
        )
    except PylockSelectError as error:
        return _blocker(package, " ".join(str(error).split()))
    if not picks:
        return _blocker(package, "its marker selects nothing")
    return _described(package, picks[0][1])


def _blocker(package: Package, reason: str) -> Blocker:
    wheels = package.wheels or ()
    published = sorted(
        {_platform(_file_name(one, str(one.url or ""))) for one in wheels}
    )
    if published:
        reason = f"its wheels are for {', '.join(published)}"
    return Blocker(name=package.name, version=str(package.version or ""), reason=reason)


def _platform(wheel: str) -> str:
    return wheel.removesuffix(".whl").rpartition("-")[2].partition(".")[0]


def _described(package: Package, found: object) -> Chosen:
    kinds = {
        "PackageWheel": "wheel",
        "PackageSdist": "sdist",
        "PackageArchive": "archive",
        "PackageVcs": "vcs",
        "PackageDirectory": "directory",
    }
    kind = kinds[type(found).__name__]
    hashes = getattr(found, "hashes", None) or {}
    address = str(getattr(found, "url", "") or "")
    return Chosen(
        name=package.name,
        version=str(package.version or ""),
        file=_file_name(found, address),
        kind=kind,
        sha256=str(hashes.get("sha256", "")),
        size_bytes=getattr(found, "size", None),
        address=address,
    )


def _file_name(found: object, address: str) -> str:
    named = getattr(found, "filename", "") or getattr(found, "name", "") or ""
    path = str(getattr(found, "path", "") or "")
    return str(named) or (path or address).rpartition("/")[2]


def requirement_lines(chosen: Iterable[Chosen]) -> tuple[list[str], list[str]]:
    """Return requirements for an installer: those with a digest, and those without.

    Every file that has a digest is asked for with it, so that an index can serve
    nothing else under the same version.
    """
    hashed, plain = [], []
    for one in chosen:
        if one.kind in ("vcs", "directory"):
            plain.append(f"{one.name} @ {one.address}")
        elif one.kind == "archive":
            hashed.append(f"{one.name} @ {one.address} --hash=sha256:{one.sha256}")
        else:
            hashed.append(f"{one.name}=={one.version} --hash=sha256:{one.sha256}")
    return hashed, plain
