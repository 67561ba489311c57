"""Run pip or uv on one environment folder, and keep what they print."""

from __future__ import annotations

import contextlib
import functools
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from reprobundle.errors import EnvironmentUnusableError
from reprobundle.format.lock import Lock
from reprobundle.replay.install_failure import explain
from reprobundle.replay.interpreters import FoundPython
from reprobundle.run.package_sources import (
    find_uv,
    pip_environment,
    pip_settings,
    uv_environment,
)

PIP = ("-I", "-m", "pip")
# The first pip that takes ``--python``.
OLDEST_PIP = (22, 3)

# Lines of the installers that tell a person how far it is.
TELLING = (
    "Collecting ",
    "Downloading ",
    "Building ",
    "Installing ",
    "Prepared ",
    "Resolved ",
)


@dataclass(frozen=True)
class Installer:
    """One installer, set up for one environment folder.

    Attributes:
        kind: Which one.
        name: With its version, such as ``uv 0.13.9``.
        program: How it is started.
        folder: The target folder: ``venv``, ``install.log`` and requirement files.
        base: The interpreter to build on.
        wheels: The only source of packages, or None for the configured ones.
        environment: Its whole environment.
        say: Told each step as one line.
    """

    kind: Literal["pip", "uv"]
    name: str
    program: tuple[str, ...]
    folder: Path
    base: FoundPython
    wheels: Path | None
    environment: Mapping[str, str]
    say: Callable[[str], None]

    @property
    def system(self) -> str:
        """The system it installs for."""
        return self.base.system

    @property
    def architecture(self) -> str:
        """The architecture it installs for."""
        return self.base.architecture

    @property
    def python(self) -> Path:
        """Interpreter of the environment."""
        return self.folder / "venv" / "bin" / "python"

    @property
    def log(self) -> Path:
        """Where all output of the installer is kept."""
        return self.folder / "install.log"

    @contextlib.contextmanager
    def temporary_folder(self) -> Iterator[None]:
        """Give it a folder for temporary files and remove that afterwards."""
        folder = self.folder / "tmp"
        folder.mkdir(exist_ok=True)
        try:
            yield
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def make_venv(self) -> tuple[str, ...]:
        """Make an empty virtual environment in place of whatever was there.

        No installer goes into it: before Python 3.12 setuptools would come along,
        which the lock may not have.

        Returns:
            The command, private paths replaced.
        """
        self.say(
            f"making an environment of {self.base.implementation} {self.base.version}"
        )
        shutil.rmtree(self.folder / "venv", ignore_errors=True)
        self.log.write_bytes(b"")
        venv = str(self.folder / "venv")
        command = [str(self.base.path), "-I", "-m", "venv", "--without-pip", venv]
        with self.temporary_folder():
            status, output = self._run(command)
        if status != 0:
            raise explain(
                output, lock=None, target=self.folder, log=self.log, folder_only=True
            )
        return self._shown(command)

    def install(
        self, lock: Lock, group: str, lines: tuple[str, ...], *, no_dependencies: bool
    ) -> tuple[str, ...]:
        """Install requirement lines into the environment.

        Args:
            lock: What they come from, for messages.
            group: Name of the requirements file.
            lines: Requirements, one each.
            no_dependencies: Whether the lines are complete.

        Returns:
            The command, private paths replaced.
        """
        self.say(f"installing {len(lines)} packages with {self.name}")
        requirements = self.folder / f"requirements-{group}.txt"
        requirements.write_text("".join(f"{line}\n" for line in lines))
        python = ["--python", str(self.python)]
        if self.kind == "uv":
            command = [*self.program, "install", *python]
        else:
            command = [*self.program, *python, "install"]
        command += ["--no-deps"] if no_dependencies else []
        command += ["--require-hashes"] if "--hash=" in lines[0] else []
        if self.wheels is not None:
            command += ["--no-index", "--find-links", str(self.wheels)]
        command += ["-r", str(requirements)]
        status, output = self._run(command)
        if status != 0:
            raise explain(
                output,
                lock=lock,
                target=self.folder,
                log=self.log,
                folder_only=self.wheels is not None,
            )
        return self._shown(command)

    def _run(self, command: list[str]) -> tuple[int, str]:
        """Run to the end, keep the output, and end the installer if we are ended."""
        lines: list[str] = []
        with self.log.open("a") as log:
            log.write(f"$ {' '.join(command)}\n")
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=dict(self.environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
            )
            with process:
                try:
                    for line in process.stdout or ():
                        log.write(line)
                        lines.append(line)
                        if line.startswith(TELLING):
                            # Who asked for a package says pip in brackets behind it.
                            self.say(line.partition(" (from ")[0].strip())
                except BaseException:
                    process.terminate()
                    raise
        return process.returncode, "".join(lines)

    def _shown(self, command: list[str]) -> tuple[str, ...]:
        """Return `command` without paths of this machine."""
        places = [
            (str(self.folder), "{environment}"),
            (str(self.wheels or self.folder), "{wheels}"),
            (str(self.base.path), f"python{self.base.minor}"),
            (self.program[0], "uv" if self.kind == "uv" else "python"),
        ]
        shown = []
        for argument in command:
            text = argument
            for path, name in places:
                if text == path or text.startswith(f"{path}/"):
                    text = name + text[len(path) :]
            shown.append(text)
        return tuple(shown)


def make_installer(
    kind: Literal["auto", "pip", "uv"],
    *,
    folder: Path,
    base: FoundPython,
    wheels: Path | None,
    cache: Path,
    say: Callable[[str], None],
) -> Installer:
    """Return the installer to use: uv where it is, else a pip of this machine.

    Raises:
        EnvironmentUnusableError: There is none.
    """
    uv = None if kind == "pip" else find_uv()
    pip = None if uv or kind == "uv" else find_pip(base.path)
    if uv is None and pip is None:
        raise EnvironmentUnusableError(
            f"{'uv' if kind == 'uv' else 'pip 22.3 or newer'} is not installed",
            advice="install uv, or pip for this Python (python3-pip on Debian)",
        )
    # With a folder of wheels no other source counts, so no setting is needed.
    settings = {} if wheels else pip_settings(Path(sys.executable), base.path)
    variables = uv_environment if uv else pip_environment
    return Installer(
        kind="uv" if uv else "pip",
        name=_name_of([str(uv), "--version"] if uv else [str(pip), *PIP, "--version"]),
        program=(str(uv), "pip") if uv else (str(pip), *PIP),
        folder=folder,
        base=base,
        wheels=wheels,
        environment=variables(
            settings, cache=cache / ("uv" if uv else "pip"), temporary=folder / "tmp"
        ),
        say=say,
    )


@functools.cache
def find_pip(base: Path) -> Path | None:
    """Return an interpreter whose pip can install for another one (pip 22.3)."""
    for python in (base, Path(sys.executable)):
        words = _name_of([str(python), *PIP, "--version"])
        version = re.match(r"pip (\d+)\.(\d+)", words)
        if version and (int(version[1]), int(version[2])) >= OLDEST_PIP:
            return python
    return None


def _name_of(command: list[str]) -> str:
    """Return name and version that a program prints, empty if it does not run."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return " ".join(done.stdout.decode(errors="replace").split()[:2])
