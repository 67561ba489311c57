"""The record itself: one run, from the types beside this module."""

from typing import Final, Literal

import msgspec

from reprobundle.format.record.devices import Devices
from reprobundle.format.record.experiment import Experiment
from reprobundle.format.record.files import (
    ContentMember,
    FileRead,
    LeftOutFile,
    WithheldFile,
)
from reprobundle.format.record.memory import Memory
from reprobundle.format.record.outcome import Outcome, Remark, Restart
from reprobundle.format.record.outputs import Output
from reprobundle.format.record.phases import Phase
from reprobundle.format.record.processes import Command, Process, Rank
from reprobundle.format.record.randomness import Randomness
from reprobundle.format.record.truth import Promotion
from reprobundle.format.record.values import Count, Digest, Fact

RECORD_SCHEMA: Final = "reprobundle/record/1"
STAND_IN: Final = "stand-in"
"""Name of the claim whose run read samples in the place of withheld files."""


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One run.

    Attributes:
        schema: Always ``reprobundle/record/1``.
        bundle: Id of the bundle a replay ran; empty inside the seal.
        role: ``reference``, ``repeat``, ``claim`` (a claim's own command),
            ``evidence`` (a traced run of either), ``restart`` (one that was stopped
            and resumed), ``truth`` (one in float64 on the CPU), ``counterpart`` (the
            main command on a further device) or ``replay``.
        pass_name: ``measured``, ``repeat``, ``evidence``, ``restart`` or ``truth``.
            An evidence pass is
            traced, so it states neither phases nor memory; its outputs show that
            tracing changed nothing.
        claim: Name of the claim the command serves; ``main`` for the main command.
        runs: For a replay, the number of the sealed run it is compared with; else 0.
        occasion: Shared by all records that one call of ``replay`` made (its passes
            and claims), 16 hexadecimal digits; empty inside the seal. They are judged
            together.
        tool: Name and version of the writer.
        started: RFC 3339, UTC.
        elapsed_ns: Wall time of the whole command, process start to end.
        platform: ``linux``, ``darwin``; the Linux reference is found by it.
        environment: Facts by dotted name.
        ranks: Ranks of a distributed run, by number; empty for any other run.
        restart: What was stopped and resumed; only in a restart pass, whose other
            fields describe the resumed process.
        promotion: What was computed in float64; only in a truth pass.
        files_digest: BLAKE3 over the sorted ``digest  path`` lines of the project
            files the run started from: two runs of one bundle agree in it.
        reference_by: For a replay, who states that it is the Linux reference of a
            bundle packed elsewhere; empty for any other run. It is stated, not proven.
        withheld: Those of these files that the bundle holds by digest only.
        left_out: Large files of the project that are not in the bundle because nothing
            read them; in the reference only.
        experiment: For a replay that was to differ from its reference in one thing;
            None for any other run. It decides nothing (spec.md, section 7.2).
    """

    schema: Literal["reprobundle/record/1"] = RECORD_SCHEMA
    bundle: str = ""
    role: Literal[
        "reference",
        "repeat",
        "claim",
        "evidence",
        "restart",
        "truth",
        "counterpart",
        "replay",
    ]
    pass_name: Literal["measured", "repeat", "evidence", "restart", "truth"]
    claim: str = "main"
    runs: Count = 0
    occasion: str = ""
    tool: str
    started: str
    elapsed_ns: Count
    platform: str
    command: Command
    environment: dict[str, Fact]
    randomness: Randomness
    processes: tuple[Process, ...]
    ranks: tuple[Rank, ...] = ()
    restart: Restart | None = None
    promotion: Promotion | None = None
    phases: tuple[Phase, ...]
    memory: Memory
    devices: Devices
    files_digest: Digest
    reads: tuple[FileRead, ...]
    sources: tuple[str, ...]
    outputs: tuple[Output, ...]
    outcome: Outcome
    remarks: tuple[Remark, ...]
    members: tuple[ContentMember, ...]
    withheld: tuple[WithheldFile, ...] = ()
    left_out: tuple[LeftOutFile, ...] = ()
    reference_by: str = ""
    experiment: Experiment | None = None

    @property
    def loaded_torch(self) -> bool:
        """Whether any process of the run imported torch."""
        version = self.environment.get("torch.version")
        return version is not None and not version.unknown
