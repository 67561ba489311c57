"""Run small programs under the recorder and read what they left."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest

from reprobundle.run.events import (
    Event,
    EventFile,
    FactEvent,
    Open,
    Start,
    Trouble,
    read_events,
)

RECORDER = Path(__file__).parents[2] / "reprobundle" / "recorder"
E = TypeVar("E", bound=Event)


@dataclass(frozen=True)
class Run:
    """What one recorded command left behind."""

    session: Path
    project: Path
    status: int
    stdout: str
    stderr: str
    files: tuple[EventFile, ...]

    def of(self, kind: type[E], *, main: bool = False) -> list[E]:
        """Return all events of one kind, of the first process only if `main`."""
        files = self.files[:1] if main else self.files
        return [
            event for file in files for event in file.events if isinstance(event, kind)
        ]

    @property
    def starts(self) -> list[Start]:
        return [file.start for file in self.files]

    def fact(self, name: str) -> object:
        """Return the last known value of a fact, or None."""
        known = [
            f.value for f in self.of(FactEvent) if f.name == name and not f.unknown
        ]
        return known[-1] if known else None

    def opened(self, mode: str) -> set[str]:
        """Return the names below the project that were opened, by any process."""
        top = str(self.project) + os.sep
        return {
            event.path.removeprefix(top)
            for event in self.of(Open)
            if event.mode == mode and event.path.startswith(top)
        }

    def troubles(self) -> list[str]:
        return [f"{event.part}: {event.message}" for event in self.of(Trouble)]


class Launcher:
    """Build a session folder as the contract describes it, and run a command."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._count = 0

    def session(
        self,
        project: Path,
        *,
        seed: int | None,
        device: str,
        pass_name: str = "measured",
        rng: str = "native",
        draws: Path | None = None,
        mapping: str = "",
        switches: Mapping[str, str] | None = None,
    ) -> Path:
        self._count += 1
        session = self.folder / f"session-{self._count}"
        (session / "events").mkdir(parents=True)
        (session / "values").mkdir()
        enter = session / "enter"
        shutil.copytree(
            RECORDER,
            enter / "_reprobundle_recorder",
            ignore=shutil.ignore_patterns("__pycache__"),
        )
        shutil.copyfile(
            RECORDER / "entry" / "sitecustomize.py", enter / "sitecustomize.py"
        )
        config = {
            "project": str(project),
            "seed": seed,
            "device": device,
            "pass": pass_name,
            "rng": rng,
            "draws": str(draws or ""),
            "mapping": mapping,
            "switches": dict(switches or {}),
        }
        (session / "config.json").write_text(json.dumps(config))
        return session

    def project(self, files: Mapping[str, str]) -> Path:
        self._count += 1
        project = self.folder / f"project-{self._count}"
        for name, content in files.items():
            path = project / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        project.mkdir(exist_ok=True)
        return project

    def __call__(
        self,
        argv: Sequence[str],
        files: Mapping[str, str] | None = None,
        *,
        project: Path | None = None,
        seed: int | None = None,
        device: str = "as-is",
        variables: Mapping[str, str] | None = None,
        stdin: str = "",
        python_path: bool = True,
        recorded: bool = True,
        traced: bool = False,
        truth: bool = False,
        rng: str = "native",
        draws: Path | None = None,
        mapping: str = "",
        switches: Mapping[str, str] | None = None,
    ) -> Run:
        """Run `argv` (``python`` is this interpreter) in a project of `files`."""
        project = project or self.project(files or {})
        session = self.session(
            project,
            seed=seed,
            device=device,
            pass_name="evidence" if traced else "truth" if truth else "measured",
            rng=rng,
            draws=draws,
            mapping=mapping,
            switches=switches,
        )
        environment = plain_environment()
        if recorded:
            environment["REPROBUNDLE_SESSION"] = str(session)
            if python_path:
                environment["PYTHONPATH"] = str(session / "enter")
        environment.update(variables or {})
        program = [sys.executable if argv[0] == "python" else argv[0], *argv[1:]]
        done = subprocess.run(
            program,
            cwd=project,
            env=environment,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        return Run(
            session=session,
            project=project,
            status=done.returncode,
            stdout=done.stdout,
            stderr=done.stderr,
            files=read_events(session / "events"),
        )


def plain_environment() -> dict[str, str]:
    """Return this process's variables without those that would enter the child."""
    left_out = ("PYTHONPATH", "REPROBUNDLE_SESSION", "COV_CORE_SOURCE")
    environment = {k: v for k, v in os.environ.items() if k not in left_out}
    # Test runners measure themselves through variables of their own.
    environment = {k: v for k, v in environment.items() if not k.startswith("PYTEST")}
    environment["PATH"] = os.pathsep.join(
        (str(Path(sys.executable).parent), environment.get("PATH", os.defpath))
    )
    return environment


@pytest.fixture(scope="module")
def launch(tmp_path_factory: pytest.TempPathFactory) -> Launcher:
    """Run commands in folders of one test module."""
    return Launcher(tmp_path_factory.mktemp("recorded"))
