"""Time the comparison of two large arrays against reading them once.

    python benchmarks/compare.py [--mebibytes 1024] [--dtype float32] [--runs 3]

Two baselines: both files are read block by block into one buffer and nothing is done
with the content (from the page cache, which no disk reaches); and the same with the
digest of each that `verify` computes anyway. The target is a factor of at most three
of the second for float32, with all statistics. Each figure is the best of `--runs`.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from reprobundle.format.policy import Tolerance
from reprobundle.outputs.arrays import NamedArray, read_arrays
from reprobundle.verify.compare_arrays import BLOCK_ELEMENTS, compare_array

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


def best(paths: tuple[Path, Path], runs: int, work: Callable[..., object]) -> float:
    """Return the shortest time in seconds of `work` on the two opened arrays."""
    times = []
    for _ in range(runs):
        with paths[0].open("rb") as a, paths[1].open("rb") as b:
            arrays = read_arrays(a, "npy")[0], read_arrays(b, "npy")[0]
            start = time.perf_counter()
            work(*arrays)
            times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mebibytes", type=int, default=1024)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        paths = write_pair(Path(folder), options.mebibytes, options.dtype)
        reading = best(paths, options.runs, read_once)
        print(f"read, nothing kept     {reading:8.3f} s")
        digesting = best(paths, options.runs, read_and_digest)
        print(f"read and digest        {digesting:8.3f} s")
        for name, rule in (("all statistics", RULE), ("and a floor", FLOORED)):
            spent = best(
                paths, options.runs, lambda b, a, rule=rule: compare_array(b, a, rule)
            )
            factors = f"{spent / reading:6.2f} x  {spent / digesting:6.2f} x"
            print(f"{name:<22} {spent:8.3f} s {factors}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"peak resident size     {peak / 1024:8.1f} MiB")


if __name__ == "__main__":
    main()
