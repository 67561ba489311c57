"""The files of a new bundle: which content goes where, and as what."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path

from reprobundle.format.canonical import encode
from reprobundle.format.lock import LOCK_MEMBER, PYLOCK_MEMBER, Lock
from reprobundle.format.record import FileRead
from reprobundle.format.writer import Source
from reprobundle.pack.contents import Contents
from reprobundle.pack.withholding import GIT_DIFF
from reprobundle.run.conda import CONDA_MEMBER
from reprobundle.run.finished import SERIES, Assembled
from reprobundle.run.git_state import difference
from reprobundle.run.project import Project, Stage
from reprobundle.run.requirements import find_lock_files, requirements_text

LOGS = frozenset({"stdout.txt", "stderr.txt"})


def project_sources(stage: Stage, contents: Contents) -> list[Source]:
    """Return the project's files and its inputs, with their execute bits."""
    return [
        Source(
            member,
            contents.roles[name],
            stage.path(name).resolve(),
            executable=os.access(stage.path(name), os.X_OK),
        )
        for name, member in contents.members.items()
    ]


def external_sources(externals: Mapping[Path, FileRead]) -> list[Source]:
    """Return the files from outside the project that are included."""
    return [
        Source(read.member, "external", path)
        for path, read in externals.items()
        if read.member
    ]


def lock_sources(
    lock: Lock,
    project: Project,
    pylock: bytes | None = None,
    conda: bytes | None = None,
    *,
    withheld: Collection[str] = (),
) -> list[Source]:
    """Return the live environment, the lock files found, and git's difference.

    Args:
        lock: The live environment.
        project: Where lock files are looked for, with git's difference.
        pylock: The lock for all targets, if one could be made.
        conda: The explicit list of an environment that conda made.
        withheld: Files of the project whose content stays out of the bundle.
    """
    sources = [
        Source(LOCK_MEMBER, "lock", encode(lock)),
        Source("lock/requirements.txt", "lock", requirements_text(lock).encode()),
    ]
    if pylock is not None:
        sources.append(Source(PYLOCK_MEMBER, "lock", pylock))
    if conda is not None:
        sources.append(Source(CONDA_MEMBER, "lock", conda))
    for path in find_lock_files(project.root):
        name = path.relative_to(project.root).as_posix()
        if name not in withheld:
            sources.append(Source(f"lock/project/{name}", "lock", path.read_bytes()))
    if project.git and project.git.diff and GIT_DIFF not in withheld:
        # What is withheld would otherwise come in as a difference.
        diff = (
            difference(project.root, without=withheld) if withheld else project.git.diff
        )
        if diff:
            sources.append(Source(GIT_DIFF, "lock", diff))
    return sources


def run_sources(number: int, run: Assembled) -> list[Source]:
    """Return the record of run `number` and everything that belongs to it."""
    top = f"runs/{number}"
    return [
        Source(f"{top}/record.json", "record", encode(run.record)),
        *(
            Source(
                f"{top}/{name}",
                "log" if name in LOGS else "series" if name in SERIES else "output",
                path,
            )
            for name, path in run.content.items()
        ),
    ]
