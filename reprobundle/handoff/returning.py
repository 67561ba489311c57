"""Fetch the record of a replay from the other machine, judge it, attach it here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from reprobundle.errors import EXIT_BAD_BUNDLE, BundleError
from reprobundle.format.attach import attach_replay_file
from reprobundle.format.findings import Report
from reprobundle.handoff import state as known
from reprobundle.handoff.copying import Say, fetch
from reprobundle.handoff.errors import RefusedThereError
from reprobundle.handoff.findings import OVER
from reprobundle.handoff.hand import agent_of, record_file, remember, status_of
from reprobundle.handoff.leaving import plain_gone
from reprobundle.handoff.state import Place, State
from reprobundle.handoff.wish import RECORD_NAME
from reprobundle.verify.verify import verify_bundle


@dataclass(frozen=True)
class Returned:
    """What came back.

    Attributes:
        state: The hand-off now.
        report: The verdict on the bundle with what is attached to it.
        attached: Ids of the replays that were attached now.
        kept: The record file here, where it was asked for.
    """

    state: State
    report: Report
    attached: tuple[str, ...]
    kept: Path | None


def bring_back(
    state: State,
    *,
    keep: Path | None = None,
    allow: tuple[str, ...] = (),
    retries: int,
    say: Say,
) -> Returned:
    """Fetch the record, prove it, attach it to the bundle, and judge.

    Args:
        state: The hand-off.
        keep: Also keep the record as a file of its own there.
        allow: Named warnings that the caller accepts.
        retries: How often a lost connection is made again.
        say: Told each step as one line.

    Raises:
        RefusedThereError: There is no record: the run goes on, or came to none.
        BundleError: The record is not whole, or not of this bundle.
        EnvironmentUnusableError: It cannot be fetched or attached.
    """
    status = status_of(state, retries=retries, say=say)
    state, _ = remember(state, status)
    _require_record(state, status)
    target = keep or record_file(state)
    fetch(agent_of(state), RECORD_NAME, target, retries=retries, say=say)
    bundle = Path(state.path)
    alone = verify_bundle(bundle, replay_file=target)
    if alone.exit_status == EXIT_BAD_BUNDLE:
        words = "; ".join(alone.reasons[:2])
        raise BundleError(f"the record is not attached: {words}", rule="V6")
    attached = attach_replay_file(bundle, target)
    say(
        f"attached {', '.join(one[:12] for one in attached)}"
        if attached
        else "its replays were attached before"
    )
    places = [Place(kind="record", where=f"{bundle}", made=known.now())]
    if keep:
        places.append(Place(kind="record", where=f"{keep}", made=known.now()))
    else:
        target.unlink()
    state = known.save(
        msgspec.structs.replace(
            state.with_places(*places),
            fetched=tuple(dict.fromkeys((*state.fetched, *attached))),
        )
    )
    state = plain_gone(state, retries=retries, say=say)
    return Returned(state, verify_bundle(bundle, allow=allow), tuple(attached), keep)


def _require_record(state: State, status: dict[str, Any]) -> None:
    """Refuse to fetch what is not whole, or not there.

    Raises:
        RefusedThereError: The run has not ended, or left no record.
    """
    name = state.name
    if status["state"] not in OVER:
        word = "has not begun" if status["state"] == "none" else "has not ended"
        raise RefusedThereError(
            f"the run of hand-off {name} {word}",
            advice=f"watch it: reprobundle handoff logs {name} --follow",
        )
    if not status["record_bytes"]:
        raise RefusedThereError(
            f"hand-off {name} left no record: {status['state']}",
            advice=f"see: reprobundle handoff logs {name}",
        )
