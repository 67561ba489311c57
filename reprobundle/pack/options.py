"""What `pack` is asked for, and what it gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from reprobundle.format.policy import DataRules, Intent, Metric, RoleRule
from reprobundle.format.record import DrawMode, Fact, Record
from reprobundle.format.writer import SealedBundle
from reprobundle.pack.contents import ExternalChoice
from reprobundle.pack.passes import PassName
from reprobundle.run.budget import OUTPUT_BUDGET_BYTES
from reprobundle.run.device_facts import DeviceMapping
from reprobundle.run.finished import OUTPUT_LIMIT_BYTES
from reprobundle.verify.restart import Resumed


@dataclass(frozen=True)
class PackOptions:
    """What the user asked for.

    Attributes:
        argv: The command.
        output: The bundle to write.
        working_directory: Where the command runs.
        project: Top of the project if named.
        seed: Seed to set before the user's code, or None.
        inputs: Files or folders that count as inputs, even where git ignores them.
        exclude: Files or folders that are not put into the bundle.
        hash_only: Files, folders or outputs of which the bundle keeps size and digest
            only.
        stand_ins: ``PATH=SAMPLE``: the same, with a sample in the file's place.
        keep_summaries: Keep the summaries of outputs that are withheld so.
        pinned: Files or folders outside the project of which the bundle keeps size and
            digest only.
        external: What happens to all other files that are read outside the project.
        allow_sensitive: ``KIND@PATH`` or ``PATH``: sensitive places that may be sealed.
        policy: A policy file, or None for the defaults.
        metrics: Numbers the command prints that count as results.
        roles: What outputs are for, by pattern.
        facts: What the user states about the run, by name below ``stated.``.
        intent: Purpose, scenario, platforms, fallback.
        expect_failure: Whether failing is the result.
        passes: Which passes to make.
        repeats: How many repeat passes, where they are made.
        resume_command: What resumes the run in the restart pass; empty for the
            command itself.
        device: ``as-is`` or a device type.
        further_devices: Devices on which the main command is run once more, to be kept
            beside the reference.
        mapping: ``cuda=cpu`` or ``cuda=mps``: calls that name CUDA are made for that
            device; empty for none.
        force: Write over a bundle although its replays are lost.
        output_limit_bytes: Largest single output.
        output_budget_bytes: What the outputs of one run may take; the largest of them
            are kept as samples so that the others fit.
        echo: Show what the command prints while it runs.
        rng: How random draws are made: ``native``, ``portable`` or ``recorded``.
        draws_limit_bytes: Budget for the draws that are kept in mode ``recorded``.
        offline: Ask no package index; then there is no lock for other systems.
    """

    argv: tuple[str, ...]
    output: Path
    working_directory: Path
    project: Path | None = None
    seed: int | None = None
    inputs: tuple[Path, ...] = ()
    exclude: tuple[Path, ...] = ()
    hash_only: tuple[Path, ...] = ()
    stand_ins: tuple[str, ...] = ()
    keep_summaries: bool = False
    pinned: tuple[Path, ...] = ()
    external: ExternalChoice = "include"
    allow_sensitive: tuple[str, ...] = ()
    policy: Path | None = None
    metrics: tuple[Metric, ...] = ()
    roles: tuple[RoleRule, ...] = ()
    facts: Mapping[str, Fact] = field(default_factory=dict)
    intent: Intent = field(default_factory=Intent)
    expect_failure: bool = False
    passes: tuple[PassName, ...] = ("measured", "repeat", "evidence")
    repeats: int = 1
    resume_command: tuple[str, ...] = ()
    device: str = "as-is"
    further_devices: tuple[str, ...] = ()
    mapping: DeviceMapping = ""
    force: bool = False
    output_limit_bytes: int = OUTPUT_LIMIT_BYTES
    output_budget_bytes: int = OUTPUT_BUDGET_BYTES
    echo: bool = False
    rng: DrawMode = "native"
    draws_limit_bytes: int = 64 << 20
    offline: bool = False


@dataclass(frozen=True)
class Packed:
    """A written bundle.

    Attributes:
        path: The file.
        sealed: Its id and size.
        reference: Record of the measured pass.
        repeats: Records of the repeat passes; empty if none was made.
        truth: Record of the float64 run, or None if it was not made.
        counterparts: Records of the run on each further device.
        resumed: How the stopped and resumed run compares with the reference; None if
            that was not asked for.
        repeatable: Whether all agree under the policy; None if there is no repeat.
        unread: Project files that are in the bundle, and nothing was seen to read them.
        excluded: Files that are not in the bundle because the author said so.
        data: What its policy says may be done with the data; None for nothing.
        unmet: Numbers of the author's claims that the runs do not hold or not meet.
    """

    path: Path
    sealed: SealedBundle
    reference: Record
    repeats: tuple[Record, ...]
    repeatable: bool | None
    excluded: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    truth: Record | None = None
    counterparts: tuple[Record, ...] = ()
    resumed: Resumed | None = None
    data: DataRules | None = None
    unmet: tuple[str, ...] = ()
