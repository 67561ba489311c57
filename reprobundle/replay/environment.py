"""Build an environment of its own from a lock, or compare an existing one with it.

Nothing but the target folder and a package cache of our own is written, the active
environment is never touched, and no step needs more rights than the user has. A
target counts only when its stamp, written last, is there: anything else is built
anew, from what the cache already holds.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from reprobundle.errors import (
    BadCallError,
    EnvironmentUnusableError,
    InstallFailedError,
)
from reprobundle.format.lock import Lock, lock_digest
from reprobundle.replay.conda_environment import build_with_conda
from reprobundle.replay.folder_claim import claimed
from reprobundle.replay.install_plan import (
    InstallPlan,
    expected_versions,
    install_all,
    locked_for,
    packages_left_out,
)
from reprobundle.replay.installer import Installer, make_installer
from reprobundle.replay.interpreters import find_interpreter
from reprobundle.replay.stamp import (
    STAMP_NAME,
    Built,
    outside_a_run,
    python_of,
    standing_environment,
    write_stamp,
)
from reprobundle.run.launch import recorder_folder
from reprobundle.run.lock import TOOLS, Drift, drift, probe, to_lock
from reprobundle.run.package_sources import package_cache
from reprobundle.run.requirements import LeftOut
from reprobundle.run.space import require_space, require_writable

ENTRY_NAME = "reprobundle_entry.pth"
# Unpacked archives and temporary copies on top of the installed size.
SPACE_FACTOR = 1.5

Progress = Callable[[str], None]


@dataclass(frozen=True)
class PythonEnvironment:
    """An environment that is ready to run something.

    Attributes:
        python: Its interpreter.
        folder: The target folder that holds all of it.
        installer: Name and version of the installer that built it.
        commands: Commands that built it, private paths replaced by ``{…}`` names.
        freeze: What is installed.
        drift: How that differs from the lock, numeric differences first.
        left_out: Locked packages that were not installed, and why.
        other_builds: Packages of which another build was taken, by permission.
        reused: Whether it stood already and was only checked.
        elapsed_ns: Time this call took.
    """

    python: Path
    folder: Path
    installer: str
    commands: tuple[tuple[str, ...], ...]
    freeze: Lock
    drift: tuple[Drift, ...]
    left_out: tuple[LeftOut, ...]
    other_builds: tuple[str, ...]
    reused: bool
    elapsed_ns: int


def cache_root() -> Path:
    """Return the folder for environments and packages: the user's cache folder."""
    return (
        Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "reprobundle"
    )


def environment_folder(
    lock: Lock, root: Path | None = None, *, pylock: bytes | None = None
) -> Path:
    """Return the target folder of `lock`: equal locks share one environment."""
    return (root or cache_root()) / "environments" / lock_digest(lock, pylock)[:32]


def build_fresh(
    lock: Lock,
    *,
    pylock: bytes | None = None,
    conda: bytes | None = None,
    without: frozenset[str] = frozenset(),
    target: Path | None = None,
    base_python: Path | None = None,
    wheels: Path | None = None,
    progress: Progress | None = None,
    cache: Path | None = None,
    installer: Literal["auto", "pip", "uv"] = "auto",
    allow_other_python: bool = False,
    allow_other_build: bool = False,
) -> PythonEnvironment:
    """Return an environment with exactly the distributions of `lock`.

    A complete environment of the same lock in `target` is checked and used again;
    an incomplete or damaged one is removed and built anew.

    Args:
        lock: What to install.
        pylock: The lock for all targets. With it, every file is asked for with its
            digest, and another system gets the files that were locked for it.
        conda: The explicit list of an environment that conda made. Where it was made
            for this kind of machine, conda makes it again.
        without: Names of packages to leave out, which then show as drift.
        target: Folder for all of it; by default one named by the lock's digest.
        base_python: Interpreter to build on; by default one of the recorded minor
            version is looked for.
        wheels: Folder of wheels; then no index is asked.
        progress: Told each step as one line.
        cache: Folder for fetched packages; shared by all environments by default.
        installer: ``auto`` takes uv where it is installed, else pip.
        allow_other_python: Build on another minor version rather than not at all.
        allow_other_build: Take the plain release where a build with a local label
            (``+cpu``) cannot be had. It may compute other numbers and is listed.

    Raises:
        LockFileError, UnfitPythonError, MissingPackageError, HashMismatchError,
        NoNetworkError, NoSpaceError, NoPermissionError, InstallFailedError: See their
            docstrings.
        BadCallError: `wheels` is no folder.
    """
    started = time.monotonic_ns()
    say = progress or _silent
    kept = tuple(item for item in lock.distributions if item.name not in without)
    recorded, lock = lock, msgspec.structs.replace(lock, distributions=kept)
    folder = (target or environment_folder(lock, pylock=pylock)).absolute()
    digest = lock_digest(lock, pylock)
    # conda builds its own Python and its own libraries: wheels are no substitute.
    by_conda = conda if _same_machine(lock) else None
    if wheels is not None and not wheels.is_dir():
        raise BadCallError(f"folder of wheels {str(wheels)!r} does not exist")
    require_writable(folder)

    def make() -> Built:
        require_space(folder, int(lock.size_bytes * SPACE_FACTOR), "the environment")
        if by_conda is not None:
            return build_with_conda(lock, by_conda, folder, digest, say)
        base = find_interpreter(
            lock.python, named=base_python, allow_other_python=allow_other_python
        )
        tool = make_installer(
            installer,
            folder=folder,
            base=base,
            wheels=wheels.absolute() if wheels else None,
            cache=(cache or package_cache()).absolute(),
            say=say,
        )
        plan = InstallPlan(lock, locked_for(pylock, base, lock, without))
        return _build(plan, digest, tool, allow_other_build=allow_other_build)

    def standing() -> Built | None:
        built = standing_environment(folder, digest, say)
        if built is None or (built.other_builds and not allow_other_build):
            return None
        same = built.environment.python.minor == lock.python.minor
        return built if same or allow_other_python else None

    built, reused = claimed(folder, say, standing=standing, make=make)
    return _ready(recorded, folder, built, reused=reused, started=started)


def check_current(
    lock: Lock, python: Path, *, env: Mapping[str, str] | None = None
) -> tuple[Drift, ...]:
    """Return how the environment of the interpreter `python` differs from `lock`.

    Raises:
        EnvironmentUnusableError: The interpreter cannot be asked.
    """
    return drift(lock, to_lock(probe(python, env=env)))


def install_entry(python: Path) -> Path:
    """Let the recorder enter each process of an environment of our own.

    Args:
        python: Interpreter of an environment from `build_fresh`.

    Returns:
        The entry file, in the environment's site-packages.

    Raises:
        EnvironmentUnusableError: The environment is not one of ours.
    """
    live = probe(python, env=outside_a_run())
    purelib = Path(live.purelib)
    if not (Path(live.prefix).parent / STAMP_NAME).is_file():
        raise EnvironmentUnusableError(
            f"{live.prefix!r} was not built by reprobundle, so nothing is added to it"
        )
    entry = purelib / ENTRY_NAME
    temporary = entry.with_suffix(".tmp")
    shutil.copyfile(recorder_folder() / "entry" / ENTRY_NAME, temporary)
    temporary.replace(entry)
    return entry


def _same_machine(lock: Lock) -> bool:
    recorded = (lock.python.system, lock.python.architecture)
    return recorded == (sys.platform, platform.machine())


def _silent(_: str) -> None:
    """Say nothing."""


def _build(
    plan: InstallPlan, digest: str, tool: Installer, *, allow_other_build: bool
) -> Built:
    started = time.monotonic_ns()
    (tool.folder / STAMP_NAME).unlink(missing_ok=True)
    commands = [tool.make_venv()]
    with tool.temporary_folder():
        commands += install_all(plan, tool, allow_other_build=allow_other_build)
    here = _verified(plan, tool)
    built = Built(
        lock=digest,
        installer=tool.name,
        commands=tuple(commands),
        environment=here,
        left_out=tuple(
            (item.name, item.version, item.reason)
            for item in packages_left_out(plan, tool)
        ),
        other_builds=tuple(sorted(plan.plain)),
        elapsed_ns=time.monotonic_ns() - started,
    )
    write_stamp(tool.folder, built)
    return built


def _verified(plan: InstallPlan, tool: Installer) -> Lock:
    """Return what was installed, after checking that it is what was asked for."""
    tool.say("checking what was installed")
    here = to_lock(probe(python_of(tool.folder), env=outside_a_run()))
    for name, version in expected_versions(plan, tool).items():
        found = here.find(name)
        if found is None or found.version != version:
            got = found.version if found else "nothing"
            raise InstallFailedError(
                f"{name}=={version} was asked for, the installer left {got}",
                log=str(tool.log),
                advice=f"see {str(tool.log)!r}",
            )
    return here


def _ready(
    lock: Lock, folder: Path, built: Built, *, reused: bool, started: int
) -> PythonEnvironment:
    left_out = tuple(LeftOut(*item) for item in built.left_out)
    expected = {item.name for item in left_out} | TOOLS
    return PythonEnvironment(
        python=python_of(folder),
        folder=folder,
        installer=built.installer,
        commands=built.commands,
        freeze=built.environment,
        drift=tuple(
            item for item in drift(lock, built.environment) if item.name not in expected
        ),
        left_out=left_out,
        other_builds=built.other_builds,
        reused=reused,
        elapsed_ns=time.monotonic_ns() - started,
    )
