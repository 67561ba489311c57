"""Read the event files of a session, one for each process."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import msgspec

from reprobundle.run.events.devices import (
    Device,
    FallbackEvent,
    Float64SearchEvent,
    Float64SiteEvent,
    IndexRange,
    MappedEvent,
    OperatorEvent,
    OperatorFormEvent,
    TransferEvent,
    WitnessEvent,
)
from reprobundle.run.events.forecasts import (
    SteeredCrossingEvent,
    SteeredEndEvent,
    SteeredInputsEvent,
    SteeredInventedEvent,
    SteeredOperatorEvent,
    SteeredRefusalEvent,
)
from reprobundle.run.events.measures import (
    AllocatorEvent,
    MemoryEvent,
    Phases,
    ShapesEvent,
)
from reprobundle.run.events.process import (
    Child,
    FactEvent,
    Network,
    Open,
    RankEvent,
    Start,
    VariableEvent,
)
from reprobundle.run.events.randomness import (
    Absent,
    Beginning,
    DrawnEvent,
    Generators,
    LoaderPass,
    Parameters,
    Seed,
)
from reprobundle.run.events.results import (
    Cell,
    CellError,
    End,
    Error,
    Stopped,
    Trouble,
    Value,
    WarningEvent,
)
from reprobundle.run.events.truth import Promoted

if TYPE_CHECKING:
    from pathlib import Path

# What an exit file holds (recorder/exit_status.py): one C int.
EXIT_BYTES = 4
NO_EXIT = -(2**31)

AnyEvent = (
    Start
    | FactEvent
    | Open
    | Child
    | Network
    | Seed
    | Generators
    | DrawnEvent
    | Promoted
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
    | Float64SearchEvent
    | Float64SiteEvent
    | OperatorFormEvent
    | SteeredOperatorEvent
    | SteeredCrossingEvent
    | SteeredEndEvent
    | SteeredInputsEvent
    | SteeredInventedEvent
    | SteeredRefusalEvent
    | IndexRange
    | MappedEvent
    | Value
    | VariableEvent
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
