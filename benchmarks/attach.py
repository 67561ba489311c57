"""Attach a replay to a small and to a large bundle: the size must not matter.

    python benchmarks/attach.py                      # 4 MiB against 4 GiB
    python benchmarks/attach.py --large-mb 512 --repeats 20

It needs twice the size on the disk. The two take turns. What counts is the ratio of the
medians and the number of bytes that were written, which the system counts
(``/proc/self/io``, so Linux only).
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from reprobundle.format.attach import (
    attach_replay,
    detach_replay,
    write_replay_file,
)
from reprobundle.format.canonical import encode
from reprobundle.format.reader import open_bundle
from reprobundle.format.writer import Source, write_bundle

_MIB = 1 << 20


def make_bundle(folder: Path, size_mb: int) -> Path:
    """Write a bundle with one input of this size that does not compress."""
    payload = folder / "payload.bin"
    block = random.Random(size_mb).randbytes(4 * _MIB)
    with payload.open("wb") as file:
        for number in range(size_mb // 4):
            file.write(number.to_bytes(8, "little") + block[8:])
    path = folder / f"{size_mb}.rpb.zip"
    write_bundle(
        path,
        [
            Source("inputs/payload.bin", "input", payload),
            Source("policy.json", "policy", b"{}\n"),
        ],
    )
    payload.unlink()
    return path


def written_bytes() -> int:
    """Return how many bytes this process has handed to the system."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["wchar"])


def timed(call: Callable[[], object]) -> tuple[float, int]:
    """Return the seconds that a call took and the bytes that it wrote."""
    before, start = written_bytes(), time.perf_counter()
    call()
    return time.perf_counter() - start, written_bytes() - before


def in_process(path: Path, number: int) -> tuple[float, int]:
    """Attach a replay with 1 MiB of output, and take it off again outside the time."""
    with open_bundle(path) as bundle:
        record = encode({"bundle": bundle.id, "n": number})
    output = random.Random(number).randbytes(_MIB)
    made: list[str] = []
    sources = [Source("outputs/y.bin", "output", output)]
    taken = timed(lambda: made.append(attach_replay(path, record, sources)))
    detach_replay(path, made[0])
    return taken


def as_command(path: Path, number: int) -> float:
    """Attach a replay file in a process of its own."""
    with open_bundle(path) as bundle:
        record = encode({"bundle": bundle.id, "c": number})
    file = path.with_suffix(".rpr.zip")
    [identifier] = write_replay_file(file, [(record, [])])
    call = (
        "import sys; from pathlib import Path; "
        "from reprobundle.format.attach import attach_replay_file as attach; "
        "attach(Path(sys.argv[1]), Path(sys.argv[2]))"
    )
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", call, path, file], check=True)
    seconds = time.perf_counter() - start
    detach_replay(path, identifier)
    return seconds


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--small-mb", type=int, default=4)
    parser.add_argument("--large-mb", type=int, default=4096)
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        paths = [
            make_bundle(Path(name), size)
            for size in (options.small_mb, options.large_mb)
        ]
        os.sync()
        calls = [[in_process(path, -1)] for path in paths]
        whole: list[list[float]] = [[], []]
        for number in range(options.repeats):
            for path, found, taken in zip(paths, calls, whole, strict=True):
                found.append(in_process(path, number))
                taken.append(as_command(path, number))
    print("| bundle | attach, ms | written, bytes | whole process, ms |")
    print("|---|---|---|---|")
    medians = []
    for size, found, taken in zip(
        (options.small_mb, options.large_mb), calls, whole, strict=True
    ):
        median = statistics.median(seconds for seconds, _ in found[1:])
        medians.append((median, statistics.median(taken)))
        print(
            f"| {size:,} MiB | {1e3 * median:.2f} | {found[-1][1]:,} "
            f"| {1e3 * medians[-1][1]:.0f} |"
        )
    (small, small_whole), (large, large_whole) = medians
    print(f"| ratio | {large / small:.2f} | | {large_whole / small_whole:.2f} |")


if __name__ == "__main__":
    main()
