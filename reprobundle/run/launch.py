"""Start a command with the recorder on its path, and keep what it prints.

The recorder is *copied* into the session folder under a name of its own: were our
site-packages on the user's path, our versions of other packages could shadow theirs.
"""

from __future__ import annotations

import contextlib
import datetime
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from reprobundle.errors import BadCallError
from reprobundle.format.record import DrawMode
from reprobundle.run.watch import ProcessWatch, SeenProcess, interpreters, is_python
from reprobundle.temporary.guard import SESSION_VARIABLE
from reprobundle.temporary.guarded import told_to_guard

RECORDER_NAME = "_reprobundle_recorder"
GRACE_SECONDS = 10.0


@dataclass(frozen=True)
class Session:
    """The folder in which recorder and launcher meet.

    Attributes:
        folder: Holds ``config.json``, ``enter/``, ``events/``, ``values/`` and the
            logs ``stdout.txt`` and ``stderr.txt``.
    """

    folder: Path

    @property
    def events(self) -> Path:
        """Folder of the event files."""
        return self.folder / "events"

    @property
    def values(self) -> Path:
        """Folder of recorded values."""
        return self.folder / "values"

    @property
    def stdout(self) -> Path:
        """What the command printed to its standard output."""
        return self.folder / "stdout.txt"

    @property
    def stderr(self) -> Path:
        """What the command printed to its standard error."""
        return self.folder / "stderr.txt"


@dataclass(frozen=True)
class Draws:
    """How a run makes its random draws.

    Attributes:
        mode: As in `reprobundle.format.record.Drawn`.
        source: File with the reference's draws, to be taken in mode ``recorded``;
            None to keep this run's own.
        limit_bytes: Budget for the draws that are kept.
    """

    mode: DrawMode = "native"
    source: Path | None = None
    limit_bytes: int = 64 << 20


NATIVE = Draws()


@dataclass(frozen=True)
class Launched:
    """How a launched command ended.

    Attributes:
        session: Its session.
        pid: Process id of the command itself.
        exit_status: As the shell would see it; negative for a signal number.
        started: RFC 3339, UTC, start of the command.
        start_ns: The same on the monotonic clock.
        elapsed_ns: Wall time from start to end.
        interrupted: Whether it was ended by an interrupt from the keyboard.
        watched: Whether the process tree could be watched.
        pythons: The Python processes seen in the tree.
    """

    session: Session
    pid: int
    exit_status: int
    started: str
    start_ns: int
    elapsed_ns: int
    interrupted: bool
    watched: bool
    pythons: tuple[SeenProcess, ...]


def make_session(
    folder: Path,
    project: Path,
    *,
    seed: int | None,
    device: str,
    pass_name: str = "measured",
    draws: Draws = NATIVE,
    mapping: str = "",
    switches: Mapping[str, str] | None = None,
) -> Session:
    """Create the session folder for one run and copy the recorder into it.

    Args:
        folder: New folder.
        project: The scratch folder that stands for the project.
        seed: Seed to set before the user's code, or None.
        device: ``as-is``, ``cpu``, ``cuda`` or ``mps``.
        pass_name: As in the run record; ``evidence`` turns tracing on.
        draws: How random draws are made.
        mapping: ``cuda=cpu`` or ``cuda=mps`` to give CUDA's calls to that device.
        switches: Switches of torch that the recorder sets.
    """
    session = Session(folder)
    session.events.mkdir(parents=True)
    session.values.mkdir()
    source = recorder_folder()
    enter = folder / "enter"
    shutil.copytree(
        source,
        enter / RECORDER_NAME,
        ignore=shutil.ignore_patterns("__pycache__", "*.pyc"),
    )
    shutil.copyfile(source / "entry" / "sitecustomize.py", enter / "sitecustomize.py")
    taken = folder / "draws.safetensors"
    if draws.source is not None:
        # Inside the session, so that reading it is no input of the run.
        shutil.copyfile(draws.source, taken)
    config = {
        "project": str(project),
        "seed": seed,
        "device": device,
        "pass": pass_name,
        "rng": draws.mode,
        "draws": str(taken) if draws.source else "",
        "draws_limit_bytes": draws.limit_bytes,
        "mapping": mapping,
        "switches": dict(switches or {}),
    }
    (folder / "config.json").write_text(json.dumps(config))
    return session


def recorder_folder() -> Path:
    """Return where the recorder's source lies, without importing it."""
    spec = importlib.util.find_spec("reprobundle")
    if spec is None or not spec.submodule_search_locations:
        raise BadCallError("the installed reprobundle package has no recorder")
    return Path(next(iter(spec.submodule_search_locations))) / "recorder"


def find_python(argv: tuple[str, ...], path: str | None = None) -> Path | None:
    """Return the interpreter that `argv` starts with, or the first one on the path.

    Args:
        argv: The command.
        path: Search path; the process's own by default.

    Returns:
        None when there is no interpreter at all.
    """
    candidates = [argv[0]] if argv and is_python(argv[0]) else []
    for name in [*candidates, "python", "python3"]:
        found = shutil.which(name, path=path)
        if found:
            return Path(found).absolute()
    return None


def launch(
    argv: tuple[str, ...],
    *,
    session: Session,
    working_directory: Path,
    environment: Mapping[str, str],
    echo: bool = False,
) -> Launched:
    """Run `argv` to its end under the recorder.

    Args:
        argv: Program and arguments; the program is looked up in the environment's
            ``PATH``.
        session: From `make_session`; its logs are written.
        working_directory: Where to run.
        environment: The whole environment of the command; ``PYTHONPATH`` and
            ``REPROBUNDLE_SESSION`` are added here.
        echo: Copy what the command prints to our standard error as it comes.

    Raises:
        BadCallError: The program does not exist or cannot be executed.
    """
    variables = dict(environment)
    path_entries = [str(session.folder / "enter"), variables.get("PYTHONPATH", "")]
    variables["PYTHONPATH"] = os.pathsep.join(part for part in path_entries if part)
    variables[SESSION_VARIABLE] = str(session.folder)
    alerts = interpreters(variables.get("PATH", os.defpath))
    started = datetime.datetime.now(tz=datetime.timezone.utc)
    start_ns = time.monotonic_ns()
    with (
        session.stdout.open("wb") as out,
        session.stderr.open("wb") as err,
        _echo(session, enabled=echo),
    ):
        process = _start(argv, working_directory, variables, out.fileno(), err.fileno())
        with told_to_guard(process.pid, session.folder):
            watch = ProcessWatch(process.pid, alerts)
            status, interrupted = _wait(process)
        elapsed_ns = time.monotonic_ns() - start_ns
        pythons = watch.stop()
    return Launched(
        session=session,
        pid=process.pid,
        exit_status=status,
        started=started.strftime("%Y-%m-%dT%H:%M:%SZ"),
        start_ns=start_ns,
        elapsed_ns=elapsed_ns,
        interrupted=interrupted,
        watched=watch.supported,
        pythons=pythons,
    )


def _start(
    argv: tuple[str, ...],
    working_directory: Path,
    variables: dict[str, str],
    stdout: int,
    stderr: int,
) -> subprocess.Popen[bytes]:
    program = shutil.which(argv[0], path=variables.get("PATH")) or argv[0]
    if os.sep in argv[0]:
        program = argv[0]
    try:
        return subprocess.Popen(
            [program, *argv[1:]],
            cwd=working_directory,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
    except OSError as error:
        raise BadCallError(
            f"the command {argv[0]!r} cannot be started: {error.strerror}",
            advice="put the whole command after --, such as -- python train.py",
        ) from error


def _wait(process: subprocess.Popen[bytes]) -> tuple[int, bool]:
    try:
        return process.wait(), False
    except KeyboardInterrupt:
        _end_group(process)
        return process.wait(), True


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Interrupt the command's process group; kill it if it does not end in time."""
    for number in (signal.SIGINT, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
            process.wait(timeout=GRACE_SECONDS)
            return


@contextlib.contextmanager
def _echo(session: Session, *, enabled: bool) -> Iterator[None]:
    """Copy what arrives in both logs to our standard error while the block runs."""
    if not enabled:
        yield
        return
    stop = threading.Event()
    thread = threading.Thread(target=_follow, args=(session, stop), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _follow(session: Session, stop: threading.Event) -> None:
    with session.stdout.open("rb") as out, session.stderr.open("rb") as err:
        ending = False
        while not ending:
            ending = stop.wait(0.1)
            for stream in (out, err):
                sys.stderr.write(stream.read().decode(errors="replace"))
            sys.stderr.flush()
