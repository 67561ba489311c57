"""Time the comparison of two large arrays against reading them once.

    python benchmarks/compare.py [--mebibytes 1024] [--dtype float32] [--runs 5]

The files lie in the page cache, which no disk reaches. Three baselines:

* *loaded*: `numpy.fromfile` of both, that is, reading each once into memory of its own.
  The goal, a factor of at most three for float32 with all statistics, is meant of this.
* *streamed*: both are read block by block into one small buffer, which stays in
  the processor's cache. No program that keeps what it read is as fast.
* *streamed and digested*: the same with the BLAKE3 digests that `verify` needs.

The works are run in turn, `--runs` times; a time is the median of its own, a ratio the
median of the ratios within a turn, so that other people's work meets both alike. Wall
time and processor time are told; everything runs on one processor.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from reprobundle.format.findings import ArrayComparison
from reprobundle.format.policy import Tolerance
from reprobundle.outputs.arrays import NamedArray, read_arrays
from reprobundle.verify.compare_arrays import (
    BLOCK_ELEMENTS,
    compare_array,
    root_mean_square,
)

RULE = Tolerance(rtol=1e-4, atol=1e-5, floor=0.0)
FLOORED = Tolerance(rtol=1e-4, atol=1e-5, floor=0.1)


def write_pair(folder: Path, mebibytes: int, dtype: str) -> tuple[Path, Path]:
    """Write two arrays that differ by rounding in every element."""
    generator = np.random.default_rng(0)
    count = (mebibytes << 20) // np.dtype(dtype).itemsize
    paths = folder / "a.npy", folder / "b.npy"
    streams = [
        np.lib.format.open_memmap(path, "w+", dtype=dtype, shape=(count,))
        for path in paths
    ]
    for start in range(0, count, 1 << 22):
        part = slice(start, min(count, start + (1 << 22)))
        values = generator.standard_normal(part.stop - part.start, dtype="f4")
        noise = generator.standard_normal(values.size, dtype="f4")
        streams[0][part] = values
        streams[1][part] = values * (1 + 1e-6 * noise)
    for stream in streams:
        stream.flush()
    return paths


def read_once(first: NamedArray, second: NamedArray) -> None:
    """Read both arrays block by block and do nothing with them."""
    pairs = zip(
        first.blocks(BLOCK_ELEMENTS), second.blocks(BLOCK_ELEMENTS), strict=True
    )
    for _ in pairs:
        pass


def read_and_digest(first: NamedArray, second: NamedArray) -> None:
    """Read both arrays once and digest them, which every `verify` has to do."""
    from blake3 import blake3

    digests = blake3(), blake3()
    pairs = zip(
        first.blocks(BLOCK_ELEMENTS), second.blocks(BLOCK_ELEMENTS), strict=True
    )
    for blocks in pairs:
        for digest, block in zip(digests, blocks, strict=True):
            digest.update(block.view("u1"))


class Spent(NamedTuple):
    """Wall and processor time of one run, in seconds."""

    wall: float
    processor: float


def spent(work: Callable[[], object]) -> Spent:
    """Return the times of one run."""
    start = time.perf_counter(), time.process_time()
    work()
    return Spent(time.perf_counter() - start[0], time.process_time() - start[1])


def in_turn(
    works: Mapping[str, Callable[[], object]], runs: int
) -> dict[str, list[Spent]]:
    """Return the times of each work, each taken of the second of two runs in a row.

    Without the first, *loaded* pays for memory that the system took back meanwhile: up
    to ten times as much, in our favour.
    """
    times: dict[str, list[Spent]] = {name: [] for name in works}
    for _ in range(runs):
        for name, work in works.items():
            work()
            times[name].append(spent(work))
    return times


def opened(
    paths: tuple[Path, Path], work: Callable[[NamedArray, NamedArray], object]
) -> Callable[[], object]:
    """Return `work` on the two arrays, opened anew for each call."""

    def whole() -> object:
        with paths[0].open("rb") as a, paths[1].open("rb") as b:
            return work(read_arrays(a, "npy")[0], read_arrays(b, "npy")[0])

    return whole


def compared(
    first: NamedArray, second: NamedArray, *, rule: Tolerance, scale: float | None
) -> ArrayComparison:
    """Compare both arrays with all statistics."""
    return compare_array(first, second, rule, scale)


def stated_scale(path: Path) -> float:
    """Return the scale that a record states."""
    with path.open("rb") as stream:
        return root_mean_square(read_arrays(stream, "npy")[0])


def show(times: Mapping[str, list[Spent]], bases: tuple[str, ...]) -> None:
    """Print the medians, and the ratios of processor time to that of the bases."""
    print(f"{'':24} {'wall':>9} {'processor':>10}  processor time / that of")
    print(f"{'':46} " + "  ".join(f"{name:>10}" for name in bases))
    for name, own in times.items():
        wall, processor = (
            statistics.median(one[place] for one in own) for place in (0, 1)
        )
        line = f"{name:24} {wall:7.3f} s {processor:8.3f} s"
        if name not in bases:
            for base in bases:
                pairs = zip(own, times[base], strict=True)
                ratio = statistics.median(a.processor / b.processor for a, b in pairs)
                line += f"  {ratio:8.2f} x"
        print(line)


def main() -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mebibytes", type=int, default=1024)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        paths = write_pair(Path(folder), options.mebibytes, options.dtype)
        scale = stated_scale(paths[0])
        works: dict[str, Callable[[], object]] = {
            "loaded": lambda: [np.fromfile(path, options.dtype) for path in paths],
            "streamed": opened(paths, read_once),
            "streamed and digested": opened(paths, read_and_digest),
        }
        bases = tuple(works)
        for name, rule, stated in (
            ("all statistics", RULE, None),
            ("and a floor", FLOORED, scale),
            ("and its scale unknown", FLOORED, None),
        ):
            works[name] = opened(paths, partial(compared, rule=rule, scale=stated))
        show(in_turn(works, options.runs), bases)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"peak resident size     {peak / 1024:8.1f} MiB")


if __name__ == "__main__":
    main()
