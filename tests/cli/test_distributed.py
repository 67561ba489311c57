"""Distributed runs: one section per rank, and what the ranks must agree on."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from reprobundle.format.canonical import decode
from reprobundle.format.reader import open_bundle
from reprobundle.format.record import Record
from reprobundle.verify.ranks import check_ranks
from tests.cli.conftest import reprobundle

ACTIVATED = {
    "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.defpath)),
    "OMP_NUM_THREADS": "1",
}
SCRIPT = """\
import os, pathlib, sys
import torch, torch.distributed as dist
import reprobundle

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(5)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = torch.Generator().manual_seed(rank)
for _ in range(3):
    optimizer.zero_grad()
    loss = model(torch.randn(8, 4, generator=data)).square().mean()
    loss.backward()
    optimizer.step()
if "drift" in sys.argv and rank == 1:
    with torch.no_grad():
        model.module.weight += 1
reprobundle.record("loss", loss.item())
pathlib.Path(f"rank{rank}.txt").write_text(str(loss.item()))
if "vanish" in sys.argv and rank == 1:
    os.kill(os.getpid(), 9)
dist.destroy_process_group()
"""
TORCHRUN = ("torchrun", "--nproc-per-node", "2")
MODULE = ("python", "-m", "torch.distributed.run", "--nproc-per-node=2")


def shown(folder):
    done = reprobundle("inspect", folder.parent / f"{folder.name}.rpb.zip")
    assert done.status == 0, done.err
    return " ".join(done.out.split())


def record_of(folder, *command, options=()):
    (folder / "train.py").write_text(SCRIPT)
    target = folder.parent / f"{folder.name}.rpb.zip"
    done = reprobundle(
        *("pack", "-q", "-o", target, "--passes", "measured", *options),
        *("--", *command),
        cwd=folder,
        env=ACTIVATED,
    )
    assert done.status == 0, done.err
    with open_bundle(target) as bundle:
        data = bundle.read("runs/1/record.json")
    return decode(data, Record, where="record", rule="test")


def outcomes(record):
    return {(found.id, found.outcome) for found in check_ranks(record)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("ranks")


@pytest.fixture(scope="module")
def record(folder):
    return record_of(folder, *TORCHRUN, "train.py")


def test_the_agent_and_its_ranks_are_told_apart(record):
    parts = [process.part for process in record.processes if process.part]
    assert sorted(parts) == ["agent", "rank", "rank"]
    assert {process.exit_status for process in record.processes} == {0}


def test_each_rank_has_a_section_with_what_it_did(record):
    first, second = record.ranks
    assert [(r.rank, r.local_rank, r.world_size) for r in record.ranks] == [
        (0, 0, 2),
        (1, 1, 2),
    ]
    assert first.steps == second.steps == 3
    assert first.seeds == ("torch.manual_seed(5)", "torch.Generator(0)")
    assert second.seeds == ("torch.manual_seed(5)", "torch.Generator(1)")
    assert set(second.outputs) == {"rank1.txt", "record:rank1/loss"}
    assert set(first.parameters) == {"step 1", "end"}


def test_inspect_names_the_rank_of_each_seed(record, folder):
    words = shown(folder)
    assert "rank 0: torch.manual_seed(5)" in words
    assert "rank 1: torch.manual_seed(5)" in words


def test_values_of_one_name_are_kept_apart_by_rank(record):
    names = {output.name for output in record.outputs}
    assert {"record:rank0/loss", "record:rank1/loss"} <= names


def test_ranks_that_agree_are_told_so(record):
    assert outcomes(record) == {("rank-missing", "pass"), ("ranks-disagree", "pass")}


def test_ranks_that_part_after_their_first_step_are_a_finding(tmp_path):
    record = record_of(tmp_path, *MODULE, "train.py", "drift")
    (found,) = [f for f in check_ranks(record) if f.id == "ranks-disagree"]
    assert (found.outcome, found.where) == ("fail", "parameters at end")


@pytest.mark.slow
def test_a_rank_that_was_killed_is_a_finding(tmp_path):
    options = ["--expect-failure"]
    record = record_of(tmp_path, *TORCHRUN, "train.py", "vanish", options=options)
    reasons = [f.reason for f in check_ranks(record) if f.outcome == "fail"]
    assert any("rank 1 of 2 did not report its end" in reason for reason in reasons)
