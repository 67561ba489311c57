"""Draw the figures of a report as inline SVG that people can read.

Both runs differ by dash and label as well as by colour; every figure has a title and
a sentence for people who do not see it. Colours come from the page's style sheet, so
the figures follow light, dark and print.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from typing import NamedTuple

from reprobundle.report.text import safe

WIDTH, HEIGHT = 560, 220
LEFT, RIGHT, TOP, BOTTOM = 64, 12, 12, 34
BAR_HEIGHT, BAR_GAP = 13, 14
LABEL_WIDTH = 150
TICKS = 4

Points = Sequence[tuple[float, float]]
Scale = Callable[[float], float]


class Series(NamedTuple):
    """One line of a chart: its label, its class, its points (NaN breaks it)."""

    label: str
    css: str
    points: Points


class Mark(NamedTuple):
    """A named place on the horizontal axis."""

    x: float
    label: str


class Bar(NamedTuple):
    """One pair of bars: a value is None where there is nothing to draw."""

    label: str
    values: tuple[tuple[str, float | None, str], ...]


def line_chart(
    title: str,
    series: Sequence[Series],
    *,
    x_title: str,
    y_title: str = "",
    marks: Iterable[Mark] = (),
) -> str:
    """Return a chart of lines; empty if there is nothing finite to draw.

    Args:
        title: What it shows, read to people who do not see it.
        series: The lines.
        x_title: Name of the horizontal axis with its unit.
        y_title: Name of the vertical one.
        marks: Named places, drawn as thin vertical lines.
    """
    finite = [p for one in series for p in one.points if _is_finite(p)]
    if not finite:
        return ""
    x_axis = _axis([x for x, _ in finite])
    y_axis = _axis([y for _, y in finite])
    x_at = _scale(x_axis, LEFT, WIDTH - RIGHT)
    y_at = _scale(y_axis, HEIGHT - BOTTOM, TOP)
    parts = [
        *_grid(y_axis, y_at),
        *_bottom(x_axis, x_at, x_title),
        *_marked(marks, x_axis, x_at),
        *(_path(one, x_at, y_at) for one in series),
    ]
    if y_title:
        parts.append(_text(LEFT, TOP - 2, y_title, "start"))
    return _figure(title, _spoken(series), WIDTH, HEIGHT, parts)


def bar_chart(title: str, bars: Sequence[Bar], *, logarithmic: bool = False) -> str:
    """Return horizontal bars, grouped by label; empty if there is nothing to draw.

    Args:
        title: What it shows.
        bars: Each with values as (class, value, words beside the bar).
        logarithmic: Whether lengths are orders of magnitude.
    """
    known = [value for bar in bars for _, value, _ in bar.values if value]
    if not known:
        return ""
    length = _bar_length(known, logarithmic=logarithmic)
    parts: list[str] = []
    y = TOP
    for bar in bars:
        middle = y + BAR_HEIGHT * len(bar.values) / 2 + 4
        parts.append(_text(LABEL_WIDTH - 8, middle, bar.label, "end"))
        for css, value, words in bar.values:
            width = length(value) if value else 0.0
            parts.append(
                f'<rect class="{css}" x="{LABEL_WIDTH}" y="{y:.0f}" '
                f'width="{width:.1f}" height="{BAR_HEIGHT - 2}"/>'
            )
            parts.append(_text(LABEL_WIDTH + width + 5, y + 9, words, "start"))
            y += BAR_HEIGHT
        y += BAR_GAP
    spoken = "; ".join(
        f"{bar.label}: {', '.join(words for _, _, words in bar.values)}" for bar in bars
    )
    return _figure(title, spoken, WIDTH, int(y), parts)


def _bar_length(known: Sequence[float], *, logarithmic: bool) -> Scale:
    room = WIDTH - LABEL_WIDTH - 130
    most = max(known)
    if not logarithmic:
        return lambda value: room * value / most
    low = math.floor(math.log10(min(known))) - 0.5
    span = max(math.log10(most) - low, 1.0)
    return lambda value: room * (math.log10(value) - low) / span


def _is_finite(point: tuple[float, float]) -> bool:
    return all(map(math.isfinite, point))


def _axis(values: Sequence[float]) -> tuple[float, ...]:
    """Return round ticks that enclose `values`.

    Source: Heckbert, "Nice numbers for graph labels", Graphics Gems (1990).
    """
    low, high = min(values), max(values)
    if low == high:
        margin = abs(low) * 0.05 or 1.0
        low, high = low - margin, high + margin
    raw = (high - low) / TICKS
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(f * power for f in (1, 2, 5, 10) if f * power >= raw * 0.999)
    first, last = math.floor(low / step), math.ceil(high / step)
    return tuple(step * tick for tick in range(first, last + 1))


def _scale(axis: Sequence[float], start: float, end: float) -> Scale:
    low, high = axis[0], axis[-1]
    return lambda value: start + (end - start) * (value - low) / (high - low)


def _grid(axis: Sequence[float], y_at: Scale) -> Iterator[str]:
    for value in axis:
        y = y_at(value)
        yield (
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" '
            f'y1="{y:.1f}" y2="{y:.1f}"/>'
        )
        yield _text(LEFT - 6, y + 4, f"{value:.4g}", "end")


def _bottom(axis: Sequence[float], x_at: Scale, title: str) -> Iterator[str]:
    for value in axis:
        # The last label would reach beyond the figure and be cut off.
        anchor = "end" if x_at(value) > WIDTH - RIGHT - 20 else "middle"
        yield _text(x_at(value), HEIGHT - BOTTOM + 15, f"{value:.4g}", anchor)
    yield _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 4, title, "middle")


def _marked(
    marks: Iterable[Mark],
    axis: Sequence[float],
    x_at: Scale,
) -> Iterator[str]:
    for mark in marks:
        if axis[0] <= mark.x <= axis[-1]:
            x = x_at(mark.x)
            yield (
                f'<line class="mark" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" '
                f'y2="{HEIGHT - BOTTOM}"><title>{_safe(mark.label)}</title></line>'
            )


def _path(one: Series, x_at: Scale, y_at: Scale) -> str:
    commands: list[str] = []
    pen = "M"
    for point in one.points:
        if not _is_finite(point):
            pen = "M"
            continue
        commands.append(f"{pen}{x_at(point[0]):.1f} {y_at(point[1]):.1f}")
        pen = "L"
    return f'<path class="{one.css}" d="{" ".join(commands)}"/>'


def _spoken(series: Sequence[Series]) -> str:
    said = []
    for one in series:
        values = [y for x, y in one.points if _is_finite((x, y))]
        if values:
            said.append(
                f"{one.label}: {len(values)} points from {min(values):.4g} to "
                f"{max(values):.4g}, the last {values[-1]:.4g}"
            )
    return "; ".join(said)


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{_safe(words)}</text>'


def _safe(words: str) -> str:
    return escape(safe(words))


def _figure(
    title: str, spoken: str, width: int, height: int, parts: Iterable[str]
) -> str:
    label = _safe(f"{title}. {spoken}")
    return (
        f'<svg role="img" aria-label="{label}" viewBox="0 0 {width} {height}">'
        f"{''.join(parts)}</svg>"
    )
