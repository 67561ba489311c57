"""A record has to tell of a run of its own, at a time that can be."""

import datetime

import msgspec
import pytest

from reprobundle.verify.own_run import copied_from
from tests.verify.builder import Run, found

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)


def judged(bench, **changes):
    bench.pack().replay(**changes)
    return bench.verify(now=NOW)


@pytest.mark.parametrize("number", [1, 2])
def test_a_copy_of_a_sealed_run_is_no_replay(bench, number):
    report = judged(bench, elapsed_ns=number)
    assert report.verdict == "INCOMPLETE"
    (copied,) = found(report, "copied-replay", "fail")
    assert f"sealed run {number} to the nanosecond" in copied.reason


def test_of_two_equal_replays_the_later_is_the_copy(bench):
    first = bench.pack().replay(occasion="1" * 16)
    second = bench.replay(occasion="2" * 16, elapsed_ns=1001)
    report = bench.verify(now=NOW)
    assert [one.replay for one in report.judgements] == [first, second]
    assert [one.exit_status for one in report.judgements] == [0, 11]
    assert report.verdict == "INCOMPLETE"


def test_a_replay_that_is_attached_and_given_as_a_file_is_no_copy_of_itself(bench):
    bench.pack()
    alone = bench.replay_alone()
    bench.replayed = 0
    bench.replay()
    assert bench.verify(replay_file=alone, now=NOW).exit_status == 0


def test_a_repeat_pass_that_is_a_copy_shows_nothing(bench):
    bench.repeat = Run(changes={"elapsed_ns": 1})
    report = judged(bench)
    assert report.verdict == "INCOMPLETE"
    (copied,) = found(report, "copied-run", "fail")
    assert (copied.where, "sealed run 1" in copied.reason) == ("runs/2", True)


def test_what_stopped_before_it_ran_took_no_time_and_is_no_copy(bench):
    record, _ = bench.reference.build(bench.folder)
    stopped = msgspec.structs.replace(record, elapsed_ns=0)
    assert copied_from(stopped, {1: stopped}, (stopped,)) == ""


@pytest.mark.parametrize(
    ("started", "why"),
    [
        ("2024-12-30T23:59:59Z", "before the run that it repeats"),
        ("2026-01-02T00:00:01Z", "in the future"),
        ("yesterday", "no point in time"),
        ("2025-06-01T00:00:00", "no point in time"),
        ("", "no point in time"),
    ],
)
def test_a_replay_at_an_impossible_time_is_a_warning(bench, started, why):
    report = judged(bench, started=started)
    assert report.verdict == "REPRODUCED WITH WARNINGS"
    (time,) = found(report, "replay-time", "warn")
    assert (why in time.reason, time.got) == (True, started)


@pytest.mark.parametrize(
    "started",
    ["2024-12-31T00:00:00Z", "2026-01-02T00:00:00Z", "2025-06-01T00:00:00+09:00"],
)
def test_clocks_may_differ_by_a_day(bench, started):
    assert judged(bench, started=started).exit_status == 0


def test_a_claim_needs_a_measured_pass(bench):
    report = judged(bench, pass_name="evidence", phases=())
    assert report.verdict == "PARTIAL"
    (claim,) = found(report, "claim-replayed", "not-checked")
    assert "no measured pass" in claim.reason
