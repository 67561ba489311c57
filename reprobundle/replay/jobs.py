"""Replays that go on without their terminal: start, watch, cancel.

Each job has a folder of its own; see `job_folder`.
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
from datetime import datetime, timezone
from pathlib import Path

import msgspec

from reprobundle.errors import (
    BadCallError,
    EnvironmentUnusableError,
    JobRunningError,
    UnknownJobError,
)
from reprobundle.replay import detach
from reprobundle.replay.job_folder import (
    Job,
    JobDocument,
    JobStatus,
    process_state,
    read_document,
    status,
)
from reprobundle.run.space import require_writable

__all__ = [
    "Job",
    "JobDocument",
    "JobStatus",
    "cancel",
    "find_job",
    "jobs",
    "jobs_root",
    "report_progress",
    "report_result",
    "start_detached",
    "status",
]

START_TIMEOUT_SECONDS = 60
# A cancelled replay interrupts its own command and waits for that to end.
CANCEL_GRACE_SECONDS = 30.0
# A killed process that waits for a device goes only when that answers.
KILL_SECONDS = 10.0
POLL_SECONDS = 0.05
NAME_LIMIT = 80


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
    while process_state(document) == "running" and time.monotonic() < deadline:
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
    document = read_document(Path(name) / detach.DOCUMENT_NAME, JobDocument)
    mine = document is not None and document.pid == os.getpid()
    return Path(name) if mine else None


def _now() -> str:
    return datetime.now(tz=timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


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
    described = read_document(job.folder / detach.DOCUMENT_NAME, JobDocument)
    if not problem and described is None:
        return "it ended before it was described"
    return problem.decode(errors="replace")


def _remove(job: Job) -> None:
    for path in job.folder.iterdir():
        path.unlink()
    job.folder.rmdir()


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
