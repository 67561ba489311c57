"""Runs that were asked to differ show causes, and decide nothing."""

from __future__ import annotations

import pytest

from reprobundle.errors import BadCallError
from reprobundle.format.findings import Verdict
from reprobundle.format.record import Experiment, Fact
from tests.verify.builder import ENVIRONMENT, FAR, NEAR, Bench, Run, found, outputs

ASKED = {**ENVIRONMENT, "asked.threads": Fact(value="1", source="replay")}
PAIR = "ab" * 8


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path).pack()


def differing(bench, **changes):
    return bench.replay(Run(outputs(logits=FAR)), **changes)


def side(letter):
    return Experiment(id=PAIR, side=letter)


def test_an_experiment_that_differs_leaves_the_verdict_alone(bench):
    bench.replay(Run(outputs(logits=NEAR)))
    replay = differing(bench, experiment=Experiment(id=PAIR), environment=ASKED)
    report = bench.verify()
    assert report.verdict == Verdict.WITHIN_TOLERANCE.value
    assert [one.replay for one in report.experiments] == [replay]
    assert report.experiments[0].asked == "threads=1"
    (said,) = found(report, "experiment")
    assert (said.outcome, said.where) == ("not-applicable", f"replays/{replay}")


def test_an_experiment_that_agrees_is_no_replay(bench):
    bench.replay(experiment=Experiment(id=PAIR), environment=ASKED)
    report = bench.verify()
    assert report.verdict == Verdict.NOT_YET_REPLAYED.value
    assert report.exit_status == 11


def test_what_a_run_was_asked_tells_without_the_mark(bench):
    bench.replay(environment=ASKED)
    assert bench.verify().verdict == Verdict.NOT_YET_REPLAYED.value


def test_an_experiment_asked_for_by_its_id_is_judged_and_never_plain(bench):
    replay = bench.replay(experiment=Experiment(id=PAIR), environment=ASKED)
    report = bench.verify(replay=replay[:12])
    assert (report.verdict, report.exit_status) == (Verdict.WITH_WARNINGS.value, 12)
    (said,) = found(report, "experiment", "warn")
    assert "threads=1" in said.reason
    assert not report.experiments


def test_an_experiment_cannot_be_allowed_to_0(bench):
    replay = bench.replay(experiment=Experiment(id=PAIR), environment=ASKED)
    report = bench.verify(replay=replay, allow=("experiment",))
    assert report.exit_status == 12


def test_an_experiment_that_differs_and_is_asked_for_says_no(bench):
    replay = differing(bench, experiment=Experiment(id=PAIR), environment=ASKED)
    assert bench.verify(replay=replay).exit_status == 10
    assert bench.verify(only=(replay,)).exit_status == 10


def test_both_sides_of_a_pair_stand_together(bench):
    first = bench.replay(experiment=side("A"))
    alone = bench.replay(experiment=Experiment(id="cd" * 8), elapsed_ns=5)
    second = bench.replay(experiment=side("B"), environment=ASKED)
    shown = bench.verify().experiments
    assert [one.replay for one in shown] == [first, second, alone]
    assert [(one.side, one.asked) for one in shown] == [
        ("A", "nothing of its own"),
        ("B", "threads=1"),
        ("", "nothing of its own"),
    ]


def test_an_experiment_is_not_suggested_from(bench):
    from reprobundle.verify.suggest import suggest

    bench.replay()
    plain = suggest(bench.path)
    differing(bench, experiment=Experiment(id=PAIR), environment=ASKED)
    assert suggest(bench.path) == plain


def test_an_unknown_id_is_still_refused(bench):
    bench.replay(experiment=Experiment(id=PAIR), environment=ASKED)
    with pytest.raises(BadCallError, match="0 replays match"):
        bench.verify(replay="0" * 12)
