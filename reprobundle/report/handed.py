"""Hand-offs for people and programs: how the run stands, and every place of a copy."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from reprobundle.handoff.findings import Finding
from reprobundle.handoff.leaving import Left
from reprobundle.handoff.state import State, day_in
from reprobundle.report import text


def render_status(
    state: State, status: dict[str, Any] | None, found: Iterable[Finding], *, why: str
) -> str:
    """Return how a hand-off stands.

    Args:
        state: What this machine knows.
        status: The other machine's answer; None when it was not asked or not reached.
        found: What that answer shows.
        why: Why there is no answer.
    """
    return "\n".join(text.safe(line) for line in _lines(state, status, found, why))


def _lines(
    state: State, status: dict[str, Any] | None, found: Iterable[Finding], why: str
) -> Iterator[str]:
    yield f"{state.name}: {_standing(status, why)}"
    yield f"  bundle    {state.path} ({state.bundle[: text.SHORT_DIGEST]})"
    if state.data_class:
        until = (
            f", copies to be deleted by {state.delete_by}" if state.delete_by else ""
        )
        yield f"  data      {state.data_class}{until}"
    if state.overridden:
        yield f"  policy    overridden: {state.overridden}"
    for one in found:
        yield f"  finding   {one.name}: {one.text}"
    if is_overdue(state):
        yield f"  finding   copies-overdue: they had to be gone by {state.delete_by}"
    if state.fetched:
        short = ", ".join(one[: text.SHORT_DIGEST] for one in state.fetched)
        yield f"  attached  {short}"
    for place in state.places:
        end = f", gone since {place.removed}" if place.removed else ""
        yield f"  copy      {place.kind} in {place.where}, made {place.made}{end}"


def is_overdue(state: State) -> bool:
    """Whether a copy on the other machine should be gone by now."""
    there = any(
        not one.removed and one.where.startswith(f"{state.destination}:")
        for one in state.places
    )
    return bool(state.delete_by) and there and day_in(0) > state.delete_by


def _standing(status: dict[str, Any] | None, why: str) -> str:
    if status is None:
        return f"not asked ({why})"
    result, progress = status.get("result"), status.get("progress")
    words = str(status["state"])
    if not status.get("exists", True):
        return "nothing is there"
    if status["state"] == "finished" and result:
        return f"{words}, exit status {result['exit_status']}, {result['verdict']}"
    if progress and status["state"] in ("running", "starting"):
        total = f" {progress['done']}/{progress['total']}" if progress["total"] else ""
        return f"{words}, {progress['step']}{total}"
    return words


def status_json(
    state: State, status: dict[str, Any] | None, found: Iterable[Finding], *, why: str
) -> dict[str, object]:
    """Return the same for programs."""
    return {
        "name": state.name,
        "bundle": state.bundle,
        "path": state.path,
        "destination": state.destination,
        "state": status["state"] if status else "unknown",
        "unknown": why,
        "result": (status or {}).get("result"),
        "progress": (status or {}).get("progress"),
        "findings": [{"name": one.name, "text": one.text} for one in found],
        "attached": list(state.fetched),
        "data_class": state.data_class,
        "delete_by": state.delete_by,
        "overdue": is_overdue(state),
        "policy_overridden": state.overridden,
        "places": [
            {
                "kind": one.kind,
                "where": one.where,
                "made": one.made,
                "removed": one.removed,
            }
            for one in state.places
        ],
    }


def render_json(documents: list[dict[str, object]]) -> str:
    """Return several hand-offs as JSON."""
    return json.dumps(documents, indent=1)


def render_left(left: Iterable[Left], destination: str) -> str:
    """Return what lies on the other machine."""
    entries = list(left)
    if not entries:
        return f"nothing is left on {text.safe(destination)}"
    lines = [
        f"{text.size(one.size_bytes):>10}  {text.plural(one.files, 'file'):>12}  "
        f"{text.safe(one.path)}"
        for one in entries
    ]
    total = text.size(sum(one.size_bytes for one in entries))
    return "\n".join((*lines, f"{total} on {text.safe(destination)}"))
