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
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from reprobundle.errors import NoResolutionError
from reprobundle.format.lock import Distribution, Lock
from reprobundle.run.lock_roots import (
    closure,
    is_left_out,
    is_public,
    pin,
    required_names,
    requirement,
    roots,
)
from reprobundle.run.merged_lock import Resolved, merge
from reprobundle.run.package_origin import clean_address, is_private, normalised
from reprobundle.run.package_sources import (
    find_uv,
    pip_settings,
    uv_environment,
)
from reprobundle.run.pylock_file import read_toml
from reprobundle.run.targets import Target, all_targets, target_of
from reprobundle.run.uv_call import Running
from reprobundle.temporary.guarded import owned_folder

MOST_BLOCKERS = 20
# How uv writes a package, and the sentences in which it names the one that cannot be
# had and the one that asks for it.
_NAMED = r"([A-Za-z0-9][\w.-]*)(?:\{[^}]*\})?(?:\[[^\]]*\])?==([^\s,]+)"
# Of a package that wants a later patch release than some that are meant; its sentences
# differ by where the wish comes from: "late==1.0 requires Python >=3.11.5", "soupsieve
# depends on Python>=3.11.5".
_OTHER_PATCH = re.compile(r"\bPython ?>")
_NOT_FOR_IT = re.compile(rf"{_NAMED} has no .*?wheels")
_ASKS = re.compile(rf"{_NAMED} depends on ")


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
    with owned_folder("reprobundle-lock-") as folder:
        environment = uv_environment(
            # An interpreter of uv has no pip; ours says what holds on this machine.
            pip_settings(python, Path(sys.executable)),
            cache=cache,
            temporary=folder,
        )
        solver = _Solver(
            [str(uv), "--quiet"],
            python,
            folder,
            environment,
            lock,
            running or Running(),
        )
        resolved = solver.solve_all(ordered, here)
    return merge(resolved, solver.pythons)


def _next_minor(minor: str) -> str:
    major, _, number = minor.partition(".")
    return f"{major}.{int(number) + 1}"


class _Solver:
    """Asks uv about one target after the other.

    Attributes:
        pythons: The releases of Python that the lock is for, as a specifier.
    """

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
        self.pythons = f"=={lock.python.minor}.*"
        self._roots = [item for item in roots(lock) if is_public(item)]
        self._required = required_names(lock)

    def solve_all(self, targets: list[Target], here: Target) -> list[Resolved]:
        """Return what each target comes to, the one where the run was made first.

        Every patch release of the Python is meant, or where a package asks for a later
        one, those from that of the run on.

        Raises:
            NoResolutionError: As in `make_pylock`.
        """
        try:
            return self._solve_all(targets, here)
        except NoResolutionError as error:
            if not _OTHER_PATCH.search(error.message):
                raise
            python = self._lock.python
            self.pythons = f">={python.version},<{_next_minor(python.minor)}"
            return self._solve_all(targets, here)

    def _solve_all(self, targets: list[Target], here: Target) -> list[Resolved]:
        return [
            self.solve(target, labelled=target.marker == here.marker)
            for target in targets
        ]

    def solve(self, target: Target, *, labelled: bool) -> Resolved:
        """Return what `target` comes to.

        Args:
            target: The kind of machine.
            labelled: Whether the run was made there, so that nothing may be missing.

        Raises:
            NoResolutionError: As in `make_pylock`.
        """
        if labelled:
            found = self._ask(target, self._roots, self._environment, labelled=True)
            return Resolved(target, found, {})
        absent: dict[str, tuple[str, str]] = {}
        wanted = [item for item in self._roots if not item.platform_bound]
        while True:
            try:
                return Resolved(target, self._ask_elsewhere(target, wanted), absent)
            except NoResolutionError as error:
                spoilt = self._spoilt(wanted, error.message)
                if not spoilt or len(absent) >= MOST_BLOCKERS:
                    # Nothing can be said about this target but why.
                    nothing = {"": ("", error.message)}
                    return Resolved(target, [], {**absent, **nothing})
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
                item for item in wanted if name in closure([item.name], self._required)
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
            pin(item, labelled)
            for item in self._lock.distributions
            if not is_left_out(item)
            and item.origin not in ("url", "vcs")
            and (labelled or not item.platform_bound)
        ]
        project = {
            "name": "environment",
            "version": "0",
            "requires-python": self.pythons,
            "dependencies": [requirement(item, labelled) for item in wanted],
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
