"""Run a command on the CPU, in a copy of its project, under the recorder."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from reprobundle.errors import BadCallError
from reprobundle.port.forecast.naming import names_mps, takes_device
from reprobundle.port.forecast.subject import Subject
from reprobundle.run.command import run_environment, runnable_argv
from reprobundle.run.events import EventFile, Start, read_events
from reprobundle.run.launch import Launched, launch, make_session
from reprobundle.run.own_words import own_words
from reprobundle.temporary.guarded import guarded_folder, owned_folder

# What the recorder reads beside its configuration, in a forecast alone.
ASKED_FILE = "forecast.json"


class Watched(NamedTuple):
    """A run on the CPU.

    Attributes:
        processes: Events of all its processes.
        exit_status: Of the command.
        last_words: Last line of its standard error that is not blank.
        printed: Its standard output.
        root: The copy of the project, with a slash at its end.
    """

    processes: tuple[EventFile, ...]
    exit_status: int
    last_words: str
    printed: str
    root: str


def watch(
    subject: Subject,
    *,
    asked: Mapping[str, object] | None = None,
    echo: bool = False,
) -> Watched:
    """Run a command, and return what was seen.

    Args:
        subject: The command and its files.
        asked: What the recorder is told: ``dry``, and the operators to ``refuse``.
        echo: Show what the command prints.

    Raises:
        BadCallError: The command cannot be started.
    """
    with guarded_folder("reprobundle-forecast-") as folder:
        place = folder.resolve()
        launched = _run(subject, place, asked or {}, echo=echo)
        text = launched.session.stderr.read_text(errors="replace")
        said = [line for line in text.splitlines() if line.strip()]
        return Watched(
            processes=read_events(launched.session.events),
            exit_status=launched.exit_status,
            last_words=said[-1] if said else "",
            printed=launched.session.stdout.read_text(errors="replace"),
            root=f"{place / 'project'}/",
        )


def _run(
    subject: Subject, folder: Path, asked: Mapping[str, object], *, echo: bool
) -> Launched:
    scratch = folder / "project"
    subject.fill(scratch)
    command = subject.command
    variables = {**subject.variables, **command.environment}
    # Without a word for its device in the command, only a call can ask for MPS.
    named = not takes_device(command.argv) or names_mps(
        scratch, command.argv, variables
    )
    session = make_session(
        folder / "session",
        scratch,
        seed=command.seed,
        device="cpu",
        pass_name="forecast",
    )
    told = json.dumps({**asked, "named": named})
    (session.folder / ASKED_FILE).write_text(told)
    device = "mps" if named else "cpu"
    return launch(
        runnable_argv(
            command.argv,
            scratch,
            subject.python,
            device=device,
            words=own_words(command.placeholders),
            placed=subject.placed,
        ),
        session=session,
        working_directory=scratch / command.working_directory,
        environment=run_environment(
            subject.variables,
            command.environment,
            scratch=scratch,
            python=subject.python,
            device=device,
        ),
        echo=echo,
    )


def without_torch(watched: Watched, python: Path) -> BadCallError | None:
    """Return an error if the command ended because its interpreter has no torch.

    Args:
        watched: A run that failed.
        python: The interpreter that was meant.
    """
    if "No module named 'torch'" not in watched.last_words:
        return None
    entered = [
        event.executable
        for process in watched.processes
        for event in process.events
        if isinstance(event, Start)
    ]
    return no_torch_in(entered[-1] if entered else str(python))


def no_torch_in(python: str) -> BadCallError:
    """Return the error that names an interpreter without torch."""
    return BadCallError(
        f"{python} has no torch, and a forecast runs the command with it",
        advice="install torch there, or activate the environment that has it: the "
        "first python on the PATH runs the command, unless it names another",
    )


def torch_of(subject: Subject) -> str:
    """Return the version of torch that the command's interpreter has.

    Raises:
        BadCallError: It has none.
    """
    with owned_folder("reprobundle-forecast-") as folder:
        code = "from importlib.metadata import version; print(version('torch'))"
        done = subprocess.run(
            [subject.python, "-c", code],
            cwd=folder,
            env=dict(subject.variables),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    version = done.stdout.strip()
    if not version:
        raise no_torch_in(str(subject.python))
    return version
