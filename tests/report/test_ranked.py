"""What `inspect` shows of a distributed run names the process it is of."""

import msgspec
import pytest

from reprobundle.format.record import Randomness, Rank, SeedCall
from reprobundle.report.inspect import render_inspect
from reprobundle.report.ranked import FACTS, PHASES, STATES
from reprobundle.report.screen import Screen
from reprobundle.verify.completeness import _seeds
from tests.report import bundles

RANKS = (
    Rank(rank=0, world_size=2, pid=11, joined=True, ended=True, steps=3),
    Rank(rank=1, world_size=2, pid=12, seeds=("torch.manual_seed(6)",)),
)
STATE = {"torch.cpu": "aa"}
CALLS = tuple(
    SeedCall(function="torch.manual_seed", value=value, where="t.py:2", pid=pid)
    for value, pid in (("6", 12), ("5", 11), ("4", 10))
)


def of_ranks(ranks=RANKS, calls=CALLS):
    drawn = Randomness(calls=calls, initial=STATE, final=STATE)
    return msgspec.structs.replace(bundles.RECORD, ranks=ranks, randomness=drawn)


def shown(record):
    run = msgspec.structs.replace(bundles.VIEW.runs[0], record=record)
    view = msgspec.structs.replace(bundles.VIEW, runs=(run,))
    return " ".join(render_inspect(view, Screen()).split())


def test_each_seed_names_its_rank():
    words = shown(of_ranks())
    assert "rank 1: torch.manual_seed(6)" in words
    assert "rank 0: torch.manual_seed(5)" in words
    assert "no rank: torch.manual_seed(4)" in words


def test_each_rank_has_a_row():
    words = shown(of_ranks())
    assert "0 2 joined reported 3 none set none" in words
    assert "1 2 never joined not reported 0 torch.manual_seed(6) none" in words


@pytest.mark.parametrize("sentence", [STATES, PHASES, FACTS])
def test_blocks_of_one_process_say_so_for_a_distributed_run_only(sentence):
    assert sentence in shown(of_ranks())
    assert sentence not in shown(of_ranks(ranks=()))


def test_generators_of_the_agent_do_not_vouch_for_the_ranks():
    assert _seeds(of_ranks(calls=())).outcome == "warn"
    assert _seeds(of_ranks(ranks=(), calls=())).outcome == "not-applicable"
