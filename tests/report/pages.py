"""Bundles and replays whose reports the tests of every format render."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import msgspec
import numpy as np

from reprobundle.format.policy import Intent, OutputRule, Policy
from reprobundle.format.record import Devices, Experiment, Fact, Outcome
from reprobundle.report.page import Page, build_page
from reprobundle.verify.defaults import default_policy
from reprobundle.verify.second_opinion import OwnPolicy
from tests.verify.builder import (
    ENVIRONMENT,
    ERROR,
    FAILED,
    NEAR,
    OUTPUTS,
    Bench,
    Run,
    npy,
)

CURVE = "out/curve.csv"


def curve(factor: float) -> bytes:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["epoch", "loss"])
    writer.writerows([epoch, factor / (epoch + 1)] for epoch in range(12))
    return stream.getvalue().encode()


REFERENCE = {**OUTPUTS, CURVE: curve(1.0)}
OTHER_LOGITS = npy(np.linspace(-1.0, 1.5, 24, dtype="f4").reshape(4, 6))
OTHER = {**OUTPUTS, CURVE: curve(1.1), "out/logits.npy": OTHER_LOGITS}
DRIFT = {**ENVIRONMENT, "torch.num_threads": Fact(value=8, source="torch")}
FALLBACK = Devices(
    requested="mps",
    observed=("cpu", "mps"),
    fallback="seen",
    reason="aten::linalg_svd",
)


def bench_in(folder: Path) -> Bench:
    """Return a packed bundle with a table that can be drawn."""
    return Bench(folder, reference=Run(dict(REFERENCE)), repeat=None).pack()


def same(folder: Path) -> Bench:
    bench = bench_in(folder)
    bench.replay(Run(dict(REFERENCE)))
    return bench


def different(folder: Path) -> Bench:
    bench = bench_in(folder)
    bench.replay(Run(dict(OTHER)), environment=DRIFT)
    return bench


def fell_back(folder: Path) -> Bench:
    bench = bench_in(folder)
    bench.replay(Run(dict(REFERENCE)), devices=FALLBACK, platform="darwin")
    return bench


def damaged(folder: Path) -> Bench:
    bench = same(folder)
    data = bytearray(bench.path.read_bytes())
    data[data.index(b"import torch")] ^= 1
    bench.path.write_bytes(data)
    return bench


def cut_off(folder: Path) -> Bench:
    bench = same(folder)
    bench.path.write_bytes(bench.path.read_bytes()[:-1])
    return bench


def near(folder: Path) -> Bench:
    bench = bench_in(folder)
    bench.replay(Run({**REFERENCE, "out/logits.npy": NEAR}))
    return bench


def unobserved(folder: Path) -> Bench:
    bench = bench_in(folder)
    bench.replay(Run(dict(REFERENCE)), processes=())
    return bench


def one_claim_of_two(folder: Path) -> Bench:
    ablation = {"ablation": Run()}
    bench = Bench(folder, reference=Run(dict(REFERENCE)), repeat=None, claims=ablation)
    bench.pack().replay(Run(dict(REFERENCE)))
    return bench


def stopped(folder: Path) -> Bench:
    bench = bench_in(folder)
    outcome = Outcome(
        exit_status=1, completed=False, stop="memory", stop_detail="16 GB asked for"
    )
    bench.replay(Run({}), outcome=outcome)
    return bench


def failed_otherwise(folder: Path) -> Bench:
    failing = Run({}, {"outcome": FAILED})
    bench = Bench(folder, reference=failing, repeat=None).pack()
    error = msgspec.structs.replace(ERROR, type="ValueError")
    bench.replay(Run({}), outcome=msgspec.structs.replace(FAILED, error=error))
    return bench


def asked_of_a_mac(folder: Path) -> Bench:
    intent = Intent(accepting_platforms=("macos-mps",))
    policy = msgspec.structs.replace(default_policy(), intent=intent)
    bench = Bench(folder, policy, reference=Run(dict(REFERENCE)), repeat=None).pack()
    bench.replay(Run(dict(REFERENCE)))
    return bench


def experiments(folder: Path) -> Bench:
    """A pair of runs that were to differ, one of which failed; no plain replay."""
    bench = bench_in(folder)
    sides = (
        (Experiment(id="0123456789abcdef", side="A"), "1"),
        (Experiment(id="0123456789abcdef", side="B"), "2"),
    )
    for experiment, threads in sides:
        facts = {"asked.threads": Fact(value=threads, source="replay")}
        bench.replay(
            Run(dict(REFERENCE)),
            experiment=experiment,
            environment={**ENVIRONMENT, **facts},
            outcome=Outcome(exit_status=0 if threads == "1" else 1),
        )
    return bench


CASES = {
    "same": (same, "REPRODUCED, bit-identical"),
    "different": (different, "NOT REPRODUCED"),
    "fell_back": (fell_back, "REPRODUCED WITH WARNINGS"),
    "not_replayed": (bench_in, "INTACT, NOT YET REPLAYED"),
    "damaged": (damaged, "TAMPERED"),
    "cut_off": (cut_off, "UNREADABLE"),
    "near": (near, "REPRODUCED, within tolerance"),
    "unobserved": (unobserved, "INCOMPLETE"),
    "one_claim_of_two": (one_claim_of_two, "PARTIAL"),
    "stopped": (stopped, "NOT RUN HERE"),
    "failed_otherwise": (failed_otherwise, "DIFFERENT FAILURE"),
    "asked_of_a_mac": (asked_of_a_mac, "NOT DECIDABLE HERE"),
    "experiments": (experiments, "INTACT, NOT YET REPLAYED"),
    "integrity_only": (same, "INTACT"),
    "own_policy": (different, "NOT REPRODUCED"),
}
LOOSE = Policy(
    author="a second person",
    reason="to see what it takes",
    outputs=(OutputRule(match="*", compare=False, reason="to see what it takes"),),
)
OPTIONS: dict[str, dict[str, object]] = {
    "integrity_only": {"integrity_only": True},
    "own_policy": {"own_policy": OwnPolicy("mine.json", LOOSE)},
}


def page_of(bench: Bench, case: str = "") -> Page:
    return build_page(bench.path, bench.verify(**OPTIONS.get(case, {})))
