"""How much memory a run took, and whether it grew."""

from typing import Literal

import msgspec

from reprobundle.format.record.values import Count, Fact, Number


class AllocatorCall(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """Calls of a function that changes what the counters of an allocator mean.

    Attributes:
        function: Such as ``torch.cuda.empty_cache``, after which a low value proves
            nothing, ``torch.mps.set_per_process_memory_fraction``, which is a limit,
            or ``torch.cuda.reset_peak_memory_stats``.
        value: Its arguments as text.
        where: ``file:line`` of the caller.
        calls: How often it was called from there (at least).
        first_step: Optimizer steps made before the first of these calls.
        in_use: Whether the allocator of a device was in use then.
    """

    function: str
    value: str = ""
    where: str = ""
    calls: Count
    first_step: Count
    in_use: bool


class InputShape(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How often models were called with inputs of these dtypes and shapes.

    `shape` is text such as ``float32[16, 20]``, several tensors with a comma between.
    """

    shape: str
    count: Count


GrowthKind = Literal[
    "flat", "step", "linear", "with-shapes", "unclear", "not-classified"
]


class Growth(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one memory counter went over the rounds of a loop.

    Attributes:
        counter: Such as ``anonymous`` or ``cuda_allocated``.
        kind: ``flat``, ``step`` (up once, then flat), ``linear`` (by as much again
            and again, with inputs of known shapes too), ``with-shapes`` (only where
            inputs of a new shape came), ``unclear``, or ``not-classified``.
        bytes_per_round: Median slope after the warm-up.
        noise_bytes_per_round: What this very run's counter moves by without a trend:
            a slope inside this band is no growth.
        first_round, last_round: Between which rounds it was judged.
        reason: Why it was not classified, or what else there is to say.
    """

    counter: str
    kind: GrowthKind
    bytes_per_round: Number = 0.0
    noise_bytes_per_round: Number = 0.0
    first_round: Count = 0
    last_round: Count = 0
    reason: str = ""


class Memory(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The memory log of the run.

    Attributes:
        series: Name of the member with all samples, relative to the record; empty
            when there is no series.
        samples: Number of samples in it.
        taken: Number of samples that were taken, before the series was thinned.
        with_pressure: How many of these tell how short of memory the system was.
        peak_rss_bytes: Largest resident size of one process, with its source.
        peak_device_bytes: Largest allocation seen by a device allocator.
        limits: Settings of allocators by name, as they were when torch was imported
            or as the script set them: two series under different ones are not
            comparable.
        calls: What the script told the allocators.
        shapes: Inputs of models by dtype and shape, the most frequent 50.
        distinct_shapes: Number of different ones.
        rounds: What a round of `growth` is: ``step`` (of an optimizer), ``call`` (of
            a model), or empty.
        growth: How each counter went.
        course: The same in one word for the whole run: the worst kind of `growth`, or
            ``host-only``, when the host's memory grows and the device's does not.
    """

    series: str = ""
    samples: Count = 0
    taken: Count = 0
    with_pressure: Count = 0
    peak_rss_bytes: Fact
    peak_device_bytes: Fact
    limits: dict[str, str] = {}
    calls: tuple[AllocatorCall, ...] = ()
    shapes: tuple[InputShape, ...] = ()
    distinct_shapes: Count = 0
    rounds: Literal["", "step", "call"] = ""
    growth: tuple[Growth, ...] = ()
    course: GrowthKind | Literal["host-only"] = "not-classified"


class MemorySample(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """One sample of the series.

    Attributes:
        t_ns: Nanoseconds since start.
        point: A label: ``start``, ``torch imported``, ``model ready``, ``first
            batch``, ``first backward``, ``step 8``, ``call 8``, ``cache emptied``,
            ``end``, or ``clock``.
        pid: Process whose memory it is.
        bytes: Bytes by counter.
        pressure: How short of memory the system was: ``some_avg10_percent`` (Linux),
            ``level`` and ``free_percent`` (macOS).
        synchronized: How the device was waited for before: as in `Phase`; empty when
            it was not, as with every ``clock`` sample.
        step: Optimizer steps so far.
        shapes: Different shapes of model inputs so far.
    """

    t_ns: int
    point: str
    pid: int
    bytes: dict[str, int]
    pressure: dict[str, float] = {}
    synchronized: str = ""
    step: Count = 0
    shapes: Count = 0


class MemorySeries(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """The member that ``Memory.series`` names."""

    samples: tuple[MemorySample, ...]
