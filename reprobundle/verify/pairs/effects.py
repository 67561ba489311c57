"""How two runs went, side by side: ending, times, memory."""

from __future__ import annotations

from collections.abc import Iterator

from reprobundle.format.difference_report import Effect
from reprobundle.format.record import Fact, Phase, Record
from reprobundle.verify.devices import device_of
from reprobundle.verify.pairs.axes import axis_of
from reprobundle.verify.timing import is_duration

ALLOCATOR = "allocator"


def find_effects(left: Record, right: Record) -> Iterator[Effect]:
    """Yield how two runs went, outputs aside."""
    yield Effect(name="ending", left=_ending(left), right=_ending(right))
    yield _amount(
        "peak resident memory, bytes",
        left.memory.peak_rss_bytes,
        right.memory.peak_rss_bytes,
    )
    yield _amount(
        "peak device memory, bytes",
        left.memory.peak_device_bytes,
        right.memory.peak_device_bytes,
        not_comparable=_limits_differ(left, right),
    )
    theirs = {phase.name: phase for phase in right.phases}
    for phase in left.phases:
        other = theirs.get(phase.name)
        if other is not None:
            yield _phase(left, right, phase, other)


def _ending(record: Record) -> str:
    outcome = record.outcome
    if outcome.stop:
        return f"stopped: {outcome.stop}"
    if not outcome.completed:
        return "did not come to its end"
    error = f", {outcome.error.type}" if outcome.error else ""
    return f"exit status {outcome.exit_status}{error}"


def _amount(name: str, left: Fact, right: Fact, *, not_comparable: str = "") -> Effect:
    sides = (left.value, right.value)
    ratio = None
    if not not_comparable and all(isinstance(side, int) and side for side in sides):
        ratio = int(str(right.value)) / int(str(left.value))
    return Effect(
        name=name,
        left=_text(left),
        right=_text(right),
        ratio=ratio,
        not_comparable=not_comparable,
    )


def _text(fact: Fact) -> str:
    return "unknown" if fact.unknown else str(fact.value)


def _limits_differ(left: Record, right: Record) -> str:
    """Return the allocator setting that makes two memory logs not comparable."""
    names = sorted({*left.environment, *right.environment})
    for name in names:
        if axis_of(name) == ALLOCATOR:
            sides = (left.environment.get(name), right.environment.get(name))
            if len({side.value if side else None for side in sides}) > 1:
                return f"{name} differs, so the allocators had other limits"
    return ""


def _phase(left: Record, right: Record, ours: Phase, theirs: Phase) -> Effect:
    name = f"median {ours.name}, ns"
    sides = ((left, ours), (right, theirs))
    if not all(is_duration(phase, device_of(record)) for record, phase in sides):
        return Effect(
            name=name,
            left=_shown(left, ours),
            right=_shown(right, theirs),
            not_comparable="a time was taken without waiting for the device",
        )
    mixed = {record.devices.fallback for record in (left, right)}
    why = "one run is mixed: it fell back to the CPU" if "seen" in mixed else ""
    ratio = theirs.median_ns / ours.median_ns if ours.median_ns and not why else None
    return Effect(
        name=name,
        left=str(ours.median_ns),
        right=str(theirs.median_ns),
        ratio=ratio,
        not_comparable=why,
    )


def _shown(record: Record, phase: Phase) -> str:
    if is_duration(phase, device_of(record)):
        return str(phase.median_ns)
    return "not synchronised"
