"""Make a conda environment again from its explicit list."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from reprobundle.errors import EnvironmentUnusableError, InstallFailedError
from reprobundle.format.lock import Lock
from reprobundle.replay.stamp import Built, outside_a_run, python_of, write_stamp
from reprobundle.run.conda import find_conda, package_count
from reprobundle.run.lock import probe, to_lock


class NoCondaError(EnvironmentUnusableError):
    """The reference's environment was made by conda, and no conda is here."""

    stop = "platform"


def build_with_conda(
    lock: Lock, explicit: bytes, folder: Path, digest: str, say: Callable[[str], None]
) -> Built:
    """Make the environment in ``folder/venv`` and return its stamp, written last.

    Packages that pip installed into it are not in the list: what is missing shows as
    drift.

    Args:
        lock: The recorded environment.
        explicit: Its explicit list.
        folder: The target folder.
        digest: Of what it is built from.
        say: Told each step as one line.

    Raises:
        NoCondaError: Neither micromamba, mamba nor conda is installed.
        InstallFailedError: It failed; its output is kept.
    """
    started = time.monotonic_ns()
    conda = find_conda()
    count = package_count(explicit)
    if conda is None:
        raise NoCondaError(
            f"the reference ran in a conda environment of {count} packages, and "
            "neither micromamba, mamba nor conda is installed here",
            advice="install one of them, or make the environment yourself and name "
            "its python with --env",
        )
    say(f"making a conda environment of {count} packages with {conda.name}")
    shutil.rmtree(folder / "venv", ignore_errors=True)
    (folder / "conda-explicit.txt").write_bytes(explicit)
    log = folder / "install.log"
    command = ["create", "--yes", "--prefix", str(folder / "venv")]
    command += ["--file", str(folder / "conda-explicit.txt")]
    with log.open("wb") as stream:
        done = subprocess.run(
            [str(conda), *command],
            cwd=folder,
            env={**os.environ, **outside_a_run()},
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if done.returncode != 0 or not python_of(folder).exists():
        raise InstallFailedError(
            f"{conda.name} ended with status {done.returncode}",
            log=str(log),
            advice=f"see {str(log)!r}",
        )
    say("checking what was installed")
    built = Built(
        lock=digest,
        installer=conda.name,
        commands=((conda.name, *(_shown(part, folder) for part in command)),),
        environment=to_lock(probe(python_of(folder), env=outside_a_run())),
        left_out=(),
        other_builds=(),
        elapsed_ns=time.monotonic_ns() - started,
    )
    write_stamp(folder, built)
    return built


def _shown(part: str, folder: Path) -> str:
    return part.replace(str(folder), "{environment}")
