"""One lock of what every target came to, with what a stranger can use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from reprobundle.run.package_origin import clean_address, is_private
from reprobundle.run.pylock_file import parse_pylock
from reprobundle.run.targets import Target

_SOURCES = frozenset({"wheels", "sdist", "archive", "vcs", "directory"})


class Resolved(NamedTuple):
    """What one target comes to: packages as uv states them, and what it cannot have."""

    target: Target
    packages: list[dict[str, Any]]
    absent: dict[str, tuple[str, str]]


def merge(resolved: list[Resolved], pythons: str) -> bytes:
    """Return one lock of what all targets came to.

    Args:
        resolved: The targets.
        pythons: The releases of Python that it is for, as a specifier.
    """
    import tomli_w

    tags = frozenset(tag for one in resolved for tag in one.target.tags)
    merged: dict[str, dict[str, Any]] = {}
    unavailable: list[dict[str, str]] = []
    for one in resolved:
        unavailable += _unavailable(one)
        for package in one.packages:
            if not _SOURCES.intersection(package):
                # PEP 751 has no entry without a file.
                unavailable.append(_named(package, one.target))
                continue
            kept = _package(package, tags)
            marker = kept.pop("marker", one.target.marker)
            same = merged.setdefault(repr(kept), {**kept, "markers": []})
            same["markers"].append(f"({marker})")
    packages = []
    for package in sorted(merged.values(), key=lambda one: str(one["name"])):
        marker = " or ".join(dict.fromkeys(package.pop("markers")))
        packages.append({"name": package["name"], "marker": marker, **package})
    made = tomli_w.dumps(
        {
            "lock-version": "1.0",
            "environments": [one.target.marker for one in resolved],
            "requires-python": pythons,
            "created-by": "reprobundle",
            "packages": packages,
            "tool": {"reprobundle": {"unavailable": unavailable}},
        }
    ).encode()
    parse_pylock(made, "the new lock")
    return made


def _unavailable(one: Resolved) -> Iterator[dict[str, str]]:
    for name, (version, reason) in one.absent.items():
        yield {
            "name": name,
            "version": version,
            "marker": one.target.marker,
            "reason": reason,
        }


def _named(package: Mapping[str, Any], target: Target) -> dict[str, str]:
    return {
        "name": str(package["name"]),
        "version": str(package.get("version", "")),
        "marker": target.marker,
    }


def _package(package: Mapping[str, Any], tags: frozenset[object]) -> dict[str, Any]:
    kept = dict(package)
    kept.pop("index", None)
    if "wheels" in kept:
        fitting = [one for one in kept["wheels"] if _fits(_name(one), tags)]
        # A package without a wheel for any target keeps all: they say what it is for.
        kept["wheels"] = [_file(one) for one in fitting or kept["wheels"]]
    if "sdist" in kept:
        kept["sdist"] = _file(kept["sdist"])
    return kept


def _name(file: Mapping[str, Any]) -> str:
    place = str(file.get("url") or file.get("path") or "")
    return str(file.get("name") or urlsplit(place).path.rpartition("/")[2])


def _fits(wheel: str, tags: frozenset[object]) -> bool:
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    try:
        return not tags.isdisjoint(parse_wheel_filename(wheel.replace("%2B", "+"))[3])
    except InvalidWheelFilename:
        return False


def _file(file: Mapping[str, Any]) -> dict[str, Any]:
    """Return a file entry whose address a stranger can use, or its name alone."""
    kept = {key: file[key] for key in ("size", "hashes") if key in file}
    address = clean_address(str(file.get("url", "")))
    if (
        file.get("url")
        and urlsplit(address).scheme == "https"
        and not is_private(address)
    ):
        return {"url": address, **kept}
    return {"path": _name(file).replace("%2B", "+"), **kept}
