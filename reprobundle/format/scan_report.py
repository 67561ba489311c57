"""What `scan` says about a project: what in it needs an NVIDIA GPU, and where."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

SCAN_SCHEMA: Final = "reprobundle/scan/1"

Level = Literal["standard-api", "third-party", "own-kernels", "distributed"]
LEVELS: Final[tuple[Level, ...]] = (
    "standard-api",
    "third-party",
    "own-kernels",
    "distributed",
)

# How a place stands:
#   blocker   on the default path; the project as it is stops there on a Mac
#   guarded   behind a condition that leaves a path without CUDA
#   optional  wanted by an extra, a group or another system only
#   setting   a default that the caller or the command line can change
#   check     works or is ignored on a Mac, but does not mean the same there
#   late      chosen while the program runs; reading cannot decide it
#   aside     a blocker in tests, documents or benchmarks, off the main path
Standing = Literal[
    "blocker", "guarded", "optional", "setting", "check", "late", "aside"
]
STANDINGS: Final[tuple[Standing, ...]] = (
    "blocker",
    "late",
    "check",
    "setting",
    "guarded",
    "optional",
    "aside",
)

Action = Literal[
    "nothing-found", "not-decided", "refactor", "dual-track", "keep-linux-gpu"
]


class ScanFinding(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """One place in the project.

    Attributes:
        path: File, relative to what was scanned, with ``/``.
        line: From 1; 0 where the file as a whole is meant.
        cell: Cell of a notebook, from 1, text cells included; 0 elsewhere. `line`
            then counts inside the cell.
        level: Which of the four levels it belongs to.
        rule: Stable name of the rule that fired.
        standing: How the place stands; ``blocker`` alone counts against the project.
        term: What was found, such as ``flash_attn``.
        because: Why it stands like that, one phrase; the guard for a guarded place.
        remedy: What to do about it.
    """

    path: str
    line: int
    cell: int = 0
    level: Level
    rule: str
    standing: Standing
    term: str
    because: str
    remedy: str

    @property
    def place(self) -> str:
        """The place as ``file:line``, or ``file, cell 3:2`` in a notebook."""
        if self.cell:
            return f"{self.path}, cell {self.cell}:{self.line}"
        return f"{self.path}:{self.line}" if self.line else self.path


class Mention(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A word in a comment, a text or a document; it counts for nothing.

    Attributes:
        path: File.
        line: From 1.
        term: The word.
    """

    path: str
    line: int
    term: str


class NotRead(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file whose content could not be looked at.

    Attributes:
        path: File.
        reason: Why.
        matters: Whether it may hold code or dependencies: the scan is then not whole.
    """

    path: str
    reason: str
    matters: bool


class ScanReport(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a scan found.

    Attributes:
        target: What was scanned, as given.
        action: What to do.
        rule: Stable name of the rule that the action follows from.
        reason: That rule applied here, one sentence.
        findings: All places, blockers first.
        mentions: Words that counted for nothing.
        not_read: Files that were not looked at.
        files: Number of files read.
        bundle: Id of the bundle that was scanned; empty for a folder or file.
        exit_status: 0 when everything was read and nothing blocks, else 10.
    """

    schema: Literal["reprobundle/scan/1"] = SCAN_SCHEMA
    target: str
    action: Action
    rule: str
    reason: str
    findings: tuple[ScanFinding, ...]
    mentions: tuple[Mention, ...]
    not_read: tuple[NotRead, ...]
    files: int
    bundle: str = ""
    exit_status: int
