"""Completed is said of nothing but an answer."""

from __future__ import annotations

import msgspec
import pytest

from reprobundle.errors import BadCallError
from reprobundle.export.actions import (
    COMPLETED,
    FAILED,
    run_actions,
    verification_error,
)
from reprobundle.export.verified import DECIDED, stated_time
from reprobundle.format.findings import Verdict
from tests.export.test_statement import with_verdict

ANSWERS = {
    Verdict.BIT_IDENTICAL,
    Verdict.WITHIN_TOLERANCE,
    Verdict.WITH_WARNINGS,
    Verdict.NOT_REPRODUCED,
    Verdict.DIFFERENT_FAILURE,
}


def replay_of(what):
    (found,) = (one for one in run_actions(what) if one.id.startswith("#replay-"))
    return found


@pytest.mark.parametrize("verdict", Verdict)
def test_a_verdict_is_an_answer_or_nothing_is_completed(verdict, opened):
    is_answer = verdict in ANSWERS
    with opened("reproduced") as what:
        told = with_verdict(what, verdict)
        replay, error = replay_of(told), verification_error(told)
    assert (verdict.value in DECIDED) is is_answer
    assert replay.record.outcome.exit_status == 0
    assert replay.status == (COMPLETED if is_answer else FAILED)
    assert bool(error) is not is_answer
    assert verdict.value in replay.name
    assert verdict.value in (error or verdict.value)


def test_a_replay_that_was_not_judged_is_not_completed(opened):
    with opened("reproduced") as what:
        report = msgspec.structs.replace(what.report, judgements=())
        replay = replay_of(what._replace(report=report))
    assert replay.status == FAILED
    assert replay.error == "no verdict was made: not judged"


@pytest.mark.parametrize(
    ("outcome", "error"),
    [
        ({"exit_status": 3}, "exit status 3"),
        ({"exit_status": 0, "completed": False}, "it did not come to its end"),
        (
            {"exit_status": 0, "stop": "operator", "stop_detail": "aten::x"},
            "stopped (operator): aten::x",
        ),
    ],
)
def test_a_sealed_run_that_did_not_end_well_is_not_completed(outcome, error, opened):
    with opened("not replayed") as what:
        record = what.sealed.runs[1]
        ended = msgspec.structs.replace(record.outcome, **outcome)
        changed = msgspec.structs.replace(record, outcome=ended)
        sealed = what.sealed._replace(runs={1: changed})
        (action,) = run_actions(what._replace(sealed=sealed))
    assert (action.status, action.error) == (FAILED, error)


def test_the_end_follows_from_start_and_duration(opened):
    with opened("not replayed") as what:
        record = msgspec.structs.replace(
            what.sealed.runs[1],
            started="2026-01-02T23:59:59Z",
            elapsed_ns=61_000_000_000,
        )
        unknown = msgspec.structs.replace(record, started="yesterday")
        sealed = what.sealed._replace(runs={1: record, 2: unknown})
        first, second = run_actions(what._replace(sealed=sealed))
    assert first.ended == "2026-01-03T00:01:00Z"
    assert second.ended == ""


def test_the_stated_time_is_that_of_reproducible_builds(monkeypatch):
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    assert stated_time() is None
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    assert str(stated_time()) == "1970-01-01 00:00:00+00:00"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "soon")
    with pytest.raises(BadCallError, match="expected seconds since 1970"):
        stated_time()
