"""Turn the live environment into one lock for every target: ``lock/pylock.toml``.

uv resolves the packages that nothing else requires, held to the recorded versions, once
for each target. A build with a local label (``+cpu``, ``+cu130``) is asked for only
where the run was made; other systems get the plain release of the same version. A
package that a target cannot have becomes a blocker of that target and spoils no other
one. What comes out is PEP 751, cut to the wheels that a target can install, without any
address that only this machine can reach.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
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
_ENDED = "it was ended before it was made"
MOST_BLOCKERS = 20
_PROJECT = "{project}"
_SOURCES = frozenset({"wheels", "sdist", "archive", "vcs", "directory"})
# How uv writes a package, and the sentences in which it names the one that cannot be
# had and the one that asks for it.
_NAMED = r"([A-Za-z0-9][\w.-]*)(?:\{[^}]*\})?(?:\[[^\]]*\])?==([^\s,]+)"
_NOT_FOR_IT = re.compile(rf"{_NAMED} has no .*?wheels")
_ASKS = re.compile(rf"{_NAMED} depends on ")


class Running:
    """The call of uv under way, which another thread may end."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._ended = False
        self._change = threading.Lock()

    def run(self, command: list[str], folder: Path, environment: dict[str, str]) -> str:
        """Run a program to its end and return what it wrote to its standard error.

        Raises:
            NoResolutionError: It failed, took too long, or was ended.
        """
        with self._change:
            if self._ended:
                raise NoResolutionError(_ENDED)
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
            )
        with self._process as process:
            try:
                _, printed = process.communicate(timeout=TIMEOUT_SECONDS)
            except subprocess.TimeoutExpired as error:
                process.kill()
                message = f"no answer from uv within {TIMEOUT_SECONDS} s"
                raise NoResolutionError(message) from error
        if self._ended:
            raise NoResolutionError(_ENDED)
        if process.returncode != 0:
            raise NoResolutionError(_reason(printed))
        return printed

    def end(self) -> None:
        """End what runs, and let nothing more begin."""
        with self._change:
            self._ended = True
            if self._process is not None and self._process.poll() is None:
                self._process.kill()


class _Resolved(NamedTuple):
    """What one target comes to: packages as uv states them, and what it cannot have."""

    target: Target
    packages: list[dict[str, Any]]
    absent: dict[str, tuple[str, str]]


def make_pylock(
    lock: Lock, *, python: Path, cache: Path, running: Running | None = None
) -> bytes:
    """Return a lock for all targets that installs what `lock` records.

    Args:
        lock: The live environment.
        python: Its interpreter, whose pip says where packages come from.
        cache: A folder of our own for what uv fetches.
        running: Lets another thread end it.

    Raises:
        NoResolutionError: uv is not there, no index answers, or the recorded versions
            cannot be had even where the run was made; the message says which.
    """
    uv = find_uv()
    if uv is None:
        raise NoResolutionError("uv is not installed", advice="install uv")
    here = target_of(lock.python)
    targets = all_targets(lock.python)
    known = [target.marker == here.marker for target in targets]
    if not any(known):
        targets = (here, *targets)
    # Where the run was made comes first: without it there is no lock at all.
    ordered = sorted(targets, key=lambda target: target.marker != here.marker)
    with tempfile.TemporaryDirectory(prefix="reprobundle-lock-") as name:
        folder = Path(name)
        environment = uv_environment(
            pip_settings(python), cache=cache, temporary=folder
        )
        solver = _Solver(
            [str(uv), "--quiet"],
            python,
            folder,
            environment,
            lock,
            running or Running(),
        )
        resolved = [
            solver.solve(target, labelled=target.marker == here.marker)
            for target in ordered
        ]
    return _merged(resolved, lock)


class _Solver:
    """Asks uv about one target after the other."""

    def __init__(
        self,
        uv: list[str],
        python: Path,
        folder: Path,
        environment: Mapping[str, str],
        lock: Lock,
        running: Running,
    ) -> None:
        self._running = running
        self._uv = uv
        self._python = python
        self._folder = folder
        self._environment = environment
        self._lock = lock
        self._roots = [item for item in roots(lock) if _is_public(item)]
        self._required = _required(lock)

    def solve(self, target: Target, *, labelled: bool) -> _Resolved:
        """Return what `target` comes to.

        Args:
            target: The kind of machine.
            labelled: Whether the run was made there, so that nothing may be missing.

        Raises:
            NoResolutionError: As in `make_pylock`.
        """
        if labelled:
            found = self._ask(target, self._roots, self._environment, labelled=True)
            return _Resolved(target, found, {})
        absent: dict[str, tuple[str, str]] = {}
        wanted = [item for item in self._roots if not item.platform_bound]
        while True:
            try:
                return _Resolved(target, self._ask_elsewhere(target, wanted), absent)
            except NoResolutionError as error:
                spoilt = self._spoilt(wanted, error.message)
                if not spoilt or len(absent) >= MOST_BLOCKERS:
                    # Nothing can be said about this target but why.
                    nothing = {"": ("", error.message)}
                    return _Resolved(target, [], {**absent, **nothing})
                wanted = [item for item in wanted if item not in spoilt]
                absent |= _blockers(error.message, spoilt)

    def _spoilt(self, wanted: list[Distribution], message: str) -> list[Distribution]:
        """Return the roots that need what uv names as not to be had."""
        named = _NOT_FOR_IT.search(message)
        if named is None:
            return []
        guilty = [named[1], *(one[1] for one in _ASKS.finditer(message))]
        for name in map(normalised, guilty):
            # On another system a package may need what it does not need here.
            needing = [
                item for item in wanted if name in _closure([item.name], self._required)
            ]
            if needing:
                return needing
        return []

    def _ask_elsewhere(
        self, target: Target, wanted: list[Distribution]
    ) -> list[dict[str, Any]]:
        """Ask the public indexes first, then also folders and indexes of one's own.

        These mostly hold what fits this machine, and uv takes a version from one source
        only.
        """
        public = _public_sources(self._environment)
        try:
            return self._ask(target, wanted, public, labelled=False)
        except NoResolutionError as first:
            if public == self._environment:
                raise
            try:
                return self._ask(target, wanted, self._environment, labelled=False)
            except NoResolutionError:
                if self._environment.get("UV_NO_INDEX"):
                    raise
                raise first from None

    def _ask(
        self,
        target: Target,
        wanted: list[Distribution],
        environment: Mapping[str, str],
        *,
        labelled: bool,
    ) -> list[dict[str, Any]]:
        import tomli_w

        held = [
            _pin(item, labelled)
            for item in self._lock.distributions
            if not _is_left_out(item)
            and item.origin not in ("url", "vcs")
            and (labelled or not item.platform_bound)
        ]
        project = {
            "name": "environment",
            "version": "0",
            "requires-python": f"=={self._lock.python.minor}.*",
            "dependencies": [_requirement(item, labelled) for item in wanted],
        }
        tool = {
            "package": False,
            "environments": [target.marker],
            "constraint-dependencies": held,
        }
        document = tomli_w.dumps({"project": project, "tool": {"uv": tool}})
        (self._folder / "pyproject.toml").write_text(document)
        (self._folder / "uv.lock").unlink(missing_ok=True)
        self._run(environment, "lock")
        self._run(
            environment,
            *("export", "--frozen", "--format", "pylock.toml"),
            *("--no-emit-project", "--output-file", "pylock.toml"),
        )
        data = (self._folder / "pylock.toml").read_bytes()
        found: list[dict[str, Any]] = read_toml(data).get("packages", [])
        return found

    def _run(self, environment: Mapping[str, str], *arguments: str) -> None:
        command = [*self._uv, *arguments, "--python", str(self._python)]
        try:
            self._running.run(command, self._folder, dict(environment))
        except OSError as error:
            raise NoResolutionError(f"uv cannot be run: {error.strerror}") from error


def _blockers(
    message: str, spoilt: Iterable[Distribution]
) -> dict[str, tuple[str, str]]:
    """Return what cannot be had, and the packages that are not asked for because of it.

    The latter must not look as if the target had no need of them.
    """
    named = _NOT_FOR_IT.search(message)
    if named is None:
        return {}
    name, version = normalised(named[1]), named[2]
    reason = f"it needs {name}, of which no file is published for it"
    found = {item.name: (item.version.partition("+")[0], reason) for item in spoilt}
    return {**found, name: (version, "no file of it is published for it")}


def _public_sources(environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return an environment of uv without folders of wheels and private indexes."""
    kept = dict(environment)
    kept.pop("UV_FIND_LINKS", None)
    indexes = kept.pop("UV_INDEX", "").split()
    public = [one for one in indexes if _is_public_address(one)]
    return {**kept, "UV_INDEX": " ".join(public)} if public else kept


def _is_public_address(address: str) -> bool:
    shown = clean_address(address.partition("=")[2] or address)
    return urlsplit(shown).scheme == "https" and not is_private(shown)


def _reason(printed: str) -> str:
    """Return uv's own reason in one line, without addresses."""
    text = re.sub(r"\S+://\S+", "an index", printed.partition("hint:")[0])
    text = re.sub(r"^\s*(?:[×╰─▶]|error:|cause:)+\s*", "", text, flags=re.MULTILINE)
    words = " ".join(text.split())
    return f"uv says: {words[:600]}" if words else "uv failed without a word"


# --- what is asked for


def roots(lock: Lock) -> tuple[Distribution, ...]:
    """Return the distributions that no other one requires, then what they miss.

    What the project requires is wanted for itself too, for the project is in the bundle
    and not in the lock.
    """
    required = _required(lock)
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


def _required(lock: Lock) -> dict[str, set[str]]:
    """Return what each distribution requires where the run was made.

    A requirement counts if no extra is needed for it: what an extra brought in is
    wanted for itself.
    """
    target = target_of(lock.python)
    return {
        item.name: {normalised(one.name) for one in _requirements(item, target)}
        for item in lock.distributions
        if not _is_left_out(item)
    }


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


def _is_public(item: Distribution) -> bool:
    """Whether a stranger can fetch it: from an index, or from a public address."""
    if item.origin in ("url", "vcs"):
        return not is_private(item.detail)
    return item.origin == "index" or bool(item.local_label)


def _requirement(item: Distribution, labelled: bool) -> str:
    if item.origin in ("url", "vcs"):
        return f"{item.name} @ {item.detail}"
    return _pin(item, labelled)


def _pin(item: Distribution, labelled: bool) -> str:
    """Return the recorded version, with its label only where the run was made."""
    version = item.version if labelled else item.version.partition("+")[0]
    return f"{item.name}=={version}"


def _is_left_out(item: Distribution) -> bool:
    return item.name in TOOLS or item.detail.startswith(_PROJECT)


# --- what is kept of the answer


def _merged(resolved: list[_Resolved], lock: Lock) -> bytes:
    """Return one lock of what all targets came to."""
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
            "requires-python": f"=={lock.python.minor}.*",
            "created-by": "reprobundle",
            "packages": packages,
            "tool": {"reprobundle": {"unavailable": unavailable}},
        }
    ).encode()
    parse_pylock(made, "the new lock")
    return made


def _unavailable(one: _Resolved) -> Iterator[dict[str, str]]:
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
