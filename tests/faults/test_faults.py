"""A kill or a full disk at a random moment loses nothing that was there before.

The larger run: ``REPROBUNDLE_FAULT_SEEDS=200 pytest -m slow tests/faults -s``.
"""

from __future__ import annotations

import collections
import os
import random
import signal
import subprocess
import sys

import pytest

from tests.faults.cases import VERBS, copied, holds_something, intact, trial

READERS = (
    ("selftest", "{place.bundle}"),
    ("doctor",),
    ("sign", "{place.bundle}", "--key", "{key}"),
)
SEEDS = int(os.environ.get("REPROBUNDLE_FAULT_SEEDS", "25"))


@pytest.mark.parametrize("mode", ["kill", "limit"])
@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_nothing_is_lost(before, tmp_path, verb, mode):
    rng = random.Random(f"{verb.name} {mode}")
    for _ in range(3 if verb.name == "attach" else 1):
        trial(before, tmp_path / "trial", verb, mode, rng)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["kill", "limit"])
@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_nothing_is_lost_at_many_moments(before, tmp_path, verb, mode):
    seen = collections.Counter(
        trial(before, tmp_path / "trial", verb, mode, random.Random(seed))
        for seed in range(SEEDS)
    )
    sys.stdout.write(f"\n{verb.name} {mode}: {dict(seen)}\n")


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_nothing_is_lost_on_a_disk_that_fills_up(before, tmp_path, verb):
    disk = tmp_path / "disk"
    disk.mkdir()
    # More than the reserve that is asked for before anything is written.
    mount = ["mount", "-t", "tmpfs", "-o", "size=300m", "tmpfs", disk]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"cannot mount a small disk: {done.stderr.strip()}")
    try:
        small = copied(before, disk / "before")
        seen = collections.Counter(
            trial(small, disk / "trial", verb, "full", random.Random(seed))
            for seed in range(SEEDS)
        )
    finally:
        subprocess.run(["umount", "-l", disk], check=False)
    sys.stdout.write(f"\n{verb.name} full: {dict(seen)}\n")


@pytest.mark.slow
@pytest.mark.parametrize("words", READERS, ids=lambda words: words[0])
def test_what_a_killed_reader_leaves_goes_at_the_next_start(before, tmp_path, words):
    key = tmp_path / "key"
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True
    )
    place = copied(before, tmp_path / "trial")
    call = [word.format(place=place, key=key) for word in words]
    done = place.run(call)
    # What they find is not the matter here: there is no torch, for instance.
    assert done.status in (0, 10), done
    most, left = int((place.folder / "count").read_text()), 0
    for seed in range(SEEDS):
        place = copied(before, tmp_path / "trial")
        number = random.Random(seed).randrange(1, most + 1)
        assert place.run(call, "kill", number).status == -signal.SIGKILL
        left += any(map(holds_something, place.temporary.iterdir()))
        assert "R-4.40" in place.run(["verify", "-"]).err
        assert not [*filter(holds_something, place.temporary.iterdir())], number
        assert intact(place.bundle)[: len(intact(before.bundle))]
    assert left
    sys.stdout.write(f"\n{words[0]} kill: {SEEDS}, left something: {left}\n")


def test_a_fault_that_loses_something_would_be_noticed(before, tmp_path):
    """The checks can fail: a bundle that was cut, and one without its replay."""
    place = copied(before, tmp_path / "trial")
    place.bundle.write_bytes(before.bundle.read_bytes()[:-1])
    for verb in VERBS:
        with pytest.raises(Exception):  # noqa: B017, PT011 - any way to notice it
            verb.after(before, place)
