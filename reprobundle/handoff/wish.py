"""What a hand-off is asked to do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from reprobundle.handoff.ssh import Destination

FRESH = "fresh"
ROOT = "~/.reprobundle/handoff"
BUNDLE_NAME = "bundle.rpb.zip"
RECORD_NAME = "job/record.rpr.zip"
# What the other side's own replay decides, and a hand-off sets.
TAKEN = (
    "environment",
    "record_file",
    "detach",
    "yes",
    "wheels",
    "bundle",
    "data",
    "ab",
)


@dataclass(frozen=True)
class Wish:
    """The call.

    Attributes:
        destination: The other machine.
        bundle: The bundle here.
        environment: ``fresh``, or the path of an interpreter there.
        python: Interpreter there that runs our own program; empty to look for one.
        options: Further options of ``replay``, as they are typed.
        without: Packages of the lock that these leave out.
        other_python: Whether they allow another Python version.
        wheels: Folder of the lock's wheels to carry; None to fetch them.
        tool_wheels: Folder of wheels for our own program, taken first.
        fetch_there: The other machine fetches the lock's packages itself.
        root: Folder of all hand-offs there.
        retries: How often a lost connection is made again without progress.
        again: Start another run although one has ended.
        override: Why the sealed policy is not followed; empty to follow it.
        encrypt_to: Recipients of ``age`` or ``gpg`` that the bundle is encrypted for.
        identity: File there with the key of one of them, for ``age``.
    """

    destination: Destination
    bundle: Path
    environment: str = FRESH
    python: str = ""
    options: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    other_python: bool = False
    wheels: Path | None = None
    tool_wheels: Path | None = None
    fetch_there: bool = False
    root: str = ROOT
    retries: int = 8
    again: bool = False
    override: str = ""
    encrypt_to: tuple[str, ...] = ()
    identity: str = ""

    @property
    def fresh(self) -> bool:
        """Whether an environment is built from the lock."""
        return self.environment == FRESH
