"""What is known when a command has ended, and what is made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from reprobundle.format.policy import Metric, RoleRule
from reprobundle.format.record import (
    Command,
    Fact,
    Record,
    Restart,
    WithheldFile,
)
from reprobundle.run import device_facts
from reprobundle.run.accessed import Accesses, Places
from reprobundle.run.drawn import FINGERPRINTS
from reprobundle.run.drawn import MEMBER as DRAWS
from reprobundle.run.launch import Launched

# Members of a record that are neither output nor log.
SERIES = frozenset({"memory.json", DRAWS, FINGERPRINTS})
OUTPUT_LIMIT_BYTES = 4 << 30

PassName = Literal["measured", "repeat", "evidence", "restart", "truth"]
Role = Literal[
    "reference",
    "repeat",
    "claim",
    "evidence",
    "restart",
    "truth",
    "counterpart",
    "replay",
]


@dataclass(frozen=True)
class FinishedRun:
    """Everything known after a command ended.

    Attributes:
        launched: How it ended.
        places: Scratch folder, original project, machinery.
        staged: Digest of each file the scratch folder started with, by name.
        members: Member of the bundle that holds each of those files.
        withheld: Those that the bundle holds by digest only.
        changed: Files below the scratch folder that the run created or changed.
        command: As recorded.
        python: The user's interpreter, or None.
        work: A folder for files made on the way.
        device: Device asked for.
        mapping: As in `Devices`.
        pass_name: As in `Record`.
        restart: As in `Record`.
        metrics: Numbers to read from the standard output.
        roles: What outputs are for.
        hide: Pairs of text and replacement for every recorded text.
        extra_facts: Facts that the launcher knows, such as the git commit.
        inherited: Names of the variables that the command got from the machine.
    """

    launched: Launched
    places: Places
    staged: Mapping[str, str]
    members: Mapping[str, str]
    changed: tuple[str, ...]
    command: Command
    python: Path | None
    work: Path
    withheld: tuple[WithheldFile, ...] = ()
    device: str = "as-is"
    mapping: device_facts.DeviceMapping = ""
    pass_name: PassName = "measured"
    restart: Restart | None = None
    metrics: tuple[Metric, ...] = ()
    roles: tuple[RoleRule, ...] = ()
    hide: list[tuple[str, str]] = field(default_factory=list)
    extra_facts: Mapping[str, Fact] = field(default_factory=dict)
    inherited: frozenset[str] = frozenset()
    output_limit_bytes: int = OUTPUT_LIMIT_BYTES


@dataclass(frozen=True)
class Assembled:
    """A record and its content.

    Attributes:
        record: The record.
        content: Member name relative to the record → file on disk.
        accesses: Which files the run read and wrote.
    """

    record: Record
    content: dict[str, Path]
    accesses: Accesses
