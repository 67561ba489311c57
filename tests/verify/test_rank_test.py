"""The rank-sum test against published figures and against its own promise."""

from __future__ import annotations

import numpy as np
import pytest

from reprobundle.verify.rank_test import rank_test


@pytest.mark.parametrize(
    ("left", "right", "p"),
    [
        # All subsets counted by hand: 2 of 20, 2 of 70, 4 of 252.
        ([1, 2, 3], [4, 5, 6], 0.1),
        ([1, 2, 3, 4], [5, 6, 7, 8], 2 / 70),
        ([1, 2, 3, 4, 6], [5, 7, 8, 9, 10], 4 / 252),
        # Hollander and Wolfe, example 4.1 (tritiated water): p of one side is 0.1272.
        (
            [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46],
            [1.15, 0.88, 0.90, 0.74, 1.21],
            2 * 0.1272,
        ),
    ],
)
def test_small_samples_have_the_exact_probability(left, right, p):
    assert rank_test(left, right).p == pytest.approx(p, abs=2e-4)
    assert rank_test(right, left).p == pytest.approx(p, abs=2e-4)


def test_ties_share_their_ranks():
    # Of the 6 pairs that can be drawn from 1, 2, 2, 3 two are as uneven as 1 and 2.
    tested = rank_test([1, 2], [2, 3])
    assert tested.p == pytest.approx(4 / 6)
    assert rank_test([1, 1], [1, 1]).p == 1.0


def test_the_smallest_probability_of_three_and_three_is_a_tenth():
    assert rank_test([1, 5, 2], [3, 4, 6]).smallest == pytest.approx(0.1)


def test_large_samples_agree_with_the_exact_ones_at_the_border():
    random = np.random.default_rng(0)
    left, right = random.normal(size=25), random.normal(0.6, size=25)
    exact = rank_test(list(left), list(right)).p
    more = rank_test([*left, 9.0], [*right, 9.5]).p
    assert exact == pytest.approx(more, abs=0.02)


@pytest.mark.parametrize("size", [4, 5, 8])
def test_runs_of_one_distribution_are_rejected_no_oftener_than_the_level(size):
    random = np.random.default_rng(size)
    draws = random.normal(size=(600, 2, size))
    rejected = np.mean([rank_test(*map(list, one)).p <= 0.05 for one in draws])
    # Four standard deviations above the level; the test can do no better than 2 of 70.
    assert 0.005 < rejected < 0.05 + 4 * (0.05 * 0.95 / 600) ** 0.5


def test_a_shifted_mean_is_nearly_always_rejected():
    random = np.random.default_rng(1)
    draws = random.normal(size=(200, 2, 6)) + np.array([0.0, 4.0])[:, None]
    assert np.mean([rank_test(*map(list, one)).p <= 0.05 for one in draws]) > 0.97
