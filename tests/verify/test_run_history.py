"""Two points of the acceptance list are ticked from the recorded experiments."""

from __future__ import annotations

import msgspec
import pytest

from reprobundle.format.record import Command, Experiment, Fact, Outcome
from tests.verify.builder import ENVIRONMENT, Bench, found


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path).pack()


def fact(value):
    return Fact(value=value, source="replay")


def pair(bench, left=None, right=None, *, name="ab" * 8, **changes):
    """Attach both sides of a pair with these facts."""
    for side, facts in (("A", left or {}), ("B", right or {})):
        mark = msgspec.convert({"id": name, "side": side}, type=Experiment)
        bench.replay(experiment=mark, environment={**ENVIRONMENT, **facts}, **changes)


def shapes(word):
    return {"asked.shapes": fact(word), "heard.shapes": fact(word)}


def minimal(**more):
    return {"asked.round": fact("minimal"), **more}


def the_one(bench, name):
    (one,) = found(bench.verify(), name)
    return one


def test_without_experiments_neither_is_ticked(bench):
    bench.replay()
    for name in ("lists-one-change", "lists-minimal"):
        assert the_one(bench, name).outcome == "not-checked"


def test_a_pair_that_changes_the_shapes_alone_ticks_one_change(bench):
    pair(bench, shapes("constant"), shapes("dynamic"))
    one = the_one(bench, "lists-one-change")
    assert one.outcome == "pass"
    assert one.reason == (
        "1 recorded changes of a size, each alone; shape: shapes=dynamic"
    )


def test_a_pair_that_changes_more_than_a_size_ticks_nothing(bench):
    pair(bench, shapes("constant"), shapes("dynamic"))
    pair(
        bench,
        {},
        {"observed.batch_size": fact(2), "torch.matmul_precision": fact("high")},
        name="cd" * 8,
    )
    one = the_one(bench, "lists-one-change")
    # A fact of one side alone is no change; both sides have to state it.
    assert one.outcome == "pass"
    pair(
        bench,
        {"observed.batch_size": fact(4), "torch.matmul_precision": fact("highest")},
        {"observed.batch_size": fact(2), "torch.matmul_precision": fact("high")},
        name="ef" * 8,
    )
    one = the_one(bench, "lists-one-change")
    assert one.outcome == "not-checked"
    assert "several things: batch, precision" in one.reason or (
        "several things: precision, batch" in one.reason
    )


def test_a_run_on_its_own_is_compared_with_the_reference(bench):
    command = Command(argv=("python", "train.py", "--batch", "2"), seed=0)
    bench.replay(experiment=Experiment(id="ab" * 8), command=command)
    assert the_one(bench, "lists-one-change").outcome == "pass"


def test_experiments_that_change_no_size_tick_nothing(bench):
    bench.replay(environment={**ENVIRONMENT, "asked.threads": fact("1")})
    one = the_one(bench, "lists-one-change")
    assert one.outcome == "not-checked"
    assert "none of which changes a size" in one.reason


def test_a_minimal_round_that_was_heard_ticks_the_minimal_test(bench):
    heard = minimal(**{"heard.round": fact("minimal")})
    bench.replay(environment={**ENVIRONMENT, **heard})
    assert the_one(bench, "lists-minimal").outcome == "pass"


def test_a_minimal_round_that_nobody_heard_ticks_nothing(bench):
    bench.replay(environment={**ENVIRONMENT, **minimal()})
    one = the_one(bench, "lists-minimal")
    assert one.outcome == "not-checked"
    assert "does not listen" in one.reason


def test_a_minimal_round_that_did_not_end_ticks_nothing(bench):
    heard = minimal(**{"heard.round": fact("minimal")})
    bench.replay(
        environment={**ENVIRONMENT, **heard},
        outcome=Outcome(exit_status=-2, completed=False),
    )
    one = the_one(bench, "lists-minimal")
    assert one.outcome == "not-checked"
    assert "did not come to its end" in one.reason
