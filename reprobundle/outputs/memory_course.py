"""How the memory of a run went over the rounds of its loop, told from its series."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from reprobundle.format.record import AllocatorCall, Growth, GrowthKind, MemorySample
from reprobundle.outputs.growth import Point, classify

_EMPTYING_CALL = "empty_cache"
# The first of them that was sampled stands for the host's side.
_HOST_COUNTERS = ("anonymous", "footprint", "rss")
_DEVICE_COUNTERS = ("cuda_allocated", "cuda_reserved", "mps_allocated", "mps_driver")
_WORST_FIRST: tuple[GrowthKind, ...] = (
    "linear",
    "with-shapes",
    "unclear",
    "not-classified",
    "step",
    "flat",
)


def looping(
    samples: Sequence[MemorySample],
) -> tuple[int, Literal["", "step", "call"]]:
    """Return the process that made most rounds of a loop, and what its rounds are."""
    names: tuple[Literal["step", "call"], ...] = ("step", "call")
    for name in names:
        made = {
            sample.pid: _round(sample, name)
            for sample in samples
            if sample.point.startswith(f"{name} ")
        }
        if made:
            return max(made, key=made.__getitem__), name
    return 0, ""


def _round(sample: MemorySample, name: str) -> int:
    return int(sample.point.removeprefix(f"{name} "))


def growth_of(
    samples: Sequence[MemorySample], calls: Sequence[AllocatorCall]
) -> tuple[Growth, ...]:
    """Return how each counter went over the rounds of a run's loop.

    Args:
        samples: The series; samples by the clock may have been thinned.
        calls: What the script asked of the allocators.
    """
    pid, rounds = looping(samples)
    series = [
        sample
        for sample in samples
        if rounds and sample.pid == pid and sample.point.startswith(f"{rounds} ")
    ]
    emptied = [
        call.first_step
        for call in calls
        if call.in_use and call.function.endswith(_EMPTYING_CALL)
    ]
    return tuple(
        classify(
            counter,
            [
                Point(_round(sample, rounds), sample.bytes[counter], sample.shapes)
                for sample in series
                if counter in sample.bytes
            ],
            emptied_after=min(emptied, default=None),
        )
        for counter in _counters(series)
    )


def _counters(series: Sequence[MemorySample]) -> Iterator[str]:
    sampled = {counter for sample in series for counter in sample.bytes}
    yield from [name for name in _HOST_COUNTERS if name in sampled][:1]
    yield from (name for name in _DEVICE_COUNTERS if name in sampled)


def course(growth: Sequence[Growth]) -> GrowthKind | Literal["host-only"]:
    """Return one word for how the memory of a run went: the worst kind."""
    if not growth:
        return "not-classified"
    kinds = {one.counter: one.kind for one in growth}
    device = [kinds[name] for name in _DEVICE_COUNTERS if name in kinds]
    host = next((kinds[name] for name in _HOST_COUNTERS if name in kinds), None)
    if host == "linear" and device and all(kind == "flat" for kind in device):
        return "host-only"
    return min(kinds.values(), key=_WORST_FIRST.index)
