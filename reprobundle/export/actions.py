"""Runs and the verification as actions of a Process Run Crate, as plain properties.

An action says how a process went, and "completed" is read as success. So a replay
about which no verdict was made is never completed, however its process ended; and what
the verdict is, the action's name says in full.

Source: Process Run Crate 0.6, https://w3id.org/ro/wfrun/process/0.6.
"""

from __future__ import annotations

import datetime
import shlex
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from reprobundle.export.verified import DECIDED, Verified, first_reason, rfc3339
from reprobundle.format.findings import Judgement
from reprobundle.format.record import Record
from reprobundle.verify.devices import device_of

COMPLETED = "http://schema.org/CompletedActionStatus"
FAILED = "http://schema.org/FailedActionStatus"
_LONGEST_ERROR = 2000


class Result(NamedTuple):
    """One thing that went into an action or came out of it.

    Attributes:
        name: As the run knows it.
        member: The file in the crate that holds it; empty if none does.
        size_bytes, blake3: Of its content.
        note: Why there is no file, in words; empty if there is one.
    """

    name: str
    member: str
    size_bytes: int
    blake3: str
    note: str = ""


class Action(NamedTuple):
    """One run.

    Attributes:
        id: Its identifier in the crate.
        name, description: In words; the name of a replay holds its verdict.
        record: The run.
        started, ended: RFC 3339, UTC; `ended` is empty if `started` is no time.
        status: One of the two words of schema.org.
        error: Why it is not completed.
        signers: Who signed its record, by the list that the caller gave.
        read, made: Files and values on both sides.
    """

    id: str
    name: str
    description: str
    record: Record
    started: str
    ended: str
    status: str
    error: str
    signers: tuple[str, ...]
    read: tuple[Result, ...]
    made: tuple[Result, ...]


def run_actions(what: Verified) -> Iterator[Action]:
    """Yield the sealed runs by number and then the replays in order of attaching."""
    signers = _signers(what)
    for number, record in sorted(what.sealed.runs.items()):
        yield _action(
            f"#run-{number}",
            f"{_kind(record)} on {device_of(record)}",
            record,
            f"runs/{number}",
            error=_process_error(record),
            signers=signers.get(what.bundle.id, ()),
        )
    judged = {one.replay: one for one in what.report.judgements}
    for replay_id, record in what.replays.items():
        judgement = judged.get(replay_id)
        verdict = "no verdict" if judgement is None else judgement.verdict
        yield _action(
            f"#replay-{replay_id}",
            f"{_kind(record)} {replay_id[:12]} on {device_of(record)}: {verdict}",
            record,
            f"replays/{replay_id}",
            error=_replay_error(record, judgement),
            signers=signers.get(replay_id, ()),
        )


def verification_error(what: Verified) -> str:
    """Return why the verification is not completed; empty if it gave an answer."""
    report = what.report
    if report.verdict in DECIDED:
        return ""
    reason = first_reason(report)
    return f"no answer: {report.verdict}{f'; {reason}' if reason else ''}"


def _action(
    identifier: str,
    name: str,
    record: Record,
    folder: str,
    *,
    error: str,
    signers: tuple[str, ...],
) -> Action:
    command = shlex.join(record.command.argv)
    where = record.command.working_directory
    place = "" if where == "." else f" (in {where})"
    return Action(
        id=identifier,
        name=name,
        description=f"{command}{place}; exit status {record.outcome.exit_status}; "
        f"claim {record.claim}; recorded by {record.tool} on {record.platform}",
        record=record,
        started=record.started,
        ended=_ended(record),
        status=FAILED if error else COMPLETED,
        error=error[:_LONGEST_ERROR],
        signers=signers,
        read=tuple(_read(record)),
        made=tuple(_made(record, folder)),
    )


def _kind(record: Record) -> str:
    if record.experiment is not None:
        return "experiment"
    usual = record.role == record.pass_name or record.pass_name == "measured"
    return record.role if usual else f"{record.role} ({record.pass_name})"


def _process_error(record: Record) -> str:
    """Return why the process did not end well; empty if it did."""
    outcome = record.outcome
    if outcome.stop:
        return f"stopped ({outcome.stop}): {outcome.stop_detail}"
    if not outcome.completed:
        return "it did not come to its end"
    if outcome.error is not None:
        expected = "expected " if outcome.expected_failure else ""
        return f"{expected}{outcome.error.type}: {outcome.error.message}"
    if outcome.exit_status:
        return f"exit status {outcome.exit_status}"
    return ""


def _replay_error(record: Record, judgement: Judgement | None) -> str:
    """Return why a replay is not completed: its process, or no verdict about it."""
    failed = _process_error(record)
    if judgement is None:
        why = "an experiment decides nothing" if record.experiment else "not judged"
        return "; ".join(filter(None, (failed, f"no verdict was made: {why}")))
    if judgement.verdict in DECIDED:
        return failed
    reason = judgement.reasons[0] if judgement.reasons else ""
    told = f"no verdict was made: {judgement.verdict}"
    return "; ".join(filter(None, (failed, told, reason)))


def _ended(record: Record) -> str:
    """Return the end by wall time and the run's monotonic clock, to the second."""
    try:
        started = datetime.datetime.fromisoformat(record.started.replace("Z", "+00:00"))
        length = datetime.timedelta(microseconds=record.elapsed_ns / 1000)
        return rfc3339((started + length).astimezone(datetime.timezone.utc))
    except (ValueError, OverflowError):
        return ""


def _read(record: Record) -> Iterator[Result]:
    for read in record.reads:
        if not read.blake3:
            # It was looked for and not there.
            continue
        note = "" if read.member else "not in the crate: kept by size and digest only"
        name = read.origin or read.path.removeprefix("project:")
        yield Result(name, read.member, read.size_bytes, read.blake3, note)


_NOT_KEPT: Mapping[str, str] = {
    "sample": "not in the crate as a whole: digests and values at some places are kept",
    "none": "not in the crate: only its summary and digest are kept",
    "withheld": "not in the crate: its author keeps it",
}


def _made(record: Record, folder: str) -> Iterator[Result]:
    for output in record.outputs:
        member = {"here": f"{folder}/{output.member}", "sealed": output.member}.get(
            output.stored, ""
        )
        note = _NOT_KEPT.get(output.stored, "")
        yield Result(output.name, member, output.size_bytes, output.blake3, note)


def _signers(what: Verified) -> dict[str, tuple[str, ...]]:
    """Return the listed people whose signature holds, by what they signed."""
    found: dict[str, tuple[str, ...]] = {}
    for one in what.report.signatures:
        if one.standing == "known":
            names = (*found.get(one.subject, ()), one.signer)
            found[one.subject] = tuple(dict.fromkeys(names))
    return found
