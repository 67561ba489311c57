import numpy as np
import pytest

from reprobundle.format.policy import Tolerance
from reprobundle.verify import drift
from reprobundle.verify.drift import Series, growth

RULE = Tolerance(rtol=1e-3, atol=0.0)


def segments(reference, replay, rule=RULE):
    series = Series(rule, 1.0)
    for start in range(0, len(reference), 3):
        part = slice(start, start + 3)
        series.add(np.asarray(reference[part]), np.asarray(replay[part]))
    return series.segments()


def test_stretches_double_and_cover_every_row():
    found = segments(np.ones(11), np.ones(11))
    assert [(one.first, one.rows) for one in found] == [
        (0, 1),
        (1, 1),
        (2, 2),
        (4, 4),
        (8, 3),
    ]


def test_a_difference_that_grows_with_the_steps_is_told_from_one_that_stays():
    steps = np.arange(32)
    grows = segments(np.ones(32), 1 + 1e-7 * 1.5**steps)
    stays = segments(np.ones(32), np.full(32, 1 + 1e-4))
    assert growth(grows) == pytest.approx(1.5**31, rel=1e-3)
    assert growth(stays) == 0
    assert [one.outside for one in grows][:4] == [0, 0, 0, 0]
    assert grows[-1].outside > 0


def test_nan_on_one_side_is_outside_and_on_both_sides_is_not():
    both = segments([1.0, np.nan, 1, 1], [1.0, np.nan, 1, 1])
    one = segments([1.0, 1.0, 1, 1], [1.0, np.nan, 1, 1])
    assert sum(part.outside for part in both) == 0
    assert sum(part.outside for part in one) == 1


def test_a_series_that_is_too_long_has_no_stretches(monkeypatch):
    monkeypatch.setattr(drift, "MOST_ROWS", 8)
    assert segments(np.ones(9), np.ones(9)) == ()
    assert segments(np.ones(8), np.ones(8)) != ()
