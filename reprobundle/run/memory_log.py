"""Make the memory log of a run: its series, its peaks, its limits, how it went."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from reprobundle.format.record import (
    AllocatorCall,
    Fact,
    InputShape,
    Memory,
    MemorySample,
    Remark,
)
from reprobundle.outputs.memory_course import course, growth_of, looping
from reprobundle.run.events import (
    AllocatorEvent,
    EventFile,
    MemoryEvent,
    ShapesEvent,
)
from reprobundle.run.facts import events_of
from reprobundle.run.paths_in_text import replace_all

# The named samples are bounded by the recorder; those by the clock come from every
# process, data loader workers too.
MOST_CLOCK_SAMPLES = 2000
CLOCK = "clock"
LIMITING_VARIABLES = (
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_HIP_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "PYTORCH_MPS_HIGH_WATERMARK_RATIO",
    "PYTORCH_MPS_LOW_WATERMARK_RATIO",
)
_LIMITING_CALL = "set_per_process_memory_fraction"
# How the recorder says that a variable was taken away before torch was imported.
_UNSET = "(unset)"
_PEAKS = ("cuda_peak_allocated", "cuda_allocated", "mps_allocated")


def memory_samples(
    files: tuple[EventFile, ...], start_ns: int
) -> tuple[MemorySample, ...]:
    """Return all memory samples, oldest first, with times since `start_ns`."""
    samples = [
        MemorySample(
            t_ns=event.t_ns - start_ns,
            point=event.point,
            pid=pid,
            bytes=event.bytes,
            pressure=event.pressure,
            synchronized=event.synchronized,
            step=event.step,
            shapes=event.shapes,
        )
        for pid, event in events_of(files, MemoryEvent)
    ]
    return tuple(sorted(samples, key=lambda sample: (sample.t_ns, sample.pid)))


def thinned(samples: Sequence[MemorySample]) -> tuple[MemorySample, ...]:
    """Return the samples a series keeps.

    Those at named points all stay. Of more than 2,000 by the clock every n-th stays,
    and those that hold the largest value of a counter.
    """
    by_clock = sum(sample.point == CLOCK for sample in samples)
    distance = -(-by_clock // MOST_CLOCK_SAMPLES)
    if distance <= 1:
        return tuple(samples)
    peaks = _largest(samples)
    kept, seen = [], 0
    for sample in samples:
        if sample.point != CLOCK or id(sample) in peaks or seen % distance == 0:
            kept.append(sample)
        seen += sample.point == CLOCK
    return tuple(kept)


def _largest(samples: Sequence[MemorySample]) -> set[int]:
    """Return the identities of the samples with the largest value of a counter."""
    largest: dict[str, MemorySample] = {}
    for sample in samples:
        for counter, size in sample.bytes.items():
            if counter not in largest or size > largest[counter].bytes[counter]:
                largest[counter] = sample
    return set(map(id, largest.values()))


def memory(
    files: tuple[EventFile, ...],
    samples: Sequence[MemorySample],
    environment: Mapping[str, Fact],
    *,
    series: str,
    kept: int,
    hide: list[tuple[str, str]],
) -> Memory:
    """Return the memory log over all `samples`.

    Args:
        files: Events of all processes.
        samples: From `memory_samples`.
        environment: Facts of the run.
        series: Name of the member that holds the thinned series.
        kept: Number of samples in it.
        hide: Pairs of text and replacement applied to the places.
    """
    pid, rounds = looping(samples)
    calls = _calls(files, hide)
    growth = growth_of(samples, calls)
    shapes = _shapes(files, pid)
    return Memory(
        series=series if kept else "",
        samples=kept,
        taken=len(samples),
        with_pressure=sum(bool(sample.pressure) for sample in samples),
        peak_rss_bytes=_peak(
            samples, ("rss_peak", "rss"), "no sample of the resident size was taken"
        ),
        peak_device_bytes=_peak(samples, _PEAKS, "no device allocator was seen in use"),
        limits={**_variables(environment), **_fractions(files)},
        calls=calls,
        shapes=tuple(
            InputShape(shape=one.shape, count=one.count) for one in shapes.shapes
        )
        if shapes
        else (),
        distinct_shapes=shapes.distinct if shapes else 0,
        rounds=rounds,
        growth=growth,
        course=course(growth),
    )


def growth_remarks(log: Memory) -> Iterator[Remark]:
    """Yield one remark for each counter that grows from round to round."""
    for growth in log.growth:
        if growth.kind in ("linear", "with-shapes"):
            yield Remark(
                id="memory-grows",
                severity="gap",
                where=growth.counter,
                text=f"memory grows ({growth.kind}) by "
                f"{float(growth.bytes_per_round):,.0f} bytes a {log.rounds}, outside "
                f"its noise of {float(growth.noise_bytes_per_round):,.0f}",
            )


def _calls(
    files: tuple[EventFile, ...], hide: list[tuple[str, str]]
) -> tuple[AllocatorCall, ...]:
    found: dict[tuple[str, str, str], AllocatorCall] = {}
    for _, event in events_of(files, AllocatorEvent):
        key = (event.function, event.value, event.where)
        first = found.get(key)
        found[key] = AllocatorCall(
            function=event.function,
            value=event.value,
            where=replace_all(event.where, hide),
            calls=max(event.calls, first.calls if first else 0),
            first_step=min(event.step, first.first_step if first else event.step),
            in_use=event.in_use or (first is not None and first.in_use),
        )
    return tuple(found.values())


def _shapes(files: tuple[EventFile, ...], pid: int) -> ShapesEvent | None:
    """Return the last shapes of the process with the loop, else of any process."""
    found = list(events_of(files, ShapesEvent))
    own = [event for number, event in found if number == pid]
    last = own or [event for _, event in found]
    return last[-1] if last else None


def _variables(environment: Mapping[str, Fact]) -> dict[str, str]:
    """Return the limits in force: the script may set a variable before the import."""
    found: dict[str, str] = {}
    for name in LIMITING_VARIABLES:
        for fact_name in (f"env.{name}", f"at_torch.env.{name}"):
            fact = environment.get(fact_name)
            if fact is not None and fact.value is not None:
                found[name] = str(fact.value)
    return {name: value for name, value in found.items() if value != _UNSET}


def _fractions(files: tuple[EventFile, ...]) -> dict[str, str]:
    return {
        event.function: event.value
        for _, event in events_of(files, AllocatorEvent)
        if event.function.endswith(_LIMITING_CALL)
    }


def _peak(
    samples: Sequence[MemorySample], counters: Sequence[str], missing: str
) -> Fact:
    """Return the largest value of several counters, and which one held it."""
    found = [
        (sample.bytes[counter], counter)
        for sample in samples
        for counter in counters
        if counter in sample.bytes
    ]
    if not found:
        return Fact(unknown=missing)
    size, counter = max(found)
    return Fact(value=size, source=f"largest {counter} of the memory series")
