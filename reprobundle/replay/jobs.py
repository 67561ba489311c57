"""Replays that go on without their terminal: start, watch, cancel.

Each job has a folder: ``job.json`` (what was started), ``output.log`` (all it prints),
``progress.json`` (written by the running replay), ``result.json`` (written at its
end). A job without a result whose process is gone has crashed: success is only what
was written down.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from reprobundle.errors import (
    BadCallError,
    EnvironmentUnusableError,
    JobRunningError,
    UnknownJobError,
)
from reprobundle.replay import detach
from reprobundle.run.space import require_writable

START_TIMEOUT_SECONDS = 60
# A cancelled replay interrupts its own command and waits for that to end.
CANCEL_GRACE_SECONDS = 30.0
# A killed process that waits for a device goes only when that answers.
KILL_SECONDS = 10.0
POLL_SECONDS = 0.05
NAME_LIMIT = 80

State = Literal[
    "running", "finished", "crashed", "rebooted", "cancelled", "other-host", "damaged"
]
Document = TypeVar("Document", bound=msgspec.Struct)


class JobDocument(msgspec.Struct, frozen=True, kw_only=True):
    """``job.json``.

    Attributes:
        name: Name of the job; also that of its folder.
        bundle: Id of the bundle it replays.
        argv: The command.
        working_directory: Where it runs.
        started: RFC 3339, UTC.
        host: Name of the machine.
        pid, process_start, boot: Together they name one process for good.
    """

    name: str
    bundle: str
    argv: tuple[str, ...]
    working_directory: str
    started: str
    host: str
    pid: int = 0
    process_start: str = ""
    boot: str = ""


class ProgressDocument(msgspec.Struct, frozen=True, kw_only=True):
    """``progress.json``: the step that runs, `done` of `total` (0 when unknown)."""

    step: str
    done: int = 0
    total: int = 0
    updated: str


class ResultDocument(msgspec.Struct, frozen=True, kw_only=True):
    """``result.json``: how the replay ended by itself."""

    exit_status: int
    verdict: str
    ended: str


class CancelDocument(msgspec.Struct, frozen=True, kw_only=True):
    """``cancelled.json``: that and when the job was told to end."""

    requested: str


@dataclass(frozen=True)
class Job:
    """A job by its folder.

    Attributes:
        folder: Holds its documents and its log.
    """

    folder: Path

    @property
    def name(self) -> str:
        """Its name."""
        return self.folder.name

    @property
    def log(self) -> Path:
        """All that the command printed."""
        return self.folder / detach.LOG_NAME


@dataclass(frozen=True)
class JobStatus:
    """How a job stands now.

    Attributes:
        job: The job.
        state: ``running``; ``finished`` (it wrote its result); ``crashed`` (its process
            is gone without one); ``rebooted`` (the machine started anew meanwhile);
            ``cancelled``; ``other-host`` (only that machine can tell); ``damaged``
            (its description cannot be read).
        document: What was started; None when damaged.
        progress: Last step told, if any.
        result: How it ended, if it said so.
    """

    job: Job
    state: State
    document: JobDocument | None = None
    progress: ProgressDocument | None = None
    result: ResultDocument | None = None

    def describe(self) -> str:
        """Return one line for people."""
        parts = [f"{self.job.name}: {self.state}"]
        if self.result is not None:
            parts.append(
                f"exit status {self.result.exit_status}, {self.result.verdict}"
            )
        elif self.progress is not None:
            step = self.progress.step
            count = f" {self.progress.done}/{self.progress.total}"
            parts.append(f"{step}{count if self.progress.total else ''}")
        if self.state == "crashed":
            parts.append(
                f"its process ended without a result, see {str(self.job.log)!r}"
            )
        if self.state == "rebooted":
            parts.append("the machine was started anew while it ran; start it again")
        if self.state == "other-host" and self.document is not None:
            parts.append(f"it was started on {self.document.host}; ask there")
        return ", ".join(parts)


def jobs_root() -> Path:
    """Return the folder of all jobs: in the user's state folder."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "reprobundle" / "jobs"


def start_detached(
    argv: Sequence[str],
    *,
    name: str,
    bundle: str,
    root: Path | None = None,
    env: Mapping[str, str] | None = None,
    working_directory: Path | None = None,
) -> Job:
    """Start `argv` in a session of its own and return at once.

    It reads nothing, prints into its log, ignores a hang-up, and finds its folder in
    the variable ``REPROBUNDLE_JOB``.

    Args:
        argv: Program and arguments.
        name: Wanted name; a number is added.
        bundle: Id of the bundle: one job for each at a time.
        root: Folder of all jobs.
        env: Its whole environment; ours by default.
        working_directory: Ours by default.

    Raises:
        JobRunningError: A job of the same bundle is running.
        BadCallError: The command cannot be started.
        EnvironmentUnusableError: The folder of jobs cannot be written.
    """
    where = (root or jobs_root()).absolute()
    require_writable(where)
    with _exclusive(where):
        _refuse_second(bundle, where)
        job = _new_job(name, where)
        document = JobDocument(
            name=job.name,
            bundle=bundle,
            argv=tuple(argv),
            working_directory=str((working_directory or Path.cwd()).absolute()),
            started=_now(),
            host=platform.node(),
        )
        problem = _start(job, document, env)
        if problem:
            _remove(job)
            raise BadCallError(f"the command {argv[0]!r} cannot be started: {problem}")
    return job


def jobs(root: Path | None = None) -> tuple[JobStatus, ...]:
    """Return the status of every job, the one started last first."""
    where = root or jobs_root()
    found = [
        status(Job(path.parent)) for path in where.glob(f"*/{detach.DOCUMENT_NAME}")
    ]
    return tuple(
        sorted(
            found,
            key=lambda one: (
                one.document.started if one.document else "",
                one.job.name,
            ),
            reverse=True,
        )
    )


def find_job(name: str, root: Path | None = None) -> Job:
    """Return the job called `name`.

    Raises:
        UnknownJobError: There is none.
    """
    folder = (root or jobs_root()) / name
    if "/" in name or not (folder / detach.DOCUMENT_NAME).is_file():
        raise UnknownJobError(
            f"there is no job {name!r}",
            advice="the status without a name lists all jobs",
        )
    return Job(folder)


def status(job: Job) -> JobStatus:
    """Return how `job` stands now."""
    # The process is looked at first: a result written after that look would otherwise
    # be missed, and a job that just ended well would pass for a crashed one.
    document = _read(job.folder / detach.DOCUMENT_NAME, JobDocument)
    process = _process_state(document) if document else "gone"
    result = _read(job.folder / "result.json", ResultDocument)
    progress = _read(job.folder / "progress.json", ProgressDocument)
    cancelled = _read(job.folder / "cancelled.json", CancelDocument) is not None
    state: State
    if document is None:
        state = "damaged"
    elif process == "running":
        state = "running"
    elif cancelled:
        state = "cancelled"
    elif result is not None:
        state = "finished"
    elif process == "gone":
        state = "crashed"
    else:
        state = process
    return JobStatus(job, state, document, progress, result)


def cancel(job: Job, *, grace_seconds: float = CANCEL_GRACE_SECONDS) -> JobStatus:
    """Interrupt a running job, and kill it with all its processes if it goes on.

    A job that is not running is left as it is.

    Args:
        job: The job.
        grace_seconds: How long it may take to end by itself.
    """
    found = status(job)
    if found.state != "running" or found.document is None:
        return found
    document = found.document
    detach.write_document(job.folder / "cancelled.json", {"requested": _now()})
    family = _family(document.pid)
    _signal({document.pid: document.process_start}, signal.SIGINT)
    _await_end(document, grace_seconds)
    # Children that are born while it ends belong to it as well.
    family = {**_family(document.pid), **family}
    _signal(family, signal.SIGKILL)
    _await_end(document, KILL_SECONDS)
    return status(job)


def _await_end(document: JobDocument, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while _process_state(document) == "running" and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)


def report_progress(step: str, *, done: int = 0, total: int = 0) -> None:
    """Tell the job that this process is, if it is one, what happens now."""
    folder = _own_folder()
    if folder is not None:
        document = {"step": step, "done": done, "total": total, "updated": _now()}
        with contextlib.suppress(OSError):  # A full disk must not end the replay.
            detach.write_document(folder / "progress.json", document)


def report_result(exit_status: int, verdict: str) -> None:
    """Write down how the replay in this process ended, if it is a job.

    Raises:
        EnvironmentUnusableError: It cannot be written; the job then counts as crashed.
    """
    folder = _own_folder()
    if folder is None:
        return
    document = {"exit_status": exit_status, "verdict": verdict, "ended": _now()}
    try:
        detach.write_document(folder / "result.json", document)
    except OSError as error:
        raise EnvironmentUnusableError(
            f"the result of job {folder.name!r} cannot be written: {error.strerror}"
        ) from error


def _own_folder() -> Path | None:
    """Return the folder of the job this very process is.

    A command that the job started inherits the variable; it is not the job.
    """
    name = os.environ.get(detach.JOB_VARIABLE)
    if not name:
        return None
    document = _read(Path(name) / detach.DOCUMENT_NAME, JobDocument)
    mine = document is not None and document.pid == os.getpid()
    return Path(name) if mine else None


def _now() -> str:
    return datetime.now(tz=timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _read(path: Path, kind: type[Document]) -> Document | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError):
        return None


@contextlib.contextmanager
def _exclusive(root: Path) -> Iterator[None]:
    with (root / ".lock").open("w") as claim:
        fcntl.flock(claim, fcntl.LOCK_EX)
        yield


def _refuse_second(bundle: str, root: Path) -> None:
    for one in jobs(root):
        same = one.document is not None and one.document.bundle == bundle
        if same and one.state == "running":
            raise JobRunningError(
                f"job {one.job.name!r} is replaying this bundle already",
                job=one.job.name,
                advice="wait for it, or cancel it",
            )


def _new_job(name: str, root: Path) -> Job:
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:NAME_LIMIT] or "replay"
    number = 1
    while True:
        folder = root / f"{plain}-{number}"
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
            return Job(folder)
        number += 1


def _start(job: Job, document: JobDocument, env: Mapping[str, str] | None) -> str:
    """Start the command and return what kept it from starting, else nothing."""
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", detach.__file__, str(job.folder)],
        env=None if env is None else dict(env),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        # The pipe closes when the command itself has been started.
        problem, talk = process.communicate(
            msgspec.json.encode(document), timeout=START_TIMEOUT_SECONDS
        )
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return f"no sign of it within {START_TIMEOUT_SECONDS} s"
    if process.returncode != 0:
        return talk.decode(errors="replace").strip().rpartition("\n")[2]
    if not problem and _read(job.folder / detach.DOCUMENT_NAME, JobDocument) is None:
        return "it ended before it was described"
    return problem.decode(errors="replace")


def _remove(job: Job) -> None:
    for path in job.folder.iterdir():
        path.unlink()
    job.folder.rmdir()


def _process_state(
    document: JobDocument,
) -> Literal["running", "gone", "rebooted", "other-host"]:
    if document.host != platform.node():
        return "other-host"
    now = detach.boot_id()
    if document.boot and now and document.boot != now:
        return "rebooted"
    token = detach.start_token(document.pid)
    return "running" if token and token == document.process_start else "gone"


def _family(pid: int) -> dict[int, str]:
    """Return the process and all below it, with their start tokens."""
    return {
        member: detach.start_token(member) for member in (pid, *detach.descendants(pid))
    }


def _signal(processes: Mapping[int, str], number: signal.Signals) -> None:
    """Send a signal to those processes that are still the same ones."""
    for pid, token in processes.items():
        if token and detach.start_token(pid) == token:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
