import io

import pytest

from reprobundle.errors import UnreadableOutputError
from reprobundle.outputs import text
from reprobundle.outputs.text import printable, read_lines, split_numbers


def test_line_endings_count():
    assert list(read_lines(io.BytesIO(b"a\r\nb\nc"))) == ["a\r\n", "b\n", "c"]


def test_bytes_that_are_no_text_stay_distinct():
    first, second = (list(read_lines(io.BytesIO(data))) for data in (b"\xff", b"\xfe"))
    assert first != second


def test_an_endless_line_is_refused(monkeypatch):
    monkeypatch.setattr(text, "LONGEST_LINE_BYTES", 10)
    with pytest.raises(UnreadableOutputError):
        list(read_lines(io.BytesIO(b"x" * 11)))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("größer", "größer"),
        ("\x1b[31mred\n", "\\x1b[31mred\\n"),
        ("lone \ud800", "lone \\ud800"),
        ("x" * 300, "x" * 200 + "…"),
    ],
)
def test_what_strangers_wrote_is_shown_in_one_printable_line(text, shown):
    assert printable(text) == shown


@pytest.mark.parametrize(
    ("line", "numbers"),
    [
        ("step 3 loss 0.25", ("3", "0.25")),
        ("lr=1e-3, x:-2.", ("1e-3", "-2.")),
        ("layer2 v1.2.3 0x10", ()),
    ],
)
def test_numbers_are_found_and_names_left_alone(line, numbers):
    assert split_numbers(line)[1] == numbers
