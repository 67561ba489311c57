"""Which figures a report page has, and what they draw."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from reprobundle.format.findings import ArrayComparison, OutputComparison
from reprobundle.format.record import MemorySample, Phase, as_float
from reprobundle.report import text
from reprobundle.report.charts import Bar, Mark, Series, bar_chart, line_chart
from reprobundle.report.page import ReplayPage, Side
from reprobundle.verify.devices import device_of
from reprobundle.verify.timing import is_duration, unwaited_share

MOST_MARKS = 12
# What stands beside a bar without being cut off.
LONGEST_LABEL = 20
MOST_ERRORS = 10
MOST_PHASES = 10
MIB = 1 << 20
# The histogram of the comparison has 33 buckets, doubling (spec: ArrayComparison.ulp).
LAST_BUCKET = 32
# Counters worth a figure, the most telling one first.
_COUNTERS = (
    "mps_driver_allocated",
    "mps_current_allocated",
    "cuda_reserved",
    "cuda_allocated",
    "footprint",
    "rss",
)


class Figure(NamedTuple):
    """A figure with its heading and its caption."""

    heading: str
    svg: str
    caption: str


def figures(page: ReplayPage) -> list[Figure]:
    """Return the figures about one replay that have something to show."""
    found = [
        *_curves(page),
        *_errors(page),
        *_distances(page),
        *_phases(page),
        *_memory(page),
    ]
    return [figure for figure in found if figure.svg]


def _curves(page: ReplayPage) -> Iterator[Figure]:
    for curve in page.curves:
        lines = [
            Series(
                "reference",
                "line reference",
                tuple(zip(curve.x, curve.reference, strict=True)),
            )
        ]
        if curve.replay:
            points = tuple(zip(curve.x, curve.replay, strict=True))
            lines.append(Series("replay", "line replay", points))
        title = f"{curve.column} in {curve.output}"
        caption = f"{curve.column} by {curve.x_title}"
        if not curve.replay:
            caption += "; the replay has no such column"
        yield Figure(title, line_chart(title, lines, x_title=curve.x_title), caption)


def _errors(page: ReplayPage) -> Iterator[Figure]:
    bars = []
    for output in page.judgement.outputs:
        for part in output.parts:
            if part.max_abs is None or part.equal or part.rtol is None:
                continue
            bars.append(_error_bar(output, part))
    title = "absolute error of the replay"
    caption = (
        "median, 99th percentile and largest |replay - reference|, logarithmic; "
        "outputs without any difference are left out"
    )
    hidden = len(bars) - MOST_ERRORS
    if hidden > 0:
        caption += f"; {text.plural(hidden, 'more array')} not drawn"
    svg = bar_chart(title, bars[:MOST_ERRORS], logarithmic=True)
    yield Figure("Error distribution", svg, caption)


def _error_bar(output: OutputComparison, part: ArrayComparison) -> Bar:
    name = f"{output.name} {part.name}".strip()
    quantiles = (
        ("p50", part.p50_abs),
        ("p99", part.p99_abs),
        ("max", part.max_abs),
    )
    return Bar(
        text.shorten(name, LONGEST_LABEL),
        tuple(
            (
                f"bar {word}",
                as_float(value) if value is not None and as_float(value) > 0 else None,
                f"{word} {text.number(value)}",
            )
            for word, value in quantiles
        ),
    )


def _distances(page: ReplayPage) -> Iterator[Figure]:
    """Yield the histogram of units in the last place of the array that moved most."""
    moved = [
        (output, part)
        for output in page.judgement.outputs
        for part in output.parts
        if part.ulp and not part.equal
    ]
    if not moved:
        return
    output, part = max(moved, key=lambda one: _far(one[1].ulp))
    name = f"{output.name} {part.name}".strip()
    compared = sum(part.ulp)
    first = next(number for number, count in enumerate(part.ulp) if count)
    bars = tuple(
        Bar(
            _bucket(number),
            (("bar replay", float(count), f"{count:,} ({count / compared:.3g})"),),
        )
        for number, count in enumerate(part.ulp)
        if number >= first
    )
    title = f"distance in units in the last place, {name}"
    caption = (
        f"elements of {name} ({part.dtype}) by how many representable numbers lie "
        "between both sides, and their share; logarithmic"
    )
    hidden = len(moved) - 1
    if hidden:
        caption += f"; {text.plural(hidden, 'other array')} differ less"
    yield Figure("Error histogram", bar_chart(title, bars, logarithmic=True), caption)


def _far(counts: Sequence[int]) -> float:
    """Return the mean number of the bucket: roughly log2 of the distance."""
    return sum(number * count for number, count in enumerate(counts)) / sum(counts)


def _bucket(number: int) -> str:
    """Return how far apart the pairs of one bucket are; the last one is open."""
    if number < 2:
        return str(number)
    first = 1 << (number - 1)
    return f"{first:,} up" if number == LAST_BUCKET else f"{first:,}-{2 * first - 1:,}"


def _phases(page: ReplayPage) -> Iterator[Figure]:
    sides = [
        (css, side)
        for css, side in (("reference", page.reference), ("replay", page.replay))
        if side is not None
    ]
    names = dict.fromkeys(
        phase.name for _, side in sides for phase in side.record.phases
    )
    bars = [
        Bar(name, tuple(_phase_value(css, side, name) for css, side in sides))
        for name in list(names)[:MOST_PHASES]
    ]
    caption = (
        "median time of one entry, between two synchronised clock readings, "
        "logarithmic; a phase without synchronisation has no duration and no bar; "
        "unwaited is the share that a clock without the last wait sees"
    )
    svg = bar_chart("median time by phase", bars, logarithmic=True)
    yield Figure("Phases", svg, caption)


def _phase_value(css: str, side: Side, name: str) -> tuple[str, float | None, str]:
    phase = next((one for one in side.record.phases if one.name == name), None)
    if phase is None:
        return f"bar {css}", None, f"{css}: none"
    if not _has_duration(phase, side):
        return f"bar {css}", None, f"{css}: not synchronised"
    words = f"{css} {text.duration(phase.median_ns)} × {text.count(phase.count)}"
    share = unwaited_share(phase)
    if share is not None:
        words += f", {100 * share:.1f} % unwaited"
    return f"bar {css}", float(phase.median_ns), words


def _has_duration(phase: Phase, side: Side) -> bool:
    return is_duration(phase, device_of(side.record))


def _memory(page: ReplayPage) -> Iterator[Figure]:
    sides = [
        (label, side.memory)
        for label, side in (("reference", page.reference), ("replay", page.replay))
        if side is not None and side.memory
    ]
    for counter in _COUNTERS:
        lines = [
            Series(label, f"line {label}", _samples(samples, counter))
            for label, samples in sides
        ]
        lines = [line for line in lines if len(line.points) > 1]
        if not lines:
            continue
        marks = list(_points(sides[-1][1]))
        title = f"memory: {counter}"
        named = ", ".join(dict.fromkeys(mark.label for mark in marks))
        yield Figure(
            title,
            line_chart(title, lines, x_title="seconds", y_title="MiB", marks=marks),
            f"named points of the {sides[-1][0]}: {named or 'none'}",
        )


def _samples(
    samples: tuple[MemorySample, ...], counter: str
) -> tuple[tuple[float, float], ...]:
    main = samples[0].pid
    return tuple(
        (sample.t_ns / 1e9, sample.bytes[counter] / MIB)
        for sample in samples
        if sample.pid == main and counter in sample.bytes
    )


def _points(samples: tuple[MemorySample, ...]) -> Iterator[Mark]:
    seen: set[str] = set()
    for sample in samples:
        if sample.point in ("", "clock") or sample.point in seen:
            continue
        seen.add(sample.point)
        if len(seen) > MOST_MARKS:
            return
        yield Mark(sample.t_ns / 1e9, sample.point)
