"""What a forecast runs: a command as typed, or the one that a bundle holds."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from reprobundle.errors import BadCallError
from reprobundle.format.record import Command
from reprobundle.run.command import recorded_argv
from reprobundle.run.launch import find_python
from reprobundle.run.project import Stage, find_project, list_files, make_scratch


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A command and the files it runs on.

    Attributes:
        command: As a record stores it.
        placed: Path of a file outside the project, as arguments name it → where the
            same file lies here.
        root: Top of the project whose files are copied; None where `stage` has them.
        stage: Files out of a bundle.
        variables: Environment of the machine that the command may see.
        python: Takes the place of a leading interpreter name.
        bundle: Id of the bundle; empty for a command as typed.
        gaps: What is not as the bundle's author had it, one sentence each.
    """

    command: Command
    placed: Mapping[str, str] = field(default_factory=dict)
    root: Path | None = None
    stage: Stage | None = None
    variables: Mapping[str, str]
    python: Path
    bundle: str = ""
    gaps: tuple[str, ...] = ()

    def fill(self, scratch: Path) -> None:
        """Copy the files that the command runs on into a new folder."""
        scratch.mkdir(parents=True, exist_ok=True)
        if self.stage is not None:
            make_scratch(self.stage, self.stage.names, scratch)
        elif self.root is not None:
            project = find_project(self.root, self.root)
            for name in list_files(project, exclude=frozenset()):
                target = scratch / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(self.root / name, target)


def typed(
    argv: Sequence[str], working_directory: Path, variables: Mapping[str, str]
) -> Subject:
    """Return a command as typed, in the project it is called in.

    Args:
        argv: The command; ``{device}`` in it becomes ``cpu``.
        working_directory: Where it is to run.
        variables: Environment of the machine.

    Raises:
        BadCallError: There is no interpreter.
    """
    project = find_project(working_directory, None)
    python = find_python(tuple(argv), variables.get("PATH"))
    if python is None:
        raise BadCallError("no Python interpreter is on the path")
    inner = working_directory.resolve().relative_to(project.root)
    return Subject(
        command=Command(
            argv=recorded_argv(tuple(argv), project.root),
            working_directory=inner.as_posix(),
        ),
        root=project.root,
        variables=variables,
        python=python,
    )
