"""Tell when the first line of a command stands on the screen.

    python benchmarks/first_line.py BUNDLE              # reprobundle verify BUNDLE
    python benchmarks/first_line.py BUNDLE --repeats 41

Whole processes, in turns with `python -c pass`: the time from the start to the first
line, to the one that starts with ``integrity``, and to the end. Wall time is what a
person sees, and holds whatever else the machine does; processor time (Linux: the
kernel's own count of the main thread, in nanoseconds) hardly does. What travels between
machines is the ratio to `python -c pass`, turn by turn.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

MARKS = ("first line", "integrity", "end")


class Reached(NamedTuple):
    """When a line stood there, in seconds from the start."""

    wall_s: float
    cpu_s: float


def processor_seconds(process: int) -> float:
    """Return the processor time of a process's main thread so far."""
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1e9


def run(command: list[str]) -> dict[str, Reached]:
    """Return when each of `MARKS` was reached; only the end where nothing is said."""
    found: dict[str, Reached] = {}
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for line in process.stdout:
            wall = time.perf_counter() - start
            name = "integrity" if line.startswith(b"integrity") else "first line"
            found.setdefault(name, Reached(wall, processor_seconds(process.pid)))
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        wall = time.perf_counter() - start
        found["end"] = Reached(wall, processor_seconds(process.pid))
    return found


def main() -> None:
    """Run the measurement that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("bundle")
    parser.add_argument("options", nargs="*", help="of reprobundle verify")
    parser.add_argument("--repeats", type=int, default=21)
    asked = parser.parse_args()
    # The console script, as pip writes it: `python -m` reads the package twice.
    start = "from reprobundle.cli import main; main()"
    ours = [sys.executable, "-c", start, "verify", *asked.options, asked.bundle]
    bare = [sys.executable, "-c", "pass"]
    turns = [(run(ours), run(bare)) for _ in range(asked.repeats + 1)][1:]
    print("| until | wall ms | of `python -c pass` | CPU ms | of `python -c pass` |")
    print("|---|---:|---:|---:|---:|")
    ends = [theirs["end"] for _, theirs in turns]
    print(
        f"| `python -c pass` | {statistics.median(e.wall_s for e in ends) * 1e3:.0f} | "
        f"| {statistics.median(e.cpu_s for e in ends) * 1e3:.1f} | |"
    )
    for name in MARKS:
        reached = [mine[name] for mine, _ in turns]
        wall = [one.wall_s / e.wall_s for one, e in zip(reached, ends, strict=True)]
        cpu = [one.cpu_s / e.cpu_s for one, e in zip(reached, ends, strict=True)]
        print(
            f"| {name} | {statistics.median(r.wall_s for r in reached) * 1e3:.0f} "
            f"| {statistics.median(wall):.1f} "
            f"| {statistics.median(r.cpu_s for r in reached) * 1e3:.1f} "
            f"| {statistics.median(cpu):.1f} |"
        )


if __name__ == "__main__":
    main()
