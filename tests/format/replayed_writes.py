"""Record what a change does to files, and build the states that a crash may leave.

A process that is killed leaves a prefix of its writes, down to the byte. A machine that
loses power may besides lose or tear any write that no sync came after.
"""

from __future__ import annotations

import contextlib
import os
import random
from pathlib import Path
from typing import NamedTuple

import pytest

from reprobundle.format import atomic, journal

SECTOR_BYTES = 512
FOLDER = "."


class Step(NamedTuple):
    kind: str  # write, size, rename, remove, sync
    name: str
    offset: int = 0
    data: bytes = b""
    other: str = ""


def recorded(folder: Path, change) -> list[Step]:
    """Return what `change` does to the files in `folder`, in order."""
    steps: list[Step] = []

    def name_of(descriptor):
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        return FOLDER if path == folder.resolve() else path.name

    real = {name: getattr(os, name) for name in ("pwrite", "ftruncate", "fsync")}
    replace, unlink = Path.replace, Path.unlink

    def pwrite(descriptor, data, offset):
        steps.append(Step("write", name_of(descriptor), offset, bytes(data)))
        return real["pwrite"](descriptor, data, offset)

    def ftruncate(descriptor, size):
        steps.append(Step("size", name_of(descriptor), size))
        real["ftruncate"](descriptor, size)

    def fsync(descriptor):
        steps.append(Step("sync", name_of(descriptor)))

    def renamed(path, target):
        steps.append(Step("rename", path.name, other=Path(target).name))
        return replace(path, target)

    def removed(path, missing_ok=False):
        if path.exists():
            steps.append(Step("remove", path.name))
        unlink(path, missing_ok=missing_ok)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "pwrite", pwrite)
        patch.setattr(os, "ftruncate", ftruncate)
        patch.setattr(os, "fsync", fsync)
        patch.setattr(Path, "replace", renamed)
        patch.setattr(Path, "unlink", removed)
        change()
    return steps


class State:
    """The files of a folder in memory, on which steps are made.

    Attributes:
        at_border: Whether the last step was made whole.
    """

    at_border = True

    def __init__(self, folder: Path) -> None:
        self.files = {path.name: path.read_bytes() for path in folder.iterdir()}

    def make(self, step: Step, data: bytes | None = None) -> None:
        files = self.files
        if step.kind == "write":
            data = step.data if data is None else data
            old = files.get(step.name, b"").ljust(step.offset, b"\0")
            end = step.offset + len(data)
            files[step.name] = old[: step.offset] + data + old[end:]
        elif step.kind == "size":
            old = files.get(step.name, b"")[: step.offset]
            files[step.name] = old.ljust(step.offset, b"\0")
        elif step.kind == "rename":
            files[step.other] = files.pop(step.name)
        elif step.kind == "remove":
            del files[step.name]

    def put_into(self, folder: Path) -> Path:
        folder.mkdir(exist_ok=True)
        for path in folder.iterdir():
            if path.name not in self.files:
                path.unlink()
        for name, data in self.files.items():
            (folder / name).write_bytes(data)
        return folder


def killed_states(before: Path, steps: list[Step]):
    """Yield the state after each byte that was written and each other step."""
    state = State(before)
    yield state
    for step in steps:
        old = state.files.get(step.name)
        state.at_border = False
        for count in range(1, len(step.data)):
            state.make(step, step.data[:count])
            yield state
        if step.kind == "write" and old is not None:
            state.files[step.name] = old
        state.make(step)
        state.at_border = True
        yield state


def powerless_state(before: Path, steps: list[Step], rng: random.Random) -> State:
    """Return one state that a loss of power may leave.

    After the last sync of a file, its writes may be there or not, sector by sector, and
    in any order; so may renames and removals after the last sync of the folder.
    """
    state = State(before)
    end = rng.randrange(len(steps) + 1)
    done = steps[:end]
    for number, step in enumerate(done):
        where = {step.name, step.other} - {""}
        if step.kind in ("rename", "remove"):
            where = {FOLDER}
        safe = any(
            later.kind == "sync" and later.name in where for later in done[number:]
        )
        if safe or step.kind == "sync":
            state.make(step)
        elif step.kind == "write":
            for at in range(0, len(step.data), SECTOR_BYTES):
                if rng.random() < 0.5:
                    piece = step.data[at : at + SECTOR_BYTES]
                    state.make(step._replace(offset=step.offset + at), piece)
        elif rng.random() < 0.5 and step.name in state.files:
            state.make(step)
    return state


@contextlib.contextmanager
def without_waiting():
    """Do not wait for the disk in the block: what is tested is what was written."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (atomic, journal):
            patch.setattr(module, "sync", lambda descriptor: None)
            patch.setattr(module, "sync_folder", lambda folder: None)
        yield


@contextlib.contextmanager
def disk_with(room_bytes: int):
    """Let only so many more bytes be written in the block, then the disk is full."""
    left = room_bytes
    real = os.pwrite

    def pwrite(descriptor, data, offset):
        nonlocal left
        size = os.fstat(descriptor).st_size
        # What overwrites needs no room.
        free = max(0, min(len(data), size - offset))
        count = min(len(data), free + left)
        left -= count - free
        if data and not count:
            raise OSError(28, "No space left on device")
        return real(descriptor, memoryview(data)[:count], offset)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "pwrite", pwrite)
        yield
