"""What the folder of a background job says, and how the job stands now.

A job folder holds ``job.json`` (what was started), ``output.log`` (all it prints),
``progress.json`` (written by the running replay), ``result.json`` (written at its
end). A job without a result whose process is gone has crashed: success is only what
was written down.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from reprobundle.replay import detach

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


def status(job: Job) -> JobStatus:
    """Return how `job` stands now."""
    # The process is looked at first: a result written after that look would otherwise
    # be missed, and a job that just ended well would pass for a crashed one.
    document = read_document(job.folder / detach.DOCUMENT_NAME, JobDocument)
    process = process_state(document) if document else "gone"
    result = read_document(job.folder / "result.json", ResultDocument)
    progress = read_document(job.folder / "progress.json", ProgressDocument)
    cancelled = read_document(job.folder / "cancelled.json", CancelDocument) is not None
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


def read_document(path: Path, kind: type[Document]) -> Document | None:
    """Return a document of a job; None when it is missing or cut short."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError):
        return None


def process_state(
    document: JobDocument,
) -> Literal["running", "gone", "rebooted", "other-host"]:
    """Tell whether the very process of a job still runs."""
    if document.host != platform.node():
        return "other-host"
    now = detach.boot_id()
    if document.boot and now and document.boot != now:
        return "rebooted"
    token = detach.start_token(document.pid)
    return "running" if token and token == document.process_start else "gone"
