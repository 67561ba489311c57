"""Whether a record tells of a run of its own, at a time that can be (V11, V12).

Anybody can write a record. What nobody can do by accident is to need the same time as
another run, to the nanosecond, or to start before the run that is repeated. Who alters
the figures of a copied record by hand is found out by a signature only.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence

from reprobundle.format.findings import Finding
from reprobundle.format.record import Record
from reprobundle.verify.checks import finding
from reprobundle.verify.ending import is_finished

_NO_TIME = "it states that it came to its end and took no time"
# Clocks of two machines differ, and some are set to local time.
CLOCK_SLACK = datetime.timedelta(days=1)


def copied_from(
    record: Record, runs: Mapping[int, Record], others: Iterable[Record]
) -> str:
    """Return what a record is a copy of, or nothing.

    Args:
        record: The record.
        runs: Sealed runs by number, itself not among them.
        others: Other attached records.
    """
    if not record.elapsed_ns:
        return ""  # It stopped before anything ran.
    for number, run in sorted(runs.items()):
        if run.elapsed_ns == record.elapsed_ns:
            return f"sealed run {number}"
    for other in others:
        if other != record and other.elapsed_ns == record.elapsed_ns:
            return "another attached record"
    return ""


def check_sealed_copies(runs: Mapping[int, Record]) -> Iterator[Finding]:
    """Yield which sealed run is a copy of an earlier one (V11)."""
    bad = False
    for number, record in sorted(runs.items()):
        earlier = {one: run for one, run in runs.items() if one < number}
        original = copied_from(record, earlier, ())
        if original or _took_no_time(record):
            bad = True
            reason = f"it took the time of {original} to the nanosecond: it is a copy"
            if not original:
                reason = f"{_NO_TIME}: it is no run"
            where = f"runs/{number}"
            yield finding(
                "copied-run", "fail", reason, where=where, got=record.elapsed_ns
            )
    if not bad:
        yield finding("copied-run", "pass", f"{len(runs)} sealed runs")


def check_own_run(
    replay: Record,
    runs: Mapping[int, Record],
    earlier: Sequence[Record],
    now: datetime.datetime,
) -> Iterator[Finding]:
    """Yield whether a replay is a run of its own, at a time that can be (V12).

    Args:
        replay: The replay.
        runs: Sealed runs by number.
        earlier: Records that were attached before it.
        now: The time of this machine.
    """
    original = copied_from(replay, runs, earlier)
    if _took_no_time(replay):
        yield finding(
            "copied-replay",
            "fail",
            f"{_NO_TIME}: no run of its own",
            got=replay.elapsed_ns,
            advice="replay the bundle",
        )
    elif original:
        yield finding(
            "copied-replay",
            "fail",
            f"it took the time of {original} to the nanosecond: it is a copy, and no "
            "run of its own",
            got=replay.elapsed_ns,
            advice="replay the bundle",
        )
    else:
        yield finding("copied-replay", "pass", got=replay.elapsed_ns)
    problem = _impossible(replay.started, runs[1].started, now)
    if problem:
        advice = "set the clock of the machine that replays"
        yield finding("replay-time", "warn", problem, got=replay.started, advice=advice)
    else:
        yield finding("replay-time", "pass", got=replay.started)


def _took_no_time(record: Record) -> bool:
    return not record.elapsed_ns and is_finished(record)


def _impossible(started: str, reference: str, now: datetime.datetime) -> str:
    """Return why a replay cannot have started then, or nothing."""
    time, first = _time(started), _time(reference)
    if time is None:
        return "its start is no point in time as RFC 3339 writes it"
    if first is not None and time < first - CLOCK_SLACK:
        return f"it started before the run that it repeats, which began {reference}"
    if time > now + CLOCK_SLACK:
        return "it started in the future, by this machine's clock"
    return ""


def _time(text: str) -> datetime.datetime | None:
    try:
        found = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return found if found.tzinfo is not None else None
