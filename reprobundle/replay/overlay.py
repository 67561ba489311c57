"""Another version of one package, laid over an environment without touching it.

The package goes into a folder of its own, which stands before the environment's
packages on the import path. Only what the new version needs and the environment does
not satisfy comes along, so that as little as possible changes; the record lists all of
it as drift.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from reprobundle.errors import EnvironmentUnusableError
from reprobundle.run.lock import LiveDistribution, probe
from reprobundle.run.package_origin import normalised
from reprobundle.run.package_sources import (
    find_uv,
    package_cache,
    pip_settings,
    uv_environment,
)

TIMEOUT_SECONDS = 1800
# A package whose needs have needs whose needs … are not met is another environment.
MOST_ROUNDS = 5


def lay_over(
    python: Path,
    packages: Sequence[str],
    folder: Path,
    *,
    wheels: Path | None,
    say: Callable[[str], None],
) -> tuple[str, ...]:
    """Install `packages` and what they lack into `folder`; return all that went in.

    Args:
        python: Interpreter of the environment; it is only asked.
        packages: ``NAME==VERSION``.
        folder: New folder, to be put on the import path.
        wheels: Folder of wheels; then no index is asked.
        say: Told each step as one line.

    Raises:
        EnvironmentUnusableError: A package cannot be had, or needs too much else.
    """
    folder.mkdir(parents=True)
    installed: list[str] = []
    wanted = list(packages)
    for _ in range(MOST_ROUNDS):
        say(f"laying over the environment: {', '.join(wanted)}")
        _install(python, wanted, folder, wheels)
        installed += wanted
        wanted = _unmet(python, folder)
        if not wanted:
            return tuple(installed)
    raise EnvironmentUnusableError(
        f"{packages[0]} still lacks {', '.join(wanted)}",
        advice="build an environment with it and name its interpreter: --env PYTHON",
    )


def over(folder: Path, variables: Mapping[str, str]) -> dict[str, str]:
    """Return `variables` with `folder` first on the import path."""
    paths = [str(folder), variables.get("PYTHONPATH", "")]
    return {**variables, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def _install(
    python: Path, wanted: Sequence[str], folder: Path, wheels: Path | None
) -> None:
    uv = find_uv()
    if uv is None:
        raise EnvironmentUnusableError(
            "--with needs uv, which is not there", advice="python -m pip install uv"
        )
    command = [str(uv), "pip", "install", "--python", str(python), "--no-deps"]
    command += ["--target", str(folder)]
    if wheels is not None:
        command += ["--no-index", "--find-links", str(wheels.absolute())]
    done = subprocess.run(
        [*command, *wanted],
        env=uv_environment(
            pip_settings(python, Path(sys.executable)),
            cache=package_cache(),
            temporary=folder.parent,
        ),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=TIMEOUT_SECONDS,
    )
    if done.returncode != 0:
        last = " ".join(done.stderr.split())[-300:]
        raise EnvironmentUnusableError(
            f"{', '.join(wanted)} cannot be installed for {python.name}: {last}",
            advice="check the version and the index, or give --wheels FOLDER",
        )


def _unmet(python: Path, folder: Path) -> list[str]:
    """Return the requirements of what lies in `folder` that nothing there meets."""
    live = probe(python, env=over(folder, os.environ))
    # The first of a name on the path is the one that is imported.
    versions: dict[str, str] = {}
    for one in live.distributions:
        versions.setdefault(normalised(one.name), one.version)
    inside = [
        one for one in live.distributions if Path(one.folder).parent == folder.resolve()
    ]
    needed = (text for one in inside for text in _needs(one))
    return [text for text in dict.fromkeys(needed) if not _is_met(text, versions)]


def _needs(one: LiveDistribution) -> list[str]:
    from packaging.requirements import InvalidRequirement, Requirement

    found = []
    for text in one.requires:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        # The interpreter may be another one than ours, but the machine is the same.
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            found.append(f"{requirement.name}{requirement.specifier}")
    return found


def _is_met(text: str, versions: Mapping[str, str]) -> bool:
    from packaging.requirements import Requirement

    requirement = Requirement(text)
    version = versions.get(normalised(requirement.name))
    return version is not None and requirement.specifier.contains(
        version, prereleases=True
    )
