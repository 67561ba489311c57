"""Detached replays, one line each."""

from __future__ import annotations

import json

from reprobundle.replay.jobs import JobStatus, cancel, find_job, jobs, status
from reprobundle.report import text

EXIT_NO_VERDICT_YET = 11


def render_jobs(name: str | None, *, end: bool, as_json: bool) -> tuple[str, int]:
    """Return what `status` prints, and its exit status.

    The exit status of one job is that of its verdict once it has finished, and 11
    ("no verdict yet") otherwise; that of the list is 0.

    Args:
        name: A job, or None for all.
        end: Whether to end the job first.
        as_json: JSON instead of lines.

    Raises:
        UnknownJobError: There is no such job.
    """
    if name is None:
        found = jobs()
        return _render(found, as_json=as_json) or "no detached replays", 0
    job = find_job(name)
    one = cancel(job) if end else status(job)
    exit_status = one.result.exit_status if one.result else EXIT_NO_VERDICT_YET
    return _render((one,), as_json=as_json), exit_status


def _render(found: tuple[JobStatus, ...], *, as_json: bool) -> str:
    if as_json:
        return json.dumps([_plain(one) for one in found], indent=1)
    return "\n".join(text.safe(one.describe()) for one in found)


def _plain(one: JobStatus) -> dict[str, object]:
    return {
        "job": one.job.name,
        "state": one.state,
        "bundle": one.document.bundle if one.document else "",
        "log": str(one.job.log),
        "step": one.progress.step if one.progress else "",
        "exit_status": one.result.exit_status if one.result else None,
        "verdict": one.result.verdict if one.result else "",
    }
