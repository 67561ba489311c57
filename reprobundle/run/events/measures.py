"""Times, memory, allocators and shapes."""

from typing import Literal

import msgspec

from reprobundle.run.events.base import Event


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
    unwaited_median_ns: int | None = None
    unwaited_ratio: float | None = None


class Phases(Event, frozen=True, tag="phases"):
    """Totals of all phases so far; the last such event of a process counts."""

    phases: tuple[PhaseTotals, ...]
    steps: int


class MemoryEvent(Event, frozen=True, tag="memory"):
    """One memory sample; fields as in `reprobundle.format.record.MemorySample`."""

    point: str
    bytes: dict[str, int]
    pressure: dict[str, float] = msgspec.field(default_factory=dict)
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
