import io

import pytest

from reprobundle.format.policy import Tolerance
from reprobundle.verify import compare_text as module
from reprobundle.verify.compare_text import compare_bytes, compare_text


def text(reference, replay, tolerance=None):
    return compare_text(io.BytesIO(reference), io.BytesIO(replay), tolerance=tolerance)


def test_names_the_first_line_that_differs():
    result = text(b"a\nb\nc\n", b"a\nB\nC\n")
    assert (result.outside, result.elements, result.worst_index) == (2, 3, (1,))
    assert (result.expected, result.got) == ("b", "B")
    assert result.problem == "2 of 3 lines differ"


def test_missing_lines_differ():
    result = text(b"a\nb\n", b"a\n")
    assert (result.outside, result.got) == (1, "(no such line)")


def test_line_endings_and_spaces_count():
    assert text(b"a\n", b"a\r\n").outside == 1
    assert text(b"a\n", b"a \n").outside == 1


def test_bytes_that_are_no_text_differ_and_are_shown_printable():
    result = text(b"\xff\n", b"\\xff\n")
    assert result.outside == 1
    assert text(b"\x1b[1m\n", b"x\n").expected == "\\x1b[1m"


def test_numbers_in_a_log_are_exact_unless_a_rule_gives_a_tolerance():
    assert text(b"loss 0.5000\n", b"loss 0.5001\n").outside == 1
    rule = Tolerance(rtol=1e-3, atol=0.0)
    near = text(b"loss 0.5000\n", b"loss 0.5001\n", rule)
    assert (near.outside, near.equal, near.problem) == (0, False, "")
    assert text(b"loss 0.5\n", b"loss 0.6\n", rule).outside == 1


def test_text_between_numbers_stays_exact_under_a_tolerance():
    rule = Tolerance(rtol=1.0, atol=1e9)
    assert text(b"loss 0.5\n", b"Loss 0.5\n", rule).outside == 1
    assert text(b"step 3\n", b"step 4\n", rule).outside == 1
    assert text(b"a 0.5 0.5\n", b"a 0.5\n", rule).outside == 1


@pytest.mark.parametrize(
    ("reference", "replay"),
    [
        (b"run 007\n", b"run 008\n"),
        (b"run 007\n", b"run 7\n"),
        (b"loss 1e400\n", b"loss 2e400\n"),
        (b"at 12:03:07\n", b"at 12:03:08\n"),
    ],
)
def test_what_is_no_decimal_number_stays_exact_under_a_tolerance(reference, replay):
    boundless = Tolerance(rtol=1.0, atol=1e9, share=1.0)
    assert text(reference, replay, boundless).outside == 1


@pytest.mark.parametrize("block", [1, 3, 1 << 20])
def test_counts_differing_bytes_and_names_the_first(monkeypatch, block):
    monkeypatch.setattr(module, "_BLOCK_BYTES", block)
    result = compare_bytes(io.BytesIO(b"abcdefgh"), io.BytesIO(b"abXdefYhij"))
    assert (result.outside, result.elements, result.worst_index) == (4, 10, (2,))
    assert (result.expected, result.got) == ("63", "58")


def test_equal_bytes_are_equal():
    assert compare_bytes(io.BytesIO(b"abc"), io.BytesIO(b"abc")).equal
    assert compare_bytes(io.BytesIO(b""), io.BytesIO(b"")).equal


def test_a_longer_replay_differs():
    result = compare_bytes(io.BytesIO(b"abc"), io.BytesIO(b"abcd"))
    assert (result.outside, result.worst_index) == (1, (3,))
