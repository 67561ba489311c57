"""Whether the memory of a replay went as the reference's did, if that can be said.

Sizes are never compared: two machines hold other libraries. What can be compared is
the course over the rounds of the loop, and only under equal limits of the allocators.
"""

from __future__ import annotations

from collections.abc import Iterator

from reprobundle.format.findings import Finding
from reprobundle.format.record import Growth, Record
from reprobundle.verify.checks import finding
from reprobundle.verify.devices import device_of

GROWING = frozenset({"linear", "with-shapes", "host-only"})
SETTLED = frozenset({"flat", "step"})


def check_memory(reference: Record, replay: Record) -> Iterator[Finding]:
    """Yield the findings of V21 about one replay."""
    for record, side in ((reference, "reference"), (replay, "replay")):
        if not record.memory.samples:
            reason = f"the {side} has no memory log"
            yield finding("memory-limits", "not-checked", reason)
            yield finding("memory-growth", "not-checked", reason)
            return
    limits = _limits(reference, replay)
    yield limits
    if limits.outcome == "warn":
        reason = "the allocators had other limits, so the logs are not comparable"
        yield finding("memory-growth", "not-checked", reason)
    else:
        yield _growth(reference, replay)


def _limits(reference: Record, replay: Record) -> Finding:
    devices = device_of(reference), device_of(replay)
    if devices[0] != devices[1]:
        return finding(
            "memory-limits",
            "not-applicable",
            f"{devices[0]} and {devices[1]} have allocators of their own",
        )
    ours, theirs = reference.memory.limits, replay.memory.limits
    other = [n for n in sorted({*ours, *theirs}) if ours.get(n) != theirs.get(n)]
    if not other:
        return finding("memory-limits", "pass", f"{len(ours)} limits, all equal")
    name = other[0]
    return finding(
        "memory-limits",
        "warn",
        "the allocators of the two runs had other limits: their memory logs are not "
        "comparable, and a run that only ends under another limit is no repair",
        where=name,
        expected=ours.get(name, "not set"),
        got=theirs.get(name, "not set"),
        advice="replay with the limits of the reference",
    )


def _growth(reference: Record, replay: Record) -> Finding:
    before, now = reference.memory.course, replay.memory.course
    if not reference.memory.rounds and not replay.memory.rounds:
        reason = "neither run has a loop whose rounds were seen"
        return finding("memory-growth", "not-applicable", reason)
    for course, record, side in (
        (now, replay, "replay"),
        (before, reference, "reference"),
    ):
        if course not in GROWING | SETTLED:
            reason = f"the course of the {side}'s memory is {course}{_why(record)}"
            return finding("memory-growth", "not-checked", reason)
    if now in SETTLED:
        return finding("memory-growth", "pass", f"{now}, and {before} before")
    if before in GROWING:
        return finding("memory-growth", "pass", f"both grow: {before} and {now}")
    grown = _largest(replay)
    return finding(
        "memory-growth",
        "warn",
        f"the replay's memory grows ({now}), the reference's did not",
        where=grown.counter,
        expected=before,
        got=f"{float(grown.bytes_per_round):,.0f} bytes a round, noise "
        f"{float(grown.noise_bytes_per_round):,.0f}",
        advice="replay it with one input shape, then without what keeps results",
    )


def _why(record: Record) -> str:
    reasons = [one.reason for one in record.memory.growth if one.reason]
    return f": {reasons[0]}" if reasons else ""


def _largest(record: Record) -> Growth:
    """Return the counter that grows most; an empty one if the log names none."""
    growing = [one for one in record.memory.growth if one.kind in GROWING]
    return max(
        growing,
        key=lambda one: float(one.bytes_per_round),
        default=Growth(counter="", kind="unclear"),
    )
