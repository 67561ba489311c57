"""What `replay` is asked for, and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from reprobundle.format.findings import Report
from reprobundle.format.record import DrawMode, Experiment
from reprobundle.run.device_facts import DeviceMapping
from reprobundle.run.lock import Drift


@dataclass(frozen=True)
class ReplayOptions:
    """What the user asked for.

    Attributes:
        bundle: The bundle file.
        environment: ``current``, ``fresh``, or the path of an interpreter.
        devices: Each ``as-is``, ``cpu``, ``cuda`` or ``mps``; everything runs on each.
        mappings: ``cuda=cpu``, ``cuda=mps``: on that device, calls that name CUDA are
            made for it.
        fallback: ``forbid`` stops a run on MPS at the first operator that MPS lacks;
            ``diagnose`` goes on with the CPU in its place, and the run is a mixed one.
        passes: Passes of the main command.
        repeats: How often to make the measured pass of every command.
        claims: Names of the claims to run; empty for all.
        resume_command: What resumes the run in the restart pass; empty for what the
            author used.
        record_file: Write the records there as a replay file instead of attaching
            them; needed where the bundle cannot be written.
        reference_by: Who states that this run is the Linux reference; empty for none.
        data: ``PATH=FILE``: the caller's own copies of withheld files.
        settings: ``NAME=VALUE``: switches of torch and variables of the numeric
            libraries to set, for a run that differs in one thing.
        shapes: ``constant`` or ``dynamic``: the command is told; empty for neither.
        round: ``full`` or ``minimal``, likewise.
        packages: ``NAME==VERSION``: packages to use in the place of installed ones.
        wheels: Folder of wheels for an environment without network.
        without: Packages of the lock to leave out of a fresh environment.
        allow_other_build: Take the plain release into a fresh environment where a
            build with a local label (``+cpu``) cannot be had.
        allow_other_python: Build it on another minor version rather than not at all.
        allow: Named warnings that the caller accepts.
        allow_sensitive: ``KIND@PATH`` or ``PATH``: sensitive places in logs and
            outputs that may be handed on with the record.
        override: Why the policy's rules about data are not followed; empty to follow
            them.
        echo: Show what the command prints while it runs.
        experiment: The side of a pair that this call makes; None for any other call.
        rng: How random draws are made; as in the reference if empty.
    """

    bundle: Path
    environment: str = "current"
    devices: tuple[str, ...] = ("as-is",)
    mappings: tuple[DeviceMapping, ...] = ()
    fallback: Literal["forbid", "diagnose"] = "forbid"
    passes: tuple[str, ...] = ("measured", "evidence")
    repeats: int = 1
    claims: tuple[str, ...] = ()
    resume_command: tuple[str, ...] = ()
    record_file: Path | None = None
    reference_by: str = ""
    data: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    shapes: str = ""
    round: str = ""
    packages: tuple[str, ...] = ()
    wheels: Path | None = None
    without: tuple[str, ...] = ()
    allow_other_build: bool = False
    allow_other_python: bool = False
    allow: tuple[str, ...] = ()
    allow_sensitive: tuple[str, ...] = ()
    override: str = ""
    echo: bool = False
    experiment: Experiment | None = None
    rng: DrawMode | Literal[""] = ""


@dataclass
class Replayed:
    """What came of a replay.

    Attributes:
        report: The verdict with its reasons.
        replay_ids: Ids of the attached records.
        drift: How the environment differs from the lock.
    """

    report: Report
    replay_ids: list[str] = field(default_factory=list)
    drift: tuple[Drift, ...] = ()
