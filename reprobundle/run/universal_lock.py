"""Turn the live environment into one lock for every target: ``lock/pylock.toml``.

uv resolves the packages that nothing else requires, held to the recorded versions, for
all systems at once. A build with a local label (``+cpu``, ``+cu130``) is asked for only
where the run was made; other systems get the plain release of the same version. What
comes out is PEP 751, cut to the wheels that a target can install, without any address
that only this machine can reach.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from reprobundle.errors import NoResolutionError
from reprobundle.format.lock import Distribution, Lock
from reprobundle.run.package_origin import clean_address, is_private, normalised
from reprobundle.run.package_sources import (
    find_uv,
    pip_settings,
    uv_environment,
)
from reprobundle.run.pylock_file import parse_pylock, read_toml
from reprobundle.run.requirements import TOOLS
from reprobundle.run.targets import Target, all_targets, target_of

if TYPE_CHECKING:
    from packaging.requirements import Requirement

TIMEOUT_SECONDS = 120
_PROJECT = "{project}"
_SOURCES = frozenset({"wheels", "sdist", "archive", "vcs", "directory"})


def make_pylock(lock: Lock, *, python: Path, cache: Path) -> bytes:
    """Return a lock for all targets that installs what `lock` records.

    Args:
        lock: The live environment.
        python: Its interpreter, whose pip says where packages come from.
        cache: A folder of our own for what uv fetches.

    Raises:
        NoResolutionError: uv is not there, no index answers, or no set of packages
            fits all targets; the message says which.
    """
    uv = find_uv()
    if uv is None:
        raise NoResolutionError("uv is not installed", advice="install uv")
    with tempfile.TemporaryDirectory(prefix="reprobundle-lock-") as name:
        folder = Path(name)
        (folder / "in.txt").write_text(_lines(_wanted(lock)))
        (folder / "held.txt").write_text(_lines(_held(lock)))
        command = [
            *(str(uv), "pip", "compile", "in.txt", "--constraint", "held.txt"),
            *("--universal", "--python-version", lock.python.minor),
            *("--format", "pylock.toml", "--output-file", "pylock.toml"),
            *("--no-header", "--no-annotate", "--quiet", "--no-config"),
        ]
        environment = uv_environment(
            pip_settings(python), cache=cache, temporary=folder
        )
        _compile(command, folder, environment)
        resolved = (folder / "pylock.toml").read_bytes()
    return _cleaned(resolved, lock)


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _compile(command: list[str], folder: Path, environment: Mapping[str, str]) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=TIMEOUT_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        message = f"no answer from uv within {TIMEOUT_SECONDS} s"
        raise NoResolutionError(message) from error
    except OSError as error:
        raise NoResolutionError(f"uv cannot be run: {error.strerror}") from error
    if done.returncode != 0:
        raise NoResolutionError(_reason(done.stderr))


def _reason(printed: str) -> str:
    """Return uv's own reason in one line, without addresses."""
    text = re.sub(r"\S+://\S+", "an index", printed)
    text = re.sub(r"^\s*[×╰─▶hint:]+\s*", "", text, flags=re.MULTILINE)
    words = " ".join(text.split())
    return f"uv says: {words[:400]}" if words else "uv failed without a word"


# --- what is asked for


def roots(lock: Lock) -> tuple[Distribution, ...]:
    """Return the distributions that no other one requires, then what they miss.

    A requirement counts if its marker holds where the run was made and no extra is
    needed for it: what an extra brought in is wanted for itself. What the project
    requires is wanted for itself too, for the project is in the bundle and not in
    the lock.
    """
    target = target_of(lock.python)
    required = {
        item.name: {normalised(one.name) for one in _requirements(item, target)}
        for item in lock.distributions
        if not _is_left_out(item)
    }
    someone = {
        other for name, names in required.items() for other in names if other != name
    }
    wanted = [item for item in lock.distributions if not _is_left_out(item)]
    found = [item for item in wanted if item.name not in someone]
    reached = _closure((item.name for item in found), required)
    for item in wanted:
        # A ring of packages that require each other has no root of its own.
        if item.name not in reached:
            found.append(item)
            reached |= _closure([item.name], required)
    return tuple(found)


def _requirements(item: Distribution, target: Target) -> Iterator[Requirement]:
    from packaging.requirements import InvalidRequirement, Requirement

    for text in item.requires:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        marker = requirement.marker
        if marker is None or marker.evaluate({**target.environment, "extra": ""}):
            yield requirement


def _closure(names: Iterable[str], required: Mapping[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += required.get(name, ())
    return reached


def _wanted(lock: Lock) -> Iterator[str]:
    for item in roots(lock):
        if item.origin in ("url", "vcs"):
            if not is_private(item.detail):
                yield f"{item.name} @ {item.detail}"
        elif item.origin == "index" or item.local_label:
            yield from _pins(item, lock)


def _held(lock: Lock) -> Iterator[str]:
    for item in lock.distributions:
        if not _is_left_out(item) and item.origin not in ("url", "vcs"):
            yield from _pins(item, lock)


def _pins(item: Distribution, lock: Lock) -> Iterator[str]:
    """Yield the recorded version, a labelled build only where the run was made."""
    here = target_of(lock.python).marker
    public, _, label = item.version.partition("+")
    if item.platform_bound:
        yield f"{item.name}=={item.version} ; {here}"
    elif label:
        elsewhere = here.replace("==", "!=").replace(" and ", " or ")
        yield f"{item.name}=={item.version} ; {here}"
        yield f"{item.name}=={public} ; {elsewhere}"
    else:
        yield f"{item.name}=={item.version}"


def _is_left_out(item: Distribution) -> bool:
    return item.name in TOOLS or item.detail.startswith(_PROJECT)


# --- what is kept of the answer


def _cleaned(data: bytes, lock: Lock) -> bytes:
    """Return the lock with the wheels of our targets and no private address."""
    import tomli_w

    targets = all_targets(lock.python)
    tags = frozenset(tag for target in targets for tag in target.tags)
    packages = read_toml(data)["packages"]
    # uv names a package that a target needs and no index publishes for it; PEP 751
    # has no entry without a file, so it goes where `select` finds it.
    absent = [one for one in packages if not _SOURCES.intersection(one)]
    document: dict[str, Any] = {
        "lock-version": "1.0",
        "environments": [target.marker for target in targets],
        "requires-python": f"=={lock.python.minor}.*",
        "created-by": "reprobundle",
        "packages": [_package(one, tags) for one in packages if one not in absent],
    }
    made = tomli_w.dumps(document).encode()
    parse_pylock(made, "the new lock")
    return made


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


def _named(package: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: package[key] for key in ("name", "version", "marker") if key in package
    }


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
