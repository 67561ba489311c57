"""The events a recorder writes: one JSON line each, appended at once.

This is the only place where the recorder and the rest meet. Every process of a run
that the recorder entered appends to a file of its own,
``<session>/events/<pid>-<start ns>.jsonl``; the first line is a `Start`. A line that
was cut short by a killed process is skipped and counted. All times are nanoseconds of
``time.monotonic_ns()``, which all processes of one machine share; paths are absolute.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from pathlib import Path


# What an exit file holds (recorder/exit_status.py): one C int.
EXIT_BYTES = 4
NO_EXIT = -(2**31)


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event"):
    """Base of all events; `t_ns` is when it was written."""

    t_ns: int


class Start(Event, frozen=True, tag="start"):
    """The recorder entered a process; always the first line of a file.

    `kind` is ``main`` for the first entered process of the session, ``fork`` after
    a fork, ``helper`` for a known service process, ``python`` for any other.
    """

    pid: int
    parent_pid: int
    kind: Literal["main", "python", "fork", "helper"]
    argv: tuple[str, ...]
    executable: str
    working_directory: str


class FactEvent(Event, frozen=True, tag="fact"):
    """One environment fact, or the reason why it is unknown (then value is null)."""

    name: str
    value: bool | int | float | str | tuple[str, ...] | None
    unknown: str = ""
    source: str = ""


class Open(Event, frozen=True, tag="open"):
    """A file was opened; sent once for each path and mode in a process."""

    path: str
    mode: Literal["read", "write"]


class Child(Event, frozen=True, tag="child"):
    """This process started another one."""

    argv: tuple[str, ...]
    executable: str


class Network(Event, frozen=True, tag="network"):
    """This process looked up or connected to a host; sent once for each target."""

    target: str


class Seed(Event, frozen=True, tag="seed"):
    """A seed was set: function, value as text, ``file:line`` of the caller.

    Where no seed was given, `drawn` is the one that the system drew, if it is known.
    """

    function: str
    value: str
    where: str
    drawn: str = ""


class Generators(Event, frozen=True, tag="generators"):
    """Fingerprints by generator name: states at start or end, or fresh draws."""

    when: Literal["initial", "final", "draws"]
    fingerprints: dict[str, str]


class DrawnEvent(Event, frozen=True, tag="drawn"):
    """How random draws are made; the last such event of a process counts.

    The fields are those of `reprobundle.format.record.Drawn`; ``file`` lies in
    ``<session>/values/``.
    """

    mode: Literal["native", "portable", "recorded"]
    moved: int = 0
    followed: int = 0
    taken: int = 0
    differing: int = 0
    missing: int = 0
    stopped: str = ""
    kept: int = 0
    complete: bool = False
    file: str = ""
    on_device: tuple[str, ...] = ()


class Absent(Event, frozen=True, tag="absent"):
    """At the end of the process these modules with generators had not been loaded."""

    modules: tuple[str, ...]


class LoaderPass(Event, frozen=True, tag="loader"):
    """A pass over a data loader began; fields as in `record.Loader`."""

    where: str
    base_seed: str
    workers: int = 0
    start_method: str = ""
    batch_size: int | None = None
    sampler: str = ""
    generator_seed: str = ""


class Began(msgspec.Struct, frozen=True, kw_only=True):
    """One tensor that the run began with; fields as in `record.StartTensor`."""

    name: str
    kind: Literal["weight", "input", "batch"]
    dtype: str
    shape: tuple[int, ...]
    fingerprint: str = ""
    sampled: bool = False
    l2: float | Literal["nan", "inf", "-inf"] | None = None
    reason: str = ""


class Beginning(Event, frozen=True, tag="beginning"):
    """Tensors as the run began with them, of one module or one batch."""

    tensors: tuple[Began, ...]


class PhaseTotals(msgspec.Struct, frozen=True, kw_only=True):
    """Totals of one phase so far; fields as in `reprobundle.format.record.Phase`."""

    name: str
    count: int
    total_ns: int
    median_ns: int
    p95_ns: int | None = None
    longest_ns: int
    warmup_count: int | None = None
    warmup_ns: int | None = None
    synchronized: Literal["cpu", "cuda", "mps", "none"]
    synchronizations: int = 0


class Phases(Event, frozen=True, tag="phases"):
    """Totals of all phases so far; the last such event of a process counts."""

    phases: tuple[PhaseTotals, ...]
    steps: int


class MemoryEvent(Event, frozen=True, tag="memory"):
    """One memory sample; fields as in `reprobundle.format.record.MemorySample`."""

    point: str
    bytes: dict[str, int]
    pressure: dict[str, float] = {}
    synchronized: str = ""
    step: int = 0
    shapes: int = 0


class AllocatorEvent(Event, frozen=True, tag="allocator"):
    """The script called a function that changes what allocator counters mean.

    Fields as in `reprobundle.format.record.AllocatorCall`; `step` is that of this
    call. Of many calls from one place only the first four are sent, then those whose
    number is a power of two.
    """

    function: str
    value: str
    where: str
    calls: int
    step: int
    in_use: bool


class ShapeCount(msgspec.Struct, frozen=True, kw_only=True):
    """How often a model was called with inputs of these dtypes and shapes."""

    shape: str
    count: int


class ShapesEvent(Event, frozen=True, tag="shapes"):
    """Shapes of model inputs so far, the most frequent ones; the last one counts."""

    shapes: tuple[ShapeCount, ...]
    other: int
    distinct: int


class Device(Event, frozen=True, tag="device"):
    """A device type was seen for the first time, and on what."""

    device: str
    seen_on: str


class WitnessEvent(Event, frozen=True, tag="witness"):
    """Whether and where a witness of CPU fallback looked.

    ``steps`` are inclusive ranges of optimizer steps, counted from 1; empty for a
    witness that looks at the whole run. What follows the last step counts as one more.
    """

    name: Literal["warnings", "profiler", "census"]
    looked: bool
    steps: tuple[tuple[int, int], ...] = ()
    total_steps: int = 0
    reason: str = ""


class FallbackEvent(Event, frozen=True, tag="fallback"):
    """A witness saw an operator fall back; of one key the largest count holds."""

    witness: Literal["warnings", "profiler"]
    operator: str
    count: int
    where: str = ""
    phase: str = ""


class OperatorEvent(Event, frozen=True, tag="operator"):
    """Calls of one operator on one device in one phase, and in how many steps."""

    operator: str
    device: str
    phase: str
    count: int
    bytes: int
    steps: int
    where: str


class TransferEvent(Event, frozen=True, tag="transfer"):
    """Copies between host and device that the script asked for, by place."""

    kind: Literal["to-device", "from-device", "scalar-read"]
    where: str
    non_blocking: bool
    count: int
    bytes: int


class IndexRange(Event, frozen=True, tag="index_range"):
    """An operator looked up indices that its table does not have."""

    operator: str
    where: str
    low: int
    high: int
    size: int


class Value(Event, frozen=True, tag="value"):
    """The script recorded a value.

    ``file`` lies in ``<session>/values/``: ``.safetensors`` for tensors and arrays
    (one tensor named ``value``), ``.json`` for everything else.
    """

    name: str
    file: str


class WarningEvent(Event, frozen=True, tag="warning"):
    """Python issued a warning; sent once for each text and place."""

    category: str
    message: str
    where: str


class Error(Event, frozen=True, tag="error"):
    """An exception ended the process."""

    type: str
    message: str
    where: str
    traceback: str
    steps: int


class Cell(Event, frozen=True, tag="cell"):
    """A notebook kernel is about to run a cell.

    `number` is the kernel's execution count, `file` the name its code is compiled
    under, `source` the text of the cell.
    """

    number: int
    file: str
    source: str


class CellError(Event, frozen=True, tag="cell-error"):
    """An exception ended a cell; the kernel goes on. Fields as in `Error`."""

    number: int
    type: str
    message: str
    where: str
    traceback: str
    steps: int


class RankEvent(Event, frozen=True, tag="rank"):
    """This process is one rank of a distributed run.

    Sent once from the variables a launcher set (`how` is ``environment``) and once
    from ``torch.distributed`` (`how` is ``process group``), which counts more.
    """

    rank: int
    world_size: int
    local_rank: int | None
    how: Literal["environment", "process group"]


class Parameters(Event, frozen=True, tag="parameters"):
    """Digest of all parameters that data parallelism keeps equal on every rank.

    `when` is ``step 1`` or ``end``; `digest` is empty where `reason` says why.
    """

    when: str
    digest: str
    reason: str = ""


class Stopped(Event, frozen=True, tag="stopped"):
    """The recorder is about to stop the run: after this checkpoint and this step."""

    checkpoint: str
    steps: int


class Trouble(Event, frozen=True, tag="trouble"):
    """A part of the recorder failed; the run went on without it."""

    part: str
    message: str


class End(Event, frozen=True, tag="end"):
    """The process ended by itself.

    ``sources`` are the absolute paths of all modules imported from below the project.
    """

    exit_status: int | None
    sources: tuple[str, ...]


AnyEvent = (
    Start
    | FactEvent
    | Open
    | Child
    | Network
    | Seed
    | Generators
    | DrawnEvent
    | Absent
    | LoaderPass
    | Beginning
    | Phases
    | MemoryEvent
    | AllocatorEvent
    | ShapesEvent
    | Device
    | WitnessEvent
    | FallbackEvent
    | OperatorEvent
    | TransferEvent
    | IndexRange
    | Value
    | WarningEvent
    | Error
    | Cell
    | CellError
    | RankEvent
    | Parameters
    | Stopped
    | Trouble
    | End
)


class EventFile(msgspec.Struct, frozen=True, kw_only=True):
    """All events of one process, and how many lines could not be read.

    `exit_status` is what the C library left in ``<pid>-<start ns>.exit`` beside it;
    None if it left nothing.
    """

    start: Start
    events: tuple[AnyEvent, ...]
    damaged_lines: int
    exit_status: int | None = None


def read_events(folder: Path) -> tuple[EventFile, ...]:
    """Return the events of every process of a session, oldest process first.

    Args:
        folder: The session's ``events`` folder.
    """
    decoder = msgspec.json.Decoder(AnyEvent)
    files = (_read_file(path, decoder) for path in sorted(folder.glob("*.jsonl")))
    return tuple(
        sorted((file for file in files if file), key=lambda file: file.start.t_ns)
    )


def _read_file(path: Path, decoder: msgspec.json.Decoder[AnyEvent]) -> EventFile | None:
    events: list[AnyEvent] = []
    damaged = 0
    for line in path.read_bytes().splitlines():
        try:
            events.append(decoder.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError):
            damaged += 1
    if not events or not isinstance(events[0], Start):
        # The process died before its first line was whole. Nothing is known about
        # it, so it must not look like an entered process.
        return None
    return EventFile(
        start=events[0],
        events=tuple(events),
        damaged_lines=damaged,
        exit_status=_exit_status(path.with_suffix(".exit")),
    )


def _exit_status(path: Path) -> int | None:
    """Return the status as a parent would see it, 0 to 255."""
    try:
        data = path.read_bytes()[:EXIT_BYTES]
    except OSError:
        return None
    status = int.from_bytes(data, sys.byteorder, signed=True)
    written = len(data) == EXIT_BYTES and status != NO_EXIT
    return status & 0xFF if written else None
