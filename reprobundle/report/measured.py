"""Show how long the phases of a run took, and how its memory went."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from reprobundle.format.record import Fact, Growth, Memory, Phase, Record
from reprobundle.report import text
from reprobundle.report.layout import Column, Row, flow, more, paragraph, table
from reprobundle.report.screen import Line, Screen, Span
from reprobundle.report.view import MemoryPoint
from reprobundle.verify.devices import device_of
from reprobundle.verify.timing import is_duration, unwaited_share

# What one screen holds of each kind; all of it with ``verbose``.
MOST_POINTS = 10
MOST_SHAPES = 4
MOST_CALLS = 4
_MAIN_COUNTERS = (
    "rss",
    "anonymous",
    "footprint",
    "cuda_allocated",
    "cuda_reserved",
    "mps_allocated",
    "mps_driver",
    "system_available",
)
_SAMPLED_IN_PASSING = ("clock", "step ", "call ")


def phase_lines(record: Record, screen: Screen) -> list[Line]:
    """Return the phases; a time without synchronisation is none and is left out."""
    if not record.phases:
        return paragraph(screen, "phases", "none recorded")
    device = device_of(record)
    checked = any(phase.unwaited_median_ns is not None for phase in record.phases)
    columns = (
        Column("phase", least=10),
        Column("entered", align="right"),
        Column("total", align="right"),
        Column("median", align="right"),
        *((Column("unwaited", align="right"),) if checked else ()),
        Column("p95", align="right"),
        Column("longest", align="right"),
        Column("warm-up", align="right"),
        Column("synchronised"),
    )
    rows = [_phase(phase, device, checked=checked) for phase in record.phases]
    return table(screen, columns, rows)


def _phase(phase: Phase, device: str, *, checked: bool) -> Row:
    measured = is_duration(phase, device)
    figures = (
        _duration(phase.total_ns),
        _duration(phase.median_ns),
        *((_unwaited(phase),) if checked else ()),
        _duration(phase.p95_ns),
        _duration(phase.longest_ns),
    )
    return (
        Span(phase.name),
        Span(text.count(phase.count)),
        *(Span(figure if measured else text.NOTHING) for figure in figures),
        Span(_warmup(phase) if measured else text.NOTHING),
        _synchronized(phase, measured=measured),
    )


def _duration(elapsed_ns: int | None) -> str:
    return text.NOTHING if elapsed_ns is None else text.duration(elapsed_ns)


def _unwaited(phase: Phase) -> str:
    """Return the share of the median that a clock without the last wait would see."""
    share = unwaited_share(phase)
    return text.NOTHING if share is None else f"{100 * share:.1f} %"


def _warmup(phase: Phase) -> str:
    if phase.warmup_count is None or phase.warmup_ns is None:
        return text.NOTHING
    if not phase.warmup_count:
        return "none"
    return f"{text.count(phase.warmup_count)}, {text.duration(phase.warmup_ns)}"


def _synchronized(phase: Phase, *, measured: bool) -> Span:
    if not measured:
        return Span("no: durations unknown", "warn")
    times = text.plural(phase.synchronizations, "time")
    known = phase.synchronized
    return Span(known if known == "cpu" else f"{known}, {times}")


def memory_lines(
    memory: Memory, points: Sequence[MemoryPoint], screen: Screen, *, verbose: bool
) -> list[Line]:
    """Return the peaks, how each counter went, and the values at named points."""
    samples = text.plural(memory.samples, "sample")
    if memory.taken > memory.samples:
        samples += f" of {text.count(memory.taken)}"
    peaks: list[Line] = [
        (Span(f"peak resident {_bytes(memory.peak_rss_bytes)}"),),
        (Span(f"peak on device {_bytes(memory.peak_device_bytes)}"),),
        (Span(samples),),
    ]
    return [
        *flow(screen, "memory", peaks),
        *_growth_lines(memory, screen),
        *_circumstances(memory, screen, verbose=verbose),
        *_point_lines(points, screen, verbose=verbose),
    ]


def _growth_lines(memory: Memory, screen: Screen) -> list[Line]:
    lines: list[Line] = []
    for at, growth in enumerate(memory.growth):
        label = "" if at else "memory course"
        words = _growth(growth, memory.rounds)
        grown = growth.kind in ("linear", "with-shapes")
        lines += paragraph(screen, label, words, style="warn" if grown else "")
    return lines


def _growth(growth: Growth, rounds: str) -> str:
    words = f"{growth.counter} {growth.kind}"
    if growth.kind == "not-classified":
        return f"{words}: {growth.reason}"
    words += (
        f": {_signed(float(growth.bytes_per_round))} a {rounds}, noise up to "
        f"{text.size(round(float(growth.noise_bytes_per_round)))}, {rounds}s "
        f"{text.count(growth.first_round)} to {text.count(growth.last_round)}"
    )
    return f"{words}; {growth.reason}" if growth.reason else words


def _signed(size_bytes: float) -> str:
    sign = "-" if size_bytes < 0 else "+"
    return sign + text.size(round(abs(size_bytes)))


def _circumstances(memory: Memory, screen: Screen, *, verbose: bool) -> list[Line]:
    """Return what one has to know to read the figures."""
    limits = [f"{name}={value}" for name, value in sorted(memory.limits.items())]
    calls = [
        f"{call.function}({call.value}) at {call.where or 'an unknown place'}, "
        f"{text.plural(call.calls, 'time')} from step {text.count(call.first_step)} on"
        for call in memory.calls
    ]
    shapes = [f"{shape.shape} {text.count(shape.count)}x" for shape in memory.shapes]
    left_out = memory.distinct_shapes - MOST_SHAPES
    if left_out > 0 and not verbose:
        shapes = [*shapes[:MOST_SHAPES], f"and {text.count(left_out)} more"]
    return [
        *_listed(screen, "memory limits", limits),
        *_listed(screen, "allocator", calls if verbose else calls[:MOST_CALLS]),
        *_listed(screen, "input shapes", shapes),
    ]


def _listed(screen: Screen, label: str, words: Iterable[str]) -> list[Line]:
    items: list[Line] = [(Span(word),) for word in words]
    return flow(screen, label, items) if items else []


def _point_lines(
    points: Sequence[MemoryPoint], screen: Screen, *, verbose: bool
) -> list[Line]:
    shown = points if verbose else list(_telling(points))[:MOST_POINTS]
    if not shown:
        return []
    counters = sorted({counter for point in shown for counter in point.peak_bytes})
    if not verbose:
        counters = [counter for counter in _MAIN_COUNTERS if counter in counters]
    columns = (
        Column("memory at", least=10),
        Column("first after", align="right"),
        Column("samples", align="right"),
        *(Column(counter, align="right") for counter in counters),
    )
    rows: list[Row] = [
        (
            Span(point.point),
            Span(text.duration(max(point.first_ns, 0))),
            Span(text.count(point.samples)),
            *(Span(_peak(point, counter)) for counter in counters),
        )
        for point in shown
    ]
    return [
        *table(screen, columns, rows),
        *more(screen, len(points) - len(shown), "point"),
    ]


def _telling(points: Sequence[MemoryPoint]) -> Iterator[MemoryPoint]:
    """Yield the points of a name of their own, and the first and the last round."""
    passing = [p for p in points if p.point.startswith(_SAMPLED_IN_PASSING)]
    rounds = [p for p in passing if p.point != "clock"]
    kept = {id(point) for point in (*rounds[:1], *rounds[-1:])}
    left_out = {id(point) for point in passing} - kept
    yield from (point for point in points if id(point) not in left_out)


def _peak(point: MemoryPoint, counter: str) -> str:
    known = point.peak_bytes.get(counter)
    return text.NOTHING if known is None else text.size(max(known, 0))


def _bytes(fact: Fact) -> str:
    if isinstance(fact.value, int):
        return text.size(max(fact.value, 0))
    return f"unknown ({fact.unknown})" if fact.unknown else str(fact.value)
