"""Measure what the recorder costs a training loop.

    python benchmarks/recorder.py                  # steps of 2 ms and of 100 ms
    python benchmarks/recorder.py --processes 5 --load 2ms
    python benchmarks/recorder.py --device cuda    # wall time, the waits included

Two runs of one process differ by more than the recorder costs: memory lies elsewhere,
and other people's work heats the caches. So both sides are measured in one process: the
recorder is entered as usual, and its hooks are taken out and put back between blocks of
steps (off on, on off, ...). What is compared is processor time (user and system, all
threads): other people's work lengthens the wall time, hardly the processor time. Each
pair of neighbouring blocks gives one ratio. Shown are the median of all ratios, the
range of the processes' own medians, and the ratio of the smallest times.

The rows named "nothing" are the noise of the method: the same without a recorder, where
taking out and putting back changes nothing. What happens beside the steps is not seen
by this: the sampling thread (five samples a second) is measured in its own row, as the
processor time of one sample times five.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
RECORDER = ROOT / "reprobundle" / "recorder"

LOOP = """
import json, sys, time
import torch
from torch import nn

width, depth, rows, warmup, block, pairs = map(int, sys.argv[1:-1])
device = sys.argv[-1]
# On a device the host's processor time says little: there it is the wall time, with the
# device idle at both ends of a block.
now_ns = time.process_time_ns if device == "cpu" else time.perf_counter_ns
wait = torch.cuda.synchronize if device == "cuda" else lambda: None
torch.manual_seed(0)
torch.set_num_threads(1)
layers = [part for _ in range(depth) for part in (nn.Linear(width, width), nn.ReLU())]
model = nn.Sequential(*layers, nn.Linear(width, 4)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
# Twenty batches to an epoch, each made beforehand: the cost of an epoch's beginning and
# end is spread as in a real run, and the data set itself costs nothing.
data = [
    (torch.randn(rows, width).to(device), torch.randn(rows, 4).to(device))
    for _ in range(20)
]
loader = torch.utils.data.DataLoader(data, batch_size=None)

places = [
    (nn.Module, '__call__'),
    (torch.autograd, 'backward'),
    (torch.utils.data.dataloader._BaseDataLoaderIter, '__next__'),
]
hooked = [(owner, name, getattr(owner, name)) for owner, name in places]
hooks = sys.modules['torch.optim.optimizer']
registered = [
    (table, dict(table))
    for table in (hooks._global_optimizer_pre_hooks, hooks._global_optimizer_post_hooks)
]

def unwrapped(function):
    while hasattr(function, '__wrapped__'):
        function = function.__wrapped__
    return function

def put_back():
    for owner, name, function in hooked:
        setattr(owner, name, function)
    for table, held in registered:
        table.update(held)

def take_out():
    for owner, name, function in hooked:
        setattr(owner, name, unwrapped(function))
    for table, _ in registered:
        table.clear()

batches = iter(loader)

def batch():
    global batches
    try:
        return next(batches)
    except StopIteration:
        batches = iter(loader)
        return next(batches)

def run(count):
    for _ in range(count):
        x, y = batch()
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()

def seconds(switch):
    switch()
    wait()
    began = now_ns()
    run(block)
    wait()
    return (now_ns() - began) / block / 1e9

run(warmup)
times = []
for number in range(pairs):
    if number % 2:
        without, there = seconds(take_out), seconds(put_back)
    else:
        there, without = seconds(put_back), seconds(take_out)
    times.append([without, there])
put_back()

recorder = sys.modules.get('_reprobundle_recorder')
sample = 0.0
if recorder is not None:
    began = time.process_time_ns()
    for _ in range(200):
        recorder._active.memory.sample_by_clock()
    sample = (time.process_time_ns() - began) / 200 / 1e9
print(json.dumps([times, sample]))
"""
SAMPLES_A_SECOND = 5


class Load(NamedTuple):
    """One kind of step.

    Attributes:
        name: What the table and ``--load`` call it.
        goal_percent: What the recorder may cost.
        width, depth, rows: Of the network and its batch.
        warmup: Steps before anything is measured.
        block: Steps in one block.
        pairs: Pairs of blocks in one process.
    """

    name: str
    goal_percent: float
    width: int
    depth: int
    rows: int
    warmup: int
    block: int
    pairs: int


LOADS = (
    Load("2ms", 3.0, 160, 4, 200, 100, 10, 150),
    Load("100ms", 1.0, 1024, 5, 280, 3, 1, 60),
)
# Sizes that take about as long on an H200 as the others on a processor. No goal was set
# for them: what the waits cost is the price of a time that is true.
CUDA_LOADS = (
    Load("2ms", 0.0, 1024, 4, 3072, 50, 10, 60),
    Load("100ms", 0.0, 4096, 5, 8192, 3, 1, 20),
)


class Bench:
    """A folder with the loop and a session folder for each recorded run."""

    def __init__(self, folder: Path, device: str) -> None:
        self.folder = folder
        self._device = device
        self.project = folder / "project"
        self.project.mkdir()
        (self.project / "loop.py").write_text(LOOP)
        self._sessions = 0

    def run(
        self, load: Load, *, recorded: bool
    ) -> tuple[list[tuple[float, float]], float]:
        """Return seconds for one step without and with hooks, and for one sample."""
        environment = dict(os.environ, OMP_NUM_THREADS="1")
        environment.pop("PYTHONPATH", None)
        if recorded:
            environment.update(self._entered())
        sizes = map(str, load[2:])
        done = subprocess.run(
            [sys.executable, "loop.py", *sizes, self._device],
            cwd=self.project,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        times, sample = json.loads(done.stdout)
        return [(without, there) for without, there in times], sample

    def _entered(self) -> Mapping[str, str]:
        self._sessions += 1
        session = self.folder / f"session-{self._sessions}"
        (session / "events").mkdir(parents=True)
        (session / "values").mkdir()
        enter = session / "enter"
        left_out = shutil.ignore_patterns("__pycache__")
        shutil.copytree(RECORDER, enter / "_reprobundle_recorder", ignore=left_out)
        shutil.copyfile(
            RECORDER / "entry" / "sitecustomize.py", enter / "sitecustomize.py"
        )
        project = str(self.project).replace("\\", "\\\\")
        (session / "config.json").write_text(f'{{"project": "{project}"}}')
        return {"REPROBUNDLE_SESSION": str(session), "PYTHONPATH": str(enter)}


def report(bench: Bench, load: Load, processes: int, *, recorded: bool) -> float:
    """Print one line of the table and return the seconds that one sample takes."""
    found, medians, samples = [], [], []
    for _ in range(processes):
        times, sample = bench.run(load, recorded=recorded)
        found += times
        medians.append(statistics.median(b / a for a, b in times))
        samples.append(sample)
    middle = statistics.median(b / a for a, b in found)
    smallest = min(b for _, b in found) / min(a for a, _ in found)
    step_ms = statistics.median(a for a, _ in found) * 1e3
    added = "recorder" if recorded else "nothing"
    goal = f"≤ {load.goal_percent:g} %" if recorded and load.goal_percent else ""
    print(
        f"| {load.name} | {step_ms:.2f} ms | {added} | {_percent(middle)} | "
        f"{_percent(min(medians))} … {_percent(max(medians))} | {_percent(smallest)} | "
        f"{goal} |",
        flush=True,
    )
    return statistics.median(samples)


def _percent(ratio: float) -> str:
    return f"{(ratio - 1) * 100:+.2f} %"


def main() -> None:
    """Measure every load."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--load", choices=[load.name for load in LOADS])
    parser.add_argument(
        "--scale",
        type=float,
        default=1.0,
        help="multiply the batch by this, so that a step takes its nominal time here",
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    options = parser.parse_args()
    loads = LOADS if options.device == "cpu" else CUDA_LOADS
    chosen = [
        load._replace(rows=round(load.rows * options.scale))
        for load in loads
        if options.load in (None, load.name)
    ]
    kind = "processor" if options.device == "cpu" else "wall"
    print(f"| step | {kind} time | added | median | by process | of minima | goal |")
    print("|---|---|---|---|---|---|---|")
    samples = []
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), options.device)
        for load in chosen:
            samples.append(report(bench, load, options.processes, recorded=True))
            report(bench, load, options.processes, recorded=False)
    share = statistics.median(samples) * SAMPLES_A_SECOND * 100
    print(f"| any | | sampling thread, first minute | +{share:.3f} % | | | |")


if __name__ == "__main__":
    main()
