"""The events a recorder writes: one JSON line each, appended at once.

This is the only place where the recorder and the rest meet. Every process of a run
that the recorder entered appends to a file of its own,
``<session>/events/<pid>-<start ns>.jsonl``; the first line is a `Start`. A line that
was cut short by a killed process is skipped and counted. All times are nanoseconds of
``time.monotonic_ns()``, which all processes of one machine share; paths are absolute.
"""

from reprobundle.run.events.base import Event
from reprobundle.run.events.devices import (
    Device,
    FallbackEvent,
    Float64SearchEvent,
    Float64SiteEvent,
    FormOfTensor,
    IndexRange,
    MappedEvent,
    OperatorEvent,
    OperatorFormEvent,
    TransferEvent,
    WitnessEvent,
)
from reprobundle.run.events.files import AnyEvent, EventFile, read_events
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
    PhaseTotals,
    ShapeCount,
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
    Began,
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
from reprobundle.run.events.truth import LeftEvent, Promoted

__all__ = [
    "Absent",
    "AllocatorEvent",
    "AnyEvent",
    "Began",
    "Beginning",
    "Cell",
    "CellError",
    "Child",
    "Device",
    "DrawnEvent",
    "End",
    "Error",
    "Event",
    "EventFile",
    "FactEvent",
    "FallbackEvent",
    "Float64SearchEvent",
    "Float64SiteEvent",
    "FormOfTensor",
    "Generators",
    "IndexRange",
    "LeftEvent",
    "LoaderPass",
    "MappedEvent",
    "MemoryEvent",
    "Network",
    "Open",
    "OperatorEvent",
    "OperatorFormEvent",
    "Parameters",
    "PhaseTotals",
    "Phases",
    "Promoted",
    "RankEvent",
    "Seed",
    "ShapeCount",
    "ShapesEvent",
    "Start",
    "SteeredCrossingEvent",
    "SteeredEndEvent",
    "SteeredInputsEvent",
    "SteeredInventedEvent",
    "SteeredOperatorEvent",
    "SteeredRefusalEvent",
    "Stopped",
    "TransferEvent",
    "Trouble",
    "Value",
    "VariableEvent",
    "WarningEvent",
    "WitnessEvent",
    "read_events",
]
