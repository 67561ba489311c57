"""What `pack` needs before the first run: interpreter, lock, a copy, the command."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

from reprobundle.errors import BadCallError
from reprobundle.format.lock import Lock
from reprobundle.format.record import Command
from reprobundle.pack.contents import UNREAD_LIMIT_BYTES
from reprobundle.pack.options import PackOptions
from reprobundle.pack.resolving import Resolving, start_resolving
from reprobundle.pack.withholding import Withholding, stand_in_samples, withholding
from reprobundle.run import lock as locks
from reprobundle.run.command import PROJECT, recorded_environment
from reprobundle.run.launch import find_python
from reprobundle.run.own_words import portable_argv
from reprobundle.run.project import (
    Project,
    Stage,
    list_files,
    make_stage,
    placed_in,
)
from reprobundle.run.secrets.gate import Gate
from reprobundle.run.space import require_space


@dataclasses.dataclass(frozen=True, kw_only=True)
class Prepared:
    """What every pass of one call starts from.

    Attributes:
        project: The author's project, which is only read.
        stage: The pristine copy that every pass is copied from.
        python: Interpreter that the command starts.
        live: Its packages as they are.
        lock: The same as it is sealed.
        resolving: The lock for other machines, in the making beside the passes.
        command: The command as a record stores it.
        withholding: Files whose content stays here.
        gate: Lets nothing through that looks like a secret.
    """

    project: Project
    stage: Stage
    python: Path
    live: locks.LiveEnvironment
    lock: Lock
    resolving: Resolving | None
    command: Command
    withholding: Withholding
    gate: Gate

    def resolved(self) -> tuple[Lock, bytes | None]:
        """Wait for the lock; return it with ``pylock.toml``, if there is one."""
        return self.resolving.result() if self.resolving else (self.lock, None)

    def end(self) -> None:
        """End what still runs beside the passes."""
        if self.resolving is not None:
            self.resolving.end()

    def declared(self, options: PackOptions) -> list[tuple[Path, bool]]:
        """Return the paths given with ``--input``, and whether each lies inside."""
        paths = [options.working_directory / path for path in options.inputs]
        return [(path, _is_inside(path, self.project.root)) for path in paths]


def prepare(options: PackOptions, project: Project, folder: Path) -> Prepared:
    """Find the interpreter, lock its environment, copy the project.

    Args:
        options: The call.
        project: What is packed.
        folder: Where copies go.

    Raises:
        BadCallError: There is no interpreter, or a named file is not there.
        SensitiveContentError: The project holds what may not be sealed.
        EnvironmentUnusableError: The disk is too full.
    """
    python = find_python(options.argv)
    if python is None:
        raise BadCallError(
            "no Python interpreter is on the path",
            advice="activate the environment that the command needs",
        )
    live = locks.probe(python)
    lock = locks.to_lock(live, project=project.root)
    # It takes seconds, as long as the command is likely to run anyway.
    resolving = start_resolving(lock, python=python, offline=options.offline)
    try:
        stage, withheld = _copied(options, project, folder)
        gate = Gate(options.allow_sensitive, home=str(Path.home()))
        gate.check_project(
            stage, options.argv, withheld=withheld.names, limit_bytes=UNREAD_LIMIT_BYTES
        )
        command = _command(options, project, live)
    except BaseException:
        if resolving is not None:
            resolving.end()
        raise
    return Prepared(
        project=project,
        stage=stage,
        python=python,
        live=live,
        lock=lock,
        resolving=resolving,
        command=command,
        withholding=withheld,
        gate=gate,
    )


def _copied(
    options: PackOptions, project: Project, folder: Path
) -> tuple[Stage, Withholding]:
    """Copy the project, with the files that the call names even where ignored."""
    root = project.root
    names = list_files(project, exclude=frozenset({options.output.resolve()}))
    names = tuple(name for name in names if not name.endswith(".rpb.zip"))
    size_bytes = sum((root / name).stat().st_size for name in names)
    require_space(folder, 3 * size_bytes, "copies of the project")
    samples = stand_in_samples(
        options.stand_ins,
        root=root,
        folder=options.working_directory,
        keep=folder / "stand-ins",
    )
    given = [options.working_directory / path for path in options.inputs]
    hashed = [options.working_directory / path for path in options.hash_only]
    named = (
        *(path for path in given if _is_inside(path, root)),
        *(path for path in hashed if _is_inside(path, root) and path.exists()),
        *(root / name for name in samples if (root / name).is_file()),
    )
    stage = make_stage(root, names, folder / "stage", named)
    return stage, withholding(options, stage, root=root, samples=samples)


def _command(
    options: PackOptions, project: Project, live: locks.LiveEnvironment
) -> Command:
    folder = options.working_directory.resolve().relative_to(project.root)
    argv, placeholders = portable_argv(options.argv, project.root)
    return Command(
        argv=argv,
        placeholders=placeholders,
        working_directory=folder.as_posix(),
        seed=options.seed,
        environment=recorded_environment(
            os.environ,
            seed=options.seed,
            import_paths=_import_paths(live, project.root),
        ),
    )


def _import_paths(live: locks.LiveEnvironment, root: Path) -> list[str]:
    """Return the copies' folders that stand in for editable installs."""
    folders = [
        path.resolve()
        for editable in live.editables
        for path in (editable.import_paths or (editable.location,))
    ]
    return [
        f"{PROJECT}/{path.relative_to(root).as_posix()}"
        for path in dict.fromkeys(folders)
        if path.is_relative_to(root)
    ]


def _is_inside(path: Path, root: Path) -> bool:
    return placed_in(root, path) is not None
