"""Numbers are found in what was printed, and no pattern takes for ever."""

from __future__ import annotations

import pytest

from reprobundle.run.printed import find_all

LINES = "epoch 1 loss 0.5\nepoch 2 loss 0.25\nnan é\n"


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        (r"loss ([0-9.]+)", ["0.5", "0.25"]),
        (r"^epoch \d", ["epoch 1", "epoch 2"]),
        (r"nan (.)$", ["é"]),
        (r"epoch (?:(2)|1)", ["2"]),
        (r"accuracy (\d+)", []),
    ],
)
def test_every_match_is_found_in_order(pattern, found):
    assert find_all(pattern, LINES) == found


def test_a_pattern_that_takes_for_ever_finds_nothing():
    assert find_all(r"(a+)+$", "a" * 40 + "b", seconds=0.5) == []
