"""Copy files there and back so that a broken connection costs only what was in flight.

A copy has another name until its SHA-256 is the right one. Going on behind a part is
allowed only where that part is, byte for byte, the beginning of the file.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from reprobundle.errors import EnvironmentUnusableError
from reprobundle.format.atomic import explained, sync, sync_folder
from reprobundle.handoff.errors import ConnectionLostError, UnreachableError
from reprobundle.handoff.ssh import Agent
from reprobundle.run.space import format_bytes

TELL_SECONDS = 5.0
LONGEST_PAUSE_SECONDS = 30.0
FIRST_PAUSE_SECONDS = 0.1
_BLOCK_BYTES = 1 << 20
_NOTHING = {"state": "none"}

Say = Callable[[str], None]
Result = TypeVar("Result")


@dataclass(frozen=True)
class Carried:
    """One file that is copied there.

    Attributes:
        source: Where it is here.
        path: Where it goes, below the folder of the hand-off.
        size_bytes, sha256: What it is.
    """

    source: Path
    path: str
    size_bytes: int
    sha256: str


def carry(source: Path, path: str) -> Carried:
    """Return a file with its digest."""
    with explained(f"cannot read {str(source)!r}"):
        return Carried(source, path, source.stat().st_size, sha256_of(source))


def sha256_of(path: Path, size_bytes: int | None = None) -> str:
    """Return the SHA-256 of a file, or of its first bytes."""
    digest = hashlib.sha256()
    left = path.stat().st_size if size_bytes is None else size_bytes
    with path.open("rb") as stream:
        while left and (block := stream.read(min(left, _BLOCK_BYTES))):
            digest.update(block)
            left -= len(block)
    return digest.hexdigest()


def patiently(
    action: Callable[[], Result],
    *,
    retries: int,
    say: Say,
    progress: Callable[[], int] = lambda: 0,
    pause: Callable[[float], None] = time.sleep,
) -> Result:
    """Do something, again and again while connections are lost.

    Args:
        action: May raise `ConnectionLostError`.
        retries: How often to try again without any progress.
        say: Told of each lost connection.
        progress: A number that grows while there is progress.
        pause: Waits.

    Raises:
        ConnectionLostError: It was lost once too often.
        UnreachableError: No connection was ever made.
    """
    failed, before, connected = 0, progress(), False
    while True:
        try:
            return action()
        except (ConnectionLostError, UnreachableError) as error:
            connected = connected or isinstance(error, ConnectionLostError)
            if progress() > before:
                failed, before = 0, progress()
            failed += 1
            # A machine that starts anew refuses connections for a while.
            if not connected or failed > retries:
                raise
            seconds = FIRST_PAUSE_SECONDS * 4 ** (failed - 1)
            say(f"{error.message}; trying again ({failed} of {retries})")
            pause(min(seconds, LONGEST_PAUSE_SECONDS))


def copy_there(
    agent: Agent, files: Iterable[Carried], *, retries: int, say: Say
) -> int:
    """Copy files there, and return how many bytes had to be sent.

    Raises:
        ConnectionLostError: The connection was lost too often; what was copied stays.
        RefusedThereError: They cannot be written there.
        EnvironmentUnusableError: A file arrives altered each time.
    """
    copy = _Copy(agent, tuple(files), say)
    patiently(copy.round, retries=retries, say=say, progress=lambda: copy.sent_bytes)
    return copy.sent_bytes


class _Copy:
    """The state of one copying over several connections."""

    def __init__(self, agent: Agent, files: tuple[Carried, ...], say: Say) -> None:
        self._agent = agent
        self._files = files
        self._say = say
        self._altered: set[str] = set()
        self._total = sum(one.size_bytes for one in files)
        self._arrived = 0
        self._told = time.monotonic()
        self.sent_bytes = 0

    def round(self) -> None:
        """Ask what is there, and send the rest over one connection."""
        while missing := self._missing():
            self._say(self._announcement(missing))
            self._send(missing)

    def _missing(self) -> list[tuple[Carried, int]]:
        files = [{"path": one.path, "sha256": one.sha256} for one in self._files]
        found = self._agent.ask("have", files=files)["files"]
        missing = []
        for one in self._files:
            here = found.get(one.path, _NOTHING)
            if here["state"] == "whole":
                continue
            offset = here.get("size", 0) if here["state"] == "part" else 0
            begins = offset <= one.size_bytes and (
                not offset or sha256_of(one.source, offset) == here.get("sha256")
            )
            missing.append((one, offset if begins else 0))
        left = sum(one.size_bytes - offset for one, offset in missing)
        self._arrived = self._total - left
        return missing

    def _announcement(self, missing: list[tuple[Carried, int]]) -> str:
        left = format_bytes(sum(one.size_bytes - offset for one, offset in missing))
        count = f"{len(missing)} file{'s' * (len(missing) != 1)}"
        resumed = [(one, offset) for one, offset in missing if offset]
        if not resumed:
            return f"copying {count}, {left}"
        one, offset = resumed[0]
        return (
            f"copying {count}, {left} left: {one.path} goes on behind "
            f"{format_bytes(offset)} that are there"
        )

    def _send(self, missing: list[tuple[Carried, int]]) -> None:
        files = [
            {
                "path": one.path,
                "sha256": one.sha256,
                "size": one.size_bytes,
                "offset": offset,
            }
            for one, offset in missing
        ]
        with self._agent.asked("put", files=files) as session:
            for one, offset in missing:
                session.send_file(one.source, offset, self._tell)
            session.end_input()
            stored = session.answer()["stored"]
        for one, _ in missing:
            said = stored.get(one.path, "nothing was said about it")
            if said == "stored":
                continue
            if one.path in self._altered:
                raise EnvironmentUnusableError(
                    f"{one.path} arrives altered: {said}",
                    advice="look at the disk and the connection of that machine",
                )
            self._altered.add(one.path)
            self._say(f"{one.path} arrived altered: {said}; copying it anew")

    def _tell(self, count: int) -> None:
        self.sent_bytes += count
        self._arrived += count
        if time.monotonic() - self._told > TELL_SECONDS:
            self._told = time.monotonic()
            share = 100 * self._arrived / max(self._total, 1)
            self._say(f"copied {format_bytes(self._arrived)}, {share:.0f} %")


def fetch(agent: Agent, path: str, target: Path, *, retries: int, say: Say) -> None:
    """Fetch one file; it gets its name once its digest is the one stated there.

    Raises:
        ConnectionLostError: The connection was lost too often; the part stays.
        RefusedThereError: There is no such file.
        EnvironmentUnusableError: It arrives altered each time, or the disk is full.
    """
    part = target.with_name(f"{target.name}.part")
    target.parent.mkdir(parents=True, exist_ok=True)
    for _ in range(2):
        sha256 = patiently(
            lambda: _receive(agent, path, part),
            retries=retries,
            say=say,
            progress=lambda: part.stat().st_size if part.exists() else 0,
        )
        if sha256_of(part) == sha256:
            part.replace(target)
            sync_folder(target.parent)
            return
        # What was there of another file, or bytes that were damaged on their way.
        part.unlink()
    raise EnvironmentUnusableError(
        f"{path} arrives altered: its digest is not the one stated there",
        advice="look at the disk and the connection of that machine",
    )


def _receive(agent: Agent, path: str, part: Path) -> str:
    """Receive what is missing behind `part`, and return the digest of the whole."""
    offset = part.stat().st_size if part.exists() else 0
    with (
        agent.asked("get", path=path, offset=offset) as session,
        explained(f"cannot write {str(part)!r}"),
        part.open("ab") as stream,
    ):
        session.end_input()
        stated = session.answer()
        for block in session.read(max(stated["size"] - offset, 0)):
            stream.write(block)
        stream.flush()
        sync(stream.fileno())
    return str(stated["sha256"])
