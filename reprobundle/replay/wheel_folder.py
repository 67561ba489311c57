"""Fetch the files of a lock into a folder, for a machine that has no network.

pip fetches each wheel for the machine it is meant for, by its digest; what arrives is
digested again here before it counts. Nothing is built and nothing is installed.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from reprobundle.errors import EnvironmentUnusableError, MissingPackageError
from reprobundle.replay.install_failure import explain
from reprobundle.replay.installer import PIP, find_pip
from reprobundle.run.lock import TOOLS
from reprobundle.run.package_sources import (
    package_cache,
    pip_environment,
    pip_settings,
)
from reprobundle.run.pylock_file import Chosen, Selection, requirement_lines
from reprobundle.run.space import require_space, require_writable
from reprobundle.run.targets import Target
from reprobundle.temporary.guarded import owned_folder


@dataclass(frozen=True)
class Fetched:
    """What a folder of wheels holds now.

    Attributes:
        fetched: Names of files that were fetched.
        present: Names of files that lay there already, with the right digest.
        size_bytes: Size of both together.
    """

    fetched: tuple[str, ...]
    present: tuple[str, ...]
    size_bytes: int


def fetch_wheels(
    selection: Selection,
    target: Target,
    folder: Path,
    *,
    without: frozenset[str] = frozenset(),
    say: Callable[[str], None],
) -> Fetched:
    """Put every wheel that `selection` installs on `target` into `folder`.

    Args:
        selection: What the lock comes to there.
        target: The machine that will install it.
        folder: Made where it is missing; other files in it are left alone.
        without: Names of packages that are not fetched.
        say: Told each step as one line.

    Raises:
        MissingPackageError: A package is no wheel, is not published for `target`, or
            is served by no index here.
        HashMismatchError, NoNetworkError, NoSpaceError: See their docstrings.
        EnvironmentUnusableError: There is no pip.
    """
    chosen = [one for one in selection.chosen if one.name not in TOOLS | without]
    _require_wheels(selection, chosen, without)
    require_writable(folder)
    folder.mkdir(parents=True, exist_ok=True)
    present = [one for one in chosen if _is_here(folder, one)]
    wanted = [one for one in chosen if one not in present]
    size_bytes = sum(one.size_bytes or 0 for one in wanted)
    require_space(folder, size_bytes, "the wheels")
    if wanted:
        say(f"fetching {len(wanted)} wheels for {target.name}")
        with owned_folder("reprobundle-fetching-", folder) as place:
            _fetch(wanted, target, place)
            for one in wanted:
                _keep(place, folder, one)
    files = [folder / one.file for one in chosen]
    return Fetched(
        fetched=tuple(one.file for one in wanted),
        present=tuple(one.file for one in present),
        size_bytes=sum(file.stat().st_size for file in files),
    )


def _require_wheels(
    selection: Selection, chosen: list[Chosen], without: frozenset[str]
) -> None:
    """Refuse what no folder of wheels can hold.

    Raises:
        MissingPackageError: A package is blocked, or comes as a source.
    """
    for blocker in selection.blockers:
        if blocker.name not in without:
            what = f"{blocker.name}=={blocker.version}" if blocker.name else "a lock"
            raise MissingPackageError(
                f"{what} cannot be had for {selection.target}: {blocker.reason}",
                package=blocker.name,
                version=blocker.version,
                advice="leave it out with --without if the command does not import it",
            )
    for one in chosen:
        if one.kind != "wheel":
            raise MissingPackageError(
                f"{one.name}=={one.version} is locked as {one.kind}, not as a wheel",
                package=one.name,
                version=one.version,
                advice="build its wheel on such a machine, put it into the folder, and "
                f"call again with --without {one.name}",
            )


def _fetch(wanted: list[Chosen], target: Target, folder: Path) -> None:
    """Have pip fetch the files into `folder`, each by its digest."""
    lines = requirement_lines(wanted)[0]
    download(lines, target, folder, "--require-hashes")


def download(lines: Iterable[str], target: Target, folder: Path, *options: str) -> None:
    """Have pip fetch the wheels that requirement lines name, and nothing they require.

    Args:
        lines: Requirements, one each.
        target: The machine they are for.
        folder: Where they go.
        options: Further options of ``pip download``.

    Raises:
        MissingPackageError, HashMismatchError, NoNetworkError, NoSpaceError: See their
            docstrings.
        EnvironmentUnusableError: There is no pip.
    """
    python = find_pip(Path(sys.executable))
    if python is None:
        raise EnvironmentUnusableError(
            "pip 22.3 or newer is not installed",
            advice="install pip for this Python (python3-pip on Debian)",
        )
    requirements = folder / "requirements.txt"
    requirements.write_text("".join(f"{line}\n" for line in lines))
    minor = "".join(target.python.split(".")[:2])
    platforms = (part for name in target.platforms for part in ("--platform", name))
    command = [
        *(str(python), *PIP, "download", "--no-deps", "--only-binary=:all:"),
        *(*options, "--implementation", "cp", "--python-version", minor),
        *("--abi", f"cp{minor}", "--abi", "abi3", "--abi", "none"),
        *platforms,
        *("--dest", str(folder), "-r", str(requirements)),
    ]
    environment = pip_environment(
        pip_settings(Path(sys.executable)),
        cache=package_cache() / "pip",
        temporary=folder,
    )
    done = subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if done.returncode != 0:
        output = done.stdout.decode(errors="replace")
        log = folder.parent / "fetch.log"
        log.write_text(output)
        raise explain(output, lock=None, target=folder, log=log, folder_only=False)


def _keep(source: Path, folder: Path, one: Chosen) -> None:
    """Move a file whose digest is right into its place.

    Raises:
        MissingPackageError: pip fetched another file.
    """
    if not _is_here(source, one):
        raise MissingPackageError(
            f"{one.file} did not arrive with the locked digest",
            package=one.name,
            version=one.version,
            advice="ask an index that serves that very file",
        )
    (source / one.file).replace(folder / one.file)


def _is_here(folder: Path, one: Chosen) -> bool:
    """Whether `folder` holds that very file."""
    try:
        with (folder / one.file).open("rb") as file:
            digest = hashlib.sha256()
            while block := file.read(1 << 20):
                digest.update(block)
    except OSError:
        return False
    return digest.hexdigest() == one.sha256
