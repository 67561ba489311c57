"""Keep of a target's inputs the few that together reach all its lines.

``python -m fuzz.reduce TARGET [MOST_BYTES]`` reads ``build/fuzz/TARGET/``, smallest first,
and adds to ``corpus/TARGET/`` each input that reaches a line which none before it did.
libFuzzer's own ``-merge=1`` counts how often, too, and keeps ten times as many.
"""

from __future__ import annotations

import hashlib
import sys
import warnings
from pathlib import Path

import coverage

from fuzz.targets import TARGET_FUNCTIONS

HERE = Path(__file__).parent
BUILD = HERE.parent / "build" / "fuzz"


def main() -> None:
    """Reduce the target named on the command line."""
    target = sys.argv[1]
    most = int(sys.argv[2]) if len(sys.argv) > 2 else 20_000
    warnings.simplefilter("ignore")
    kept = HERE / "corpus" / target
    kept.mkdir(parents=True, exist_ok=True)
    found = [*kept.iterdir(), *(BUILD / target).iterdir()]
    found += [*(BUILD / f"{target}-seeds").iterdir()]
    reached: set[tuple[str, int]] = set()
    total = 0
    for path in sorted(found, key=lambda one: (one.stat().st_size, one.name)):
        data = path.read_bytes()
        if len(data) > most:
            break
        lines = lines_of(target, data)
        if lines <= reached:
            continue
        reached |= lines
        total += len(data)
        name = hashlib.sha256(data).hexdigest()[:16]
        (kept / name).write_bytes(data)
    print(
        f"{target}: {len(list(kept.iterdir()))} inputs, {total:,} bytes, {len(reached):,} lines"
    )


def lines_of(target: str, data: bytes) -> set[tuple[str, int]]:
    """Return the lines of the package that one input reaches."""
    watch = coverage.Coverage(
        data_file=None, source_pkgs=["reprobundle"], messages=False
    )
    watch.start()
    try:
        TARGET_FUNCTIONS[target](data)
    finally:
        watch.stop()
    told = watch.get_data()
    return {
        (file, line)
        for file in told.measured_files()
        for line in told.lines(file) or ()
    }


if __name__ == "__main__":
    main()
