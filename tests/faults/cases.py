"""What must hold after a fault: for each verb its call, its checks, its second try."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from reprobundle.format.digests import digest_bytes
from reprobundle.format.reader import check_digests, open_bundle, open_replay_file
from reprobundle.temporary import guard
from tests.faults import injected

CLEAR_SECONDS = 60
OWNED = {guard.OWNER_NAME}


@dataclass(frozen=True)
class Struck:
    """How a call ended that a fault may have struck."""

    status: int
    out: str
    err: str


@dataclass(frozen=True)
class Place:
    """The folders of one trial."""

    folder: Path

    @property
    def temporary(self) -> Path:
        return self.folder / "tmp"

    @property
    def bundle(self) -> Path:
        return self.folder / "x.rpb.zip"

    @property
    def alone(self) -> Path:
        return self.folder / "alone.rpr.zip"

    @property
    def project(self) -> Path:
        return self.folder / "project"

    def run(
        self,
        arguments: list[str],
        mode: str = "count",
        number: int = 0,
        where: str = "",
    ) -> Struck:
        """Run the command line, with or without a fault."""
        self.temporary.mkdir(exist_ok=True)
        counted = where or str(self.folder / "count")
        state = str(self.folder / "state")
        done = subprocess.run(
            [sys.executable, injected.__file__, mode, str(number), counted, *arguments],
            cwd=self.project,
            env={
                **os.environ,
                "TMPDIR": str(self.temporary),
                "XDG_STATE_HOME": state,
                "PYTHONPATH": str(Path(__file__).parents[2]),
            },
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        return Struck(done.returncode, done.stdout, done.stderr)

    def changes(self, arguments: list[str]) -> int:
        """Return how many changes of files an undisturbed call makes."""
        done = self.run(arguments)
        assert done.status == 0, done.out + done.err
        return int((self.folder / "count").read_text())


def tree_of(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): digest_bytes(path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }


def intact(path: Path) -> tuple[str, ...]:
    """Prove a bundle down to its last byte, and return what is attached to it."""
    with open_bundle(path) as bundle:
        assert check_digests(bundle, deep=True) == []
        return bundle.replay_ids


# --- the verbs


def pack_call(place: Place) -> list[str]:
    options = ["--passes", "measured", "-q", "--force", "-o", str(place.bundle)]
    return ["pack", *options, "--", "python", "train.py"]


def after_pack(before: Place, place: Place) -> bool:
    """The old bundle is there, or the new one, and the project is as it was."""
    assert tree_of(place.project) == tree_of(before.project)
    old = before.bundle.read_bytes() == place.bundle.read_bytes()
    assert old or intact(place.bundle) == ()
    return not old


def attach_call(place: Place) -> list[str]:
    return ["attach", str(place.bundle), str(place.alone)]


def after_attach(before: Place, place: Place) -> bool:
    """Nothing of the old bundle is gone, and the replay file is as it was."""
    assert place.alone.read_bytes() == before.alone.read_bytes()
    there, was = intact(place.bundle), intact(before.bundle)
    with open_replay_file(place.alone) as replays:
        assert there in (was, was + replays.replay_ids)
    assert_sealed_as_before(before, place)
    return there != was


def replay_call(place: Place) -> list[str]:
    return ["replay", str(place.bundle), "--yes", "-q", "--passes", "measured"]


def after_replay(before: Place, place: Place) -> bool:
    """Every older replay is there; a new one, or one of each try, behind them."""
    there, was = intact(place.bundle), intact(before.bundle)
    assert there[: len(was)] == was
    assert len(there) <= len(was) + 2
    assert_sealed_as_before(before, place)
    return there != was


def assert_sealed_as_before(before: Place, place: Place) -> None:
    with open_bundle(before.bundle) as bundle:
        end = bundle.content("manifest.json").entry.end
    assert place.bundle.read_bytes()[:end] == before.bundle.read_bytes()[:end]


@dataclass(frozen=True)
class Verb:
    """One verb under faults.

    Attributes:
        name: Its name.
        call: Its command line in a place.
        after: Proves that nothing is lost; returns whether the change was made.
    """

    name: str
    call: Callable[[Place], list[str]]
    after: Callable[[Place, Place], bool]


VERBS = (
    Verb("pack", pack_call, after_pack),
    Verb("attach", attach_call, after_attach),
    Verb("replay", replay_call, after_replay),
)


def copied(before: Place, folder: Path) -> Place:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(before.folder, folder, ignore=shutil.ignore_patterns("tmp"))
    return Place(folder)


def left_in(place: Place) -> list[str]:
    """Return what a call left behind, once whoever clears up has had time to."""
    deadline = time.monotonic() + CLEAR_SECONDS
    while True:
        parts = list(place.folder.glob(".*.part"))
        # Killed before the guard was there, a call leaves an empty folder at most.
        filled = [one for one in place.temporary.iterdir() if holds_something(one)]
        left = [path.name for path in (*filled, *parts)]
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.05)


def holds_something(path: Path) -> bool:
    """Return whether a path is more than a folder in which nothing was made yet."""
    try:
        return not path.is_dir() or bool({one.name for one in path.iterdir()} - OWNED)
    except FileNotFoundError:
        return False  # It goes just now.


def trial(
    before: Place, folder: Path, verb: Verb, mode: str, rng: random.Random
) -> str:
    """Strike one call at a random change of a file; return what happened.

    Nothing may be lost, and the same call has to work afterwards.
    """
    place = copied(before, folder)
    most = int((before.folder / f"changes.{verb.name}").read_text())
    number = rng.randrange(1, most + 1)
    where = {
        "kill": "",
        "limit": str(rng.choice((0, rng.randrange(2_000), rng.randrange(200_000)))),
        "full": str(folder / "filler"),
    }[mode]
    done = place.run(verb.call(place), mode, number, where)
    what = f"{verb.name} {mode} at {number} of {most}, {where}: {done}"
    assert "Traceback" not in done.err, what
    (folder / "filler").unlink(missing_ok=True)
    made = verb.after(before, place)
    if mode == "kill":
        assert done.status in (-9, 0), what
    elif not made:
        assert done.status != 0, what
        assert "reprobundle: " in done.err, what
    assert left_in(place) == [], what
    again = place.run(verb.call(place))
    assert again.status == 0, f"{what}; again: {again}"
    assert verb.after(before, place) or verb.name == "replay", what
    return f"{'made' if made else 'not made'}, status {done.status}"
