"""A process that promoted nothing must show in the account of the whole run."""

from __future__ import annotations

import pytest

from reprobundle.run.events import (
    AnyEvent,
    EventFile,
    FactEvent,
    LeftEvent,
    Promoted,
    Start,
    Trouble,
)
from reprobundle.run.promoted import promotion

START = Start(
    t_ns=1,
    pid=1,
    parent_pid=0,
    kind="main",
    argv=("python",),
    executable="python",
    working_directory="/",
)
TORCH = FactEvent(t_ns=2, name="torch.version", value="2.13.0", source="torch")


def file(*events: AnyEvent) -> EventFile:
    return EventFile(start=START, events=(START, *events), damaged_lines=0)


def account(operators: int, *left: LeftEvent) -> Promoted:
    return Promoted(t_ns=3, operators=operators, entered=1, draws=2, left=left)


def test_the_last_accounts_of_all_processes_are_added_up():
    left = LeftEvent(operator="add_.Tensor", why="it writes", count=2)
    found = promotion(
        (
            file(TORCH, account(1), account(10, left)),
            file(TORCH, account(5, left)),
            file(),
        )
    )
    assert (found.operators, found.entered, found.draws) == (15, 2, 4)
    assert [(one.operator, one.count) for one in found.left] == [("add_.Tensor", 4)]


@pytest.mark.parametrize(
    ("events", "why"),
    [
        ((TORCH,), "a process loaded torch and promoted nothing"),
        (
            (TORCH, account(0), Trouble(t_ns=4, part="truth", message="no mode")),
            "the promotion failed: no mode",
        ),
    ],
)
def test_a_process_without_a_promotion_is_left(events, why):
    found = promotion((file(TORCH, account(9)), file(*events)))
    assert [(one.operator, one.why, one.count) for one in found.left] == [("", why, 1)]


def test_a_process_without_torch_has_nothing_to_promote():
    assert promotion((file(TORCH, account(9)), file())).left == ()
