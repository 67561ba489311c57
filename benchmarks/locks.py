"""Time selecting from a lock and installing it: ``python benchmarks/locks.py BUNDLE``.

BUNDLE holds a pylock.toml, as the one that ``make demo`` leaves does. The environment
is built three times in a temporary folder: with an empty cache, with a warm one, and
where it stands already. Needs the package indexes that the lock names.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

from reprobundle.format.reader import open_bundle
from reprobundle.replay.environment import build_fresh
from reprobundle.replay.plan import make_plan
from reprobundle.run.pylock_file import parse_pylock, select
from reprobundle.run.targets import TARGETS, target_named

REPEATS = 20


def main(path: Path) -> None:
    with open_bundle(path) as bundle:
        plan = make_plan(bundle, passes=("measured",), claims=())
    if plan.pylock is None:
        sys.exit(f"{path} holds no lock for other systems: {plan.lock.pylock_unknown}")
    for name in TARGETS:
        times = []
        for _ in range(REPEATS):
            start = time.perf_counter()
            target = target_named(name, plan.lock.python)
            found = select(parse_pylock(plan.pylock), target)
            times.append(time.perf_counter() - start)
        median = sorted(times)[REPEATS // 2]
        files, blockers = len(found.chosen), len(found.blockers)
        print(f"{name}: {files} files, {blockers} blockers, {median * 1e3:.1f} ms")
    with tempfile.TemporaryDirectory() as folder:
        target, cache = Path(folder) / "environment", Path(folder) / "cache"
        for label in ("empty cache", "warm cache", "standing"):
            if label == "warm cache":
                shutil.rmtree(target)
            start = time.perf_counter()
            built = build_fresh(
                plan.lock, pylock=plan.pylock, target=target, cache=cache
            )
            elapsed = time.perf_counter() - start
            count = len(built.freeze.distributions)
            print(f"{label}: {elapsed:.2f} s, {count} packages, drift {built.drift}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
