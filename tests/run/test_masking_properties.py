"""Masks, on any text: nothing is raised, and none takes the square of its length."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reprobundle.run.masking import mask

PIECES = (
    *(
        "0x7f",
        "/home/a/b",
        "tmpabcd1234",
        "2025-01-01T00:00:00Z",
        "12:30:01",
        "3.5 GiB",
    ),
    *("cuda:1", "pid 7, 8", "localhost:80", "1.5 ms", "{project}/a.py", "~/x/y", ": "),
    *('File "x.py", line 3', "\x1b[31m", "aten/src/x.cpp:12", "\n", "#", "[::1]:5"),
)
LONG = (
    *("a", "1", "/", "a/", "~/", "1.", "a.cpp:", "[", "[a:", 'File "', "1:", "\x1b["),
    *("-", "pid ", "1, ", "0x", "{run}/", "2025-01-01", "cuda:", "aaaaaaaa-", " 1"),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=8).map("  ".join))
def test_what_is_masked_once_stays_as_it_is(text):
    once = mask(text)
    assert mask(once) == once


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=5)).map("".join))
def test_no_text_raises_and_no_colour_is_left(text):
    assert "\x1b[31m" not in mask(text)


@given(st.integers(0, 9), st.integers(0, 2**40), st.integers(0, 2**40))
def test_what_the_machine_puts_in_does_not_count(device, address, taken):
    message = "device cuda:{} at 0x{:x} failed after {} ms, shape [{}, 3]"
    first = mask(message.format(device, address, taken, 7))
    assert first == mask(message.format(9 - device, address + 1, taken + 1, 7))
    assert first != mask(message.format(device, address, taken, 8))


@pytest.mark.parametrize("piece", LONG)
def test_a_long_text_is_masked_in_time_of_its_length(piece):
    def seconds(count: int) -> float:
        start = time.process_time()
        mask(piece * count)
        return time.process_time() - start

    seconds(10)
    short = max(seconds(5_000), 0.002)
    # Sixteen times as long: a square would take 256 times.
    assert seconds(80_000) < 100 * short
