"""Bundles and replays whose reports the tests of every format render."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np

from reprobundle.format.record import Devices, Fact
from reprobundle.report.page import Page, build_page
from tests.verify.builder import ENVIRONMENT, OUTPUTS, Bench, Run, npy

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


CASES = {
    "same": (same, "REPRODUCED, bit-identical"),
    "different": (different, "NOT REPRODUCED"),
    "fell_back": (fell_back, "REPRODUCED WITH WARNINGS"),
    "not_replayed": (bench_in, "INTACT, NOT YET REPLAYED"),
    "damaged": (damaged, "TAMPERED"),
    "cut_off": (cut_off, "UNREADABLE"),
}


def page_of(bench: Bench) -> Page:
    return build_page(bench.path, bench.verify())
