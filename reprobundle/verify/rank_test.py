"""Whether two small samples come from one distribution: the rank-sum test.

H. B. Mann and D. R. Whitney, "On a test of whether one of two random variables is
stochastically larger than the other", Annals of Mathematical Statistics 18 (1947),
50-60; with midranks for ties and the conditional permutation distribution as in
M. Hollander and D. A. Wolfe, "Nonparametric Statistical Methods", section 4.1. It
assumes independent runs and no shape of their distribution.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

# Beyond this many values the normal approximation has an error far below any level.
MOST_EXACT = 50


class RankTest(NamedTuple):
    """What the two-sided test says.

    Attributes:
        p: Probability, for equal distributions, of ranks at least as uneven as these.
        smallest: The smallest `p` that samples of these sizes and ties can have: a
            test whose level is below it cannot fail.
    """

    p: float
    smallest: float


def rank_test(left: Sequence[float], right: Sequence[float]) -> RankTest:
    """Return the test of two samples of finite numbers, neither of them empty."""
    ranks = _doubled_midranks([*left, *right])
    observed = sum(ranks[: len(left)])
    if len(ranks) > MOST_EXACT:
        return _approximate(ranks, len(left), observed)
    counts = _counts(ranks, len(left))
    total = sum(counts.values())
    # The mean rank times the size, doubled: (n + m + 1) n.
    middle = (len(ranks) + 1) * len(left)
    widest = max(abs(value - middle) for value in counts)
    return RankTest(
        _beyond(counts, middle, abs(observed - middle)) / total,
        _beyond(counts, middle, widest) / total,
    )


def _doubled_midranks(values: Sequence[float]) -> list[int]:
    """Return twice the rank of each value; equal values share the middle of theirs."""
    below = {value: sum(other < value for other in values) for value in set(values)}
    equal = {value: values.count(value) for value in set(values)}
    return [2 * below[value] + equal[value] + 1 for value in values]


def _counts(ranks: Sequence[int], size: int) -> dict[int, int]:
    """Return rank sum → number of subsets of `size` ranks that have it."""
    by_size: list[dict[int, int]] = [{0: 1}, *({} for _ in range(size))]
    for rank in ranks:
        for taken in range(size, 0, -1):
            for value, count in by_size[taken - 1].items():
                sums = by_size[taken]
                sums[value + rank] = sums.get(value + rank, 0) + count
    return by_size[size]


def _beyond(counts: dict[int, int], middle: int, distance: int) -> int:
    return sum(n for value, n in counts.items() if abs(value - middle) >= distance)


def _approximate(ranks: Sequence[int], size: int, observed: int) -> RankTest:
    """Return the normal approximation; the variance is that of the ranks drawn."""
    total = len(ranks)
    mean = sum(ranks) / total
    spread = sum((rank - mean) ** 2 for rank in ranks) / (total - 1)
    deviation = math.sqrt(spread * size * (total - size) / total)
    if not deviation:
        return RankTest(1.0, 1.0)
    distance = abs(observed - size * mean)
    return RankTest(math.erfc(distance / deviation / math.sqrt(2)), 0.0)
