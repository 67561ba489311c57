"""Whether the memory of a replay went as the reference's did, if that can be said.

Sizes are never compared: two machines hold other libraries. What can be compared is
the course over the rounds of the loop, and only under equal limits of the allocators.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from reprobundle.errors import MissingMemberError
from reprobundle.format.canonical import decode
from reprobundle.format.findings import Finding
from reprobundle.format.record import Growth, Memory, MemorySeries, Record
from reprobundle.outputs.memory_course import course, growth_of
from reprobundle.verify.checks import finding
from reprobundle.verify.content import Content
from reprobundle.verify.devices import device_of

GROWING = frozenset({"linear", "with-shapes", "host-only"})
SETTLED = frozenset({"flat", "step"})


def check_memory(
    reference: Record, replay: Record, sides: tuple[Content, Content]
) -> Iterator[Finding]:
    """Yield the findings of V21 about one replay.

    Args:
        reference: The sealed run.
        replay: The run that is judged.
        sides: Where their content lies.
    """
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
        told = _as_sampled(reference, sides[0]), _as_sampled(replay, sides[1])
        yield _growth(*told, stated=replay.memory.course)


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


def _as_sampled(record: Record, content: Content) -> Memory:
    """Return the memory log of a run, growing if its series does.

    A record states how its memory went, and the series beside it shows it. Only that
    something grows is taken from the series: the rest of it is the writer's to say, who
    had every sample.
    """
    log = record.memory
    if log.course not in SETTLED or log.series not in content.names:
        return log
    try:
        with content.open_own(log.series) as stream:
            data = stream.read()
    except MissingMemberError:
        # Of a part of a bundle the series may lie in another one.
        return log
    series = decode(data, MemorySeries, where=log.series, rule="R-7.2")
    growth = growth_of(series.samples, log.calls)
    seen = course(growth)
    if seen not in GROWING:
        return log
    return msgspec.structs.replace(log, course=seen, growth=growth)


def _growth(reference: Memory, replay: Memory, *, stated: str) -> Finding:
    before, now = reference.course, replay.course
    if not reference.rounds and not replay.rounds:
        reason = "neither run has a loop whose rounds were seen"
        return finding("memory-growth", "not-applicable", reason)
    for kind, log, side in (
        (now, replay, "replay"),
        (before, reference, "reference"),
    ):
        if kind not in GROWING | SETTLED:
            reason = f"the course of the {side}'s memory is {kind}{_why(log)}"
            return finding("memory-growth", "not-checked", reason)
    if now in SETTLED:
        return finding("memory-growth", "pass", f"{now}, and {before} before")
    if before in GROWING:
        return finding("memory-growth", "pass", f"both grow: {before} and {now}")
    grown = _largest(replay)
    but = "" if now == stated else f"; its record says {stated}, its series does not"
    return finding(
        "memory-growth",
        "warn",
        f"the replay's memory grows ({now}), the reference's did not{but}",
        where=grown.counter,
        expected=before,
        got=f"{float(grown.bytes_per_round):,.0f} bytes a round, noise "
        f"{float(grown.noise_bytes_per_round):,.0f}",
        advice="replay it with one input shape, then without what keeps results",
    )


def _why(log: Memory) -> str:
    reasons = [one.reason for one in log.growth if one.reason]
    return f": {reasons[0]}" if reasons else ""


def _largest(log: Memory) -> Growth:
    """Return the counter that grows most; an empty one if the log names none."""
    growing = [one for one in log.growth if one.kind in GROWING]
    return max(
        growing,
        key=lambda one: float(one.bytes_per_round),
        default=Growth(counter="", kind="unclear"),
    )
