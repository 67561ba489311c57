"""Say how a memory counter went over the rounds of a loop: flat, a step, a leak.

The method, in the order in which it decides:

1. The first tenth of the rounds, and at least three, are warm-up: allocators fill
   their pools, the optimizer makes its state.
2. The rest is cut into ten stretches of equal length; the median of each stretch
   takes out what comes and goes within it.
3. The slopes from median to median are nine figures. Their median is the slope (a
   Theil-Sen estimate over neighbours; Sen, JASA 63, 1968). How they scatter around it
   (1.4826 times the median absolute deviation, Rousseeuw and Croux, JASA 88, 1993) is
   the noise of this very run on this very machine; the standard error of a median of n
   is 1.2533 times that by the root of n. The *band* is three standard errors, and at
   least 1 KiB a round: the recorder's own lists grow too.
4. ``linear``: the slope is outside the band, nearly all stretches went up, and most of
   them by half of the slope or more. ``step``: one rise between two stretches holds
   most of what was gained. ``flat``: neither, and the whole gain is inside the band or
   below 1 MiB. Anything else is ``unclear``.
5. Growth counts as ``with-shapes`` if it happened where a new input shape had come
   since the sample before or the one before that, and elsewhere stayed inside the band
   or was less than half of the slope. The reason states both figures.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from reprobundle.format.record import Growth, GrowthKind

FEWEST_SAMPLES = 12
_WARMUP_SHARE = 0.1
_WARMUP_ROUNDS = 3
_STRETCHES = 10
_BAND_ERRORS = 3
# Makes the median absolute deviation of a normal distribution its standard deviation.
_DEVIATION = 1.4826
_ERROR_OF_MEDIAN = 1.2533
SMALLEST_BAND_BYTES = 1024.0
SMALLEST_STEP_BYTES = 1 << 20
# Of nine slopes.
_NEARLY_ALL = 0.75
_MOST = 0.6
_ONE_RISE = 0.8
# A share of the slope that may come without a new shape: freed blocks are found again
# only some rounds later.
_LITTLE = 0.5
_FEWEST_NEW_SHAPES = 3


class Point(NamedTuple):
    """One sample: the round, the counter's bytes, different input shapes so far."""

    round: int
    bytes: int
    shapes: int = 0


def classify(
    counter: str, points: Sequence[Point], *, emptied_after: int | None = None
) -> Growth:
    """Return how `counter` went.

    Args:
        counter: Its name.
        points: Its samples in the order of their rounds.
        emptied_after: Round after which the script first emptied the allocator's
            cache: from there on a low value proves nothing.
    """
    steady = _without_warmup(points)
    if len(steady) < FEWEST_SAMPLES:
        reason = (
            f"{len(steady)} samples after the warm-up, {FEWEST_SAMPLES} are the fewest "
            "that tell a trend from noise"
        )
        return Growth(counter=counter, kind="not-classified", reason=reason)
    trend = _trend(steady)
    kind, reason = _kind(steady, trend)
    # What grows although the cache was emptied grows; what does not is no proof.
    if emptied_after is not None and kind != "linear":
        kind = "not-classified"
        reason = (
            f"the cache was emptied after round {emptied_after}: no value after it "
            "proves anything"
        )
    return Growth(
        counter=counter,
        kind=kind,
        bytes_per_round=round(trend.slope, 1),
        noise_bytes_per_round=round(trend.band, 1),
        first_round=steady[0].round,
        last_round=steady[-1].round,
        reason=reason,
    )


def _without_warmup(points: Sequence[Point]) -> list[Point]:
    if not points:
        return []
    first, last = points[0].round, points[-1].round
    warmup = max(_WARMUP_ROUNDS, round(_WARMUP_SHARE * (last - first)))
    return [point for point in points if point.round - first >= warmup]


class _Trend(NamedTuple):
    """Slopes between the medians of neighbouring stretches, in bytes a round."""

    slopes: tuple[float, ...]
    gains: tuple[float, ...]
    slope: float
    band: float


def _trend(points: Sequence[Point]) -> _Trend:
    middles = _stretches(points)
    pairs = list(pairwise(middles))
    gains = tuple(after[1] - before[1] for before, after in pairs)
    slopes = tuple(
        (after[1] - before[1]) / (after[0] - before[0]) for before, after in pairs
    )
    slope = statistics.median(slopes)
    scatter = statistics.median(abs(one - slope) for one in slopes)
    error = _ERROR_OF_MEDIAN * _DEVIATION * scatter / math.sqrt(len(slopes))
    band = max(_BAND_ERRORS * error, SMALLEST_BAND_BYTES)
    return _Trend(slopes, gains, slope, band)


def _stretches(points: Sequence[Point]) -> list[tuple[float, float]]:
    """Return the middle round and the median bytes of each stretch with samples."""
    first, last = points[0].round, points[-1].round
    length = (last - first + 1) / _STRETCHES
    held: list[list[Point]] = [[] for _ in range(_STRETCHES)]
    for point in points:
        held[int((point.round - first) / length)].append(point)
    return [
        (
            statistics.mean(point.round for point in stretch),
            statistics.median(point.bytes for point in stretch),
        )
        for stretch in held
        if stretch
    ]


def _kind(points: Sequence[Point], trend: _Trend) -> tuple[GrowthKind, str]:
    if _is_linear(trend):
        return _by_shapes(points, trend)
    rise = sum(gain for gain in trend.gains if gain > 0)
    gain = sum(trend.gains)
    rounds = points[-1].round - points[0].round
    if gain <= max(trend.band * rounds / len(trend.gains), SMALLEST_STEP_BYTES):
        return "flat", ""
    if max(trend.gains) >= _ONE_RISE * rise:
        at = trend.gains.index(max(trend.gains)) + 1
        return "step", f"up by {round(max(trend.gains))} bytes at about {at}0 % of it"
    if _rises_at_new_shapes(points, trend):
        return _by_shapes(points, trend)
    return "unclear", f"up by {round(gain)} bytes, not evenly and not at once"


def _is_linear(trend: _Trend) -> bool:
    if trend.slope <= trend.band:
        return False
    rising = sum(slope > 0 for slope in trend.slopes)
    as_much = sum(slope >= trend.slope / 2 for slope in trend.slopes)
    many = len(trend.slopes)
    return rising >= _NEARLY_ALL * many and as_much >= _MOST * many


def _by_shapes(points: Sequence[Point], trend: _Trend) -> tuple[GrowthKind, str]:
    """Tell growth with new input shapes from growth without."""
    new: list[tuple[int, int]] = []
    old: list[tuple[int, int]] = []
    was_new = False
    for before, after in pairwise(points):
        rounds = after.round - before.round
        gained = (after.bytes - before.bytes, rounds)
        is_new = after.shapes > before.shapes
        # What a script keeps after the sample of a round shows in the next one.
        (new if is_new or was_new else old).append(gained)
        was_new = is_new
    if not new:
        return "linear", ""
    if not old:
        reason = (
            "every sample came with a new input shape: only a run with one shape tells "
            "growth with shapes from a leak"
        )
        return "unclear", reason
    known = _per_round(old)
    if known <= max(trend.band, trend.slope * _LITTLE):
        reason = (
            f"{round(_per_round(new))} bytes a round where a new input shape came, "
            f"{round(known)} elsewhere"
        )
        return "with-shapes", reason
    return "linear", f"{round(known)} bytes a round with known input shapes too"


def _rises_at_new_shapes(points: Sequence[Point], trend: _Trend) -> bool:
    """Whether a growth that is not even came, beyond noise, with several new shapes.

    Outside a trend the rest is always inside the band, so that alone says nothing: a
    loaded machine's noise beside the one shape of a last batch looked like this.
    """
    new = [
        (after.bytes - before.bytes, after.round - before.round)
        for before, after in pairwise(points)
        if after.shapes > before.shapes
    ]
    several = len(new) >= _FEWEST_NEW_SHAPES
    if not several or _by_shapes(points, trend)[0] != "with-shapes":
        return False
    return _per_round(new) > trend.band


def _per_round(gained: Sequence[tuple[int, int]]) -> float:
    return sum(size for size, _ in gained) / sum(rounds for _, rounds in gained)
