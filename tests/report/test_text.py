import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprobundle.report import text


@pytest.mark.parametrize(
    ("size_bytes", "shown"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.00 KiB"),
        (25_190, "24.6 KiB"),
        (1_048_575, "1.00 MiB"),
        (3 << 30, "3.00 GiB"),
        (1 << 62, "4096 PiB"),
    ],
)
def test_sizes_are_binary_with_three_digits(size_bytes, shown):
    assert text.size(size_bytes) == shown


@pytest.mark.parametrize(
    ("elapsed_ns", "shown"),
    [
        (0, "0 ns"),
        (832, "832 ns"),
        (1_500, "1.50 us"),
        (4_210_000, "4.21 ms"),
        (12_345_678_901, "12.3 s"),
        (59_999_999_999, "60.0 s"),
        (125_000_000_000, "2 min 05 s"),
        (11_220_000_000_000, "3 h 07 min"),
    ],
)
def test_durations_name_their_unit(elapsed_ns, shown):
    assert text.duration(elapsed_ns) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "-"),
        (0.0, "0"),
        (0.00095367, "0.0009537"),
        (5e-324, "4.941e-324"),
        ("nan", "nan"),
        ("-inf", "-inf"),
    ],
)
def test_floats_have_four_significant_digits(value, shown):
    assert text.number(value) == shown


@given(st.floats(min_value=5e-324, allow_infinity=False))
def test_no_positive_float_is_shown_as_zero(value):
    assert float(text.number(value)) > 0


def test_digests_are_shown_by_their_first_twelve_digits():
    assert text.digest("0123456789abcdef" * 4) == "0123456789ab"


@pytest.mark.parametrize(
    ("foreign", "shown"),
    [
        ("\x1b[2Jgone", "\\x1b[2Jgone"),
        ("a\nVERDICT", "a\\nVERDICT"),
        ("gpj\u202e.py", "gpj\\u202e.py"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("no\u00a0break", "no\\xa0break"),
        ("lone\ud800", "lone\\ud800"),
        ("\x9b31m", "\\x9b31m"),
        ("größe 数.npy", "größe 数.npy"),
    ],
)
def test_what_could_steer_a_terminal_becomes_visible(foreign, shown):
    assert text.safe(foreign) == shown


def test_what_a_stream_cannot_carry_is_escaped_or_spelled_out():
    assert text.safe("größe ≤ 1 …", "ascii") == "gr\\xf6\\xdfe <= 1 ..."


@given(st.text(), st.sampled_from(["utf-8", "ascii", "latin-1"]))
def test_safe_text_is_printable_encodable_and_stays_as_it_is(foreign, encoding):
    shown = text.safe(foreign, encoding)
    assert shown.isprintable()
    shown.encode(encoding)
    assert text.safe(shown, encoding) == shown


def test_cells_count_wide_and_combining_characters():
    assert (text.cells("abc"), text.cells("数据"), text.cells("e\u0301")) == (3, 4, 1)


def test_a_shortened_name_keeps_both_ends():
    assert (
        text.shorten("experiments/2024/run-17/logits.npy", 20) == "experi…17/logits.npy"
    )


printable = st.text().map(text.safe)


@given(printable, st.integers(min_value=1, max_value=40))
def test_a_shortened_text_never_is_wider_than_asked(foreign, width):
    assert text.cells(text.shorten(foreign, width)) <= width


@given(printable, st.integers(min_value=2, max_value=40))
def test_wrapping_keeps_every_word_and_the_width(foreign, width):
    lines = text.wrap(foreign, width)
    assert "".join(lines).replace(" ", "") == foreign.replace(" ", "")
    assert all(text.cells(line) <= width for line in lines)
