"""A kill or a full disk here, at a random moment of a hand-off, loses nothing.

The larger run: ``REPROBUNDLE_FAULT_SEEDS=20 pytest -m slow tests/handoff -s``.
"""

from __future__ import annotations

import collections
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from reprobundle.format.reader import check_digests, open_bundle
from tests.faults import injected

pytestmark = [pytest.mark.sshd, pytest.mark.linux, pytest.mark.slow]

SEEDS = int(os.environ.get("REPROBUNDLE_FAULT_SEEDS", "4"))
REASON = "a test of faults"
WELL = (0, 12)
"""Reproduced; with a warning, for a policy is overridden."""


def struck(far, bundle, mode, number, where):
    """Hand a bundle over in a process that a fault strikes."""
    usual = ("--env", sys.executable, "--override-policy", REASON)
    arguments = ("handoff", *far.to_it(bundle, *usual))
    words = (injected.__file__, mode, number, where, *arguments)
    return subprocess.run(
        [sys.executable, *map(str, words)],
        env={**far.environment(), "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def cleaned(far):
    far.run("clean", "127.0.0.1")
    shutil.rmtree(far.home / ".reprobundle", ignore_errors=True)
    shutil.rmtree(far.folder / "state", ignore_errors=True)


def test_a_hand_off_that_is_struck_loses_nothing(far, sealed, tmp_path):
    counted = tmp_path / "count"
    first = shutil.copy(sealed, tmp_path / "count.rpb.zip")
    done = struck(far, first, "count", 0, counted)
    assert done.returncode in WELL, done.stderr
    most = int(counted.read_text())
    cleaned(far)
    seen: collections.Counter[str] = collections.Counter()
    for seed in range(SEEDS):
        for mode in ("kill", "limit"):
            rng = random.Random(f"{mode} {seed}")
            bundle = Path(shutil.copy(sealed, tmp_path / "work.rpb.zip"))
            number = rng.randrange(1, most + 1)
            limit = rng.choice((0, rng.randrange(200_000)))
            done = struck(far, bundle, mode, number, limit)
            what = f"{mode} at {number} of {most}, {limit}: {done}"
            assert "Traceback" not in done.stderr, what
            made = len(intact(bundle, sealed, what))
            seen[f"{mode}: {'made' if made else 'not made'}, {done.returncode}"] += 1
            again = struck(far, bundle, "count", 0, counted)
            assert again.returncode in WELL, f"{what}; again: {again}"
            assert "REPRODUCED" in again.stdout, again
            assert len(intact(bundle, sealed, what)) == 1, what
            cleaned(far)
    sys.stdout.write(f"\nhandoff: {dict(seen)}\n")


def intact(bundle, sealed, what):
    """Prove a bundle and its sealed bytes, and return what is attached."""
    with open_bundle(sealed) as opened:
        end = opened.content("manifest.json").entry.end
    assert bundle.read_bytes()[:end] == sealed.read_bytes()[:end], what
    with open_bundle(bundle) as opened:
        assert check_digests(opened, deep=True) == [], what
        return opened.replay_ids
