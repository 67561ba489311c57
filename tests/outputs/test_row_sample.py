"""What is kept of an output's rows, and what is known about all of them."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from reprobundle.errors import UnreadableOutputError
from reprobundle.format.record import as_float
from reprobundle.outputs import records, row_blocks
from reprobundle.outputs.cells import read_cell
from reprobundle.outputs.column_sums import ColumnSums
from reprobundle.outputs.places import PLACES_OF_ARRAY, places
from reprobundle.outputs.row_places import MOST_PLACES, count_of_places
from reprobundle.outputs.row_sample import sampled_records, take_rows

KEY = "ab" * 32


def taken(text, file_format="csv", **options):
    data = text if isinstance(text, bytes) else text.encode()
    return take_rows(
        lambda: io.BytesIO(data), file_format, key=KEY, output="out.csv", **options
    )


def test_the_sample_is_a_table_with_the_header_and_the_rows_at_the_places():
    text = "step,loss\n" + "".join(f"{n},{n}.5\n" for n in range(1000))
    got = taken(text, count=7)
    where = places(KEY, "out.csv", "rows", (1001,), size=1000, count=7)
    expected = ["step,loss", *(f"{n},{n}.5" for n in where)]
    assert got.text.decode().splitlines() == expected
    assert (got.summary.records, got.summary.places) == (1001, 7)


def test_the_digest_of_a_column_covers_all_but_the_decimal_numbers():
    got = taken("id,loss,word\n7,0.25,a\n-8,nan,bc\n").summary.columns
    assert [one.name for one in got] == ["id", "loss", "word"]
    tokens = [b"i7;i-8;", b"n;nan;", b"text:1:a;text:2:bc;"]
    assert [one.exact for one in got] == [blake3(one).hexdigest() for one in tokens]
    numbers = got[1].numbers
    assert (numbers.shape, numbers.nan, numbers.mean) == ((2,), 1, 0.25)


def test_lines_of_json_have_columns_and_places():
    got = taken('{"a": [1, 2.5]}\n\n{"b": "x"}\n', "jsonl").summary
    assert got.records == 2
    tokens = {"[].a[]": b"0.0=i1;0.1=n;", "[].b": b"1=text:1:x;"}
    assert {one.name: one.exact for one in got.columns} == {
        name: blake3(token).hexdigest() for name, token in tokens.items()
    }


def test_a_text_is_one_column_whose_numbers_are_masked():
    (column,) = taken("loss 0.5 at 3\n", "text").summary.columns
    token = b"text:12:loss \0 at \0\n;n;i3;"
    assert column.exact == blake3(token).hexdigest()
    assert column.numbers.mean == 0.5


def test_blocks_are_digests_of_four_mebibytes_each():
    text = b"x,y\n" + b"1.5,2.5\n" * 600_000
    blocks = taken(text).summary.blocks
    assert blocks == (
        blake3(text[: 4 << 20]).hexdigest(),
        blake3(text[4 << 20 :]).hexdigest(),
    )


def test_quoted_line_breaks_stay_within_their_row():
    rows = [["word", "n"], *([f"a\nb{n}", str(n)] for n in range(50))]
    stream = io.StringIO()
    csv.writer(stream).writerows(rows)
    got = taken(stream.getvalue(), count=5)
    kept = [*csv.reader(io.StringIO(got.text.decode(), newline=""))]
    assert len(kept) == 6
    assert all(row in rows for row in kept)


def test_a_table_without_a_header_counts_its_first_row_and_keeps_it():
    got = taken("".join(f"{n},{n}.5\n" for n in range(100)), count=3)
    assert got.text.startswith(b"0,0.5\n")
    assert got.text.count(b"\n") == 4
    assert [one.name for one in got.summary.columns] == ["1", "2"]
    assert got.summary.columns[1].numbers.shape == (100,)


@pytest.mark.parametrize(
    ("records", "size_bytes", "expected"),
    [
        (0, 0, 0),
        (1, 10, 0),
        (2, 1 << 30, 1),
        (50_001, 2 << 20, 50_000),
        (20_000_001, 2 << 30, 39_062),
        (20_000_001, 400_000_000, 100_000),
    ],
)
def test_places_are_as_many_as_fit_four_mebibytes(records, size_bytes, expected):
    assert count_of_places(records, size_bytes) == expected
    assert MOST_PLACES == PLACES_OF_ARRAY


@pytest.mark.parametrize("text", ["", "a,b\n"])
def test_an_output_without_rows_has_a_sample_without_places(text):
    got = taken(text)
    assert (got.summary.places, got.text) == (0, text.encode())
    assert sampled_records(got.summary, key=KEY, output="x").size == bool(text)


def test_too_many_columns_are_no_sample():
    line = json.dumps({f"k{n}": n for n in range(1001)})
    with pytest.raises(UnreadableOutputError, match="more than 1,000 columns"):
        taken(line, "jsonl")


TEXTS = st.one_of(
    st.from_regex(r"[+-]?[0-9]{0,3}\.?[0-9]{0,3}(e[+-]?[0-9]{1,3})?", fullmatch=True),
    st.sampled_from(["nan", "-inf", " 1.5", "007", "-0", "+3", "1e400", "x", ""]),
)
# Columns of one kind, each with some cells that only look like it.
KINDS = (
    ["0.5", "-1.25", "+.5", "5.", "1.5e-7", "2.5E+3", "-0.0", "1.0e5"],
    [
        "00.5",
        "-01.5",
        "1.5e000003",
        "1_0.5",
        "1.5-3",
        ".",
        "1.5e",
        "1.5 ",
        "٣.٥",
        "1e5",
    ],
    ["0", "7", "-8", "12345678901234567890"],
    ["-0", "007", "-", "", "1-2", "--1", "+3", "²", "9" * 101, "-" + "9" * 100],
    ["word", "a b", "", "é", "\ud800", "x1"],
    ["nan", "n", "Infinity", " 7", "-", ".x", "a\nb", "\n", "\x1c7"],
)
COLUMNS = st.one_of(
    st.lists(TEXTS, max_size=8),
    *(
        st.builds(
            lambda many, few: [*many, *few],
            st.lists(st.sampled_from(usual), max_size=4),
            st.lists(st.sampled_from(odd), max_size=1),
        )
        for usual, odd in zip(KINDS[::2], KINDS[1::2], strict=True)
    ),
)


@pytest.mark.parametrize("texts", [[one] for kind in KINDS for one in kind])
def test_every_form_of_a_cell_says_the_same_in_both_ways(texts):
    same_in_both_ways(texts)


@given(COLUMNS)
def test_the_fast_way_says_what_the_slow_way_says(texts):
    same_in_both_ways(texts)


def same_in_both_ways(texts):
    fast, slow = ColumnSums(), ColumnSums()
    fast.add_texts(texts)
    slow.add_cells(map(read_cell, texts))
    assert fast.summary("x").exact == slow.summary("x").exact
    left, right = fast.summary("x").numbers, slow.summary("x").numbers
    assert left.shape == right.shape
    if left.mean is not None and right.mean is not None:
        assert np.isclose(as_float(left.mean), as_float(right.mean))


LINES = st.lists(
    st.sampled_from(
        [
            b"a,b\n",
            b"1,2.5\n",
            b"1,2.5\r\n",
            "é,ü\n".encode(),
            b'"x, y",2\n',
            b'p"q,"2"\n',
            b"7\n",
            b"\n",
            b"\r\n",
            b'"line\nbreak",3\n',
            b'"open,1\n',
            b"lone\rreturn,4\n",
            b"\xef\xbb\xbfmark,5\n",
            b"\xff,6\n",
            b"no,end",
        ]
    ),
    max_size=14,
)


@given(LINES, st.integers(1, 40))
def test_groups_of_rows_are_the_rows_one_by_one(lines, read_bytes):
    data = b"".join(lines)
    with pytest.MonkeyPatch.context() as patched:
        for module in (records, row_blocks):
            patched.setattr(module, "BLOCK_ROWS", 3)
        patched.setattr(row_blocks, "_READ_BYTES", read_bytes)
        assert outcome(grouped, data) == outcome(one_by_one, data)


def grouped(data):
    for group in records.read_groups(io.BytesIO(data), "csv"):
        yield list(group.raws), group.columns()


def one_by_one(data):
    rows = records.read_records(io.BytesIO(data), "csv")
    for block in records.in_blocks(rows):
        yield [row.raw for row in block], records.ParsedRows(block).columns()


def outcome(read, data):
    """Return all groups, or that there are none because it is no table."""
    try:
        return list(read(data))
    except UnreadableOutputError:
        return "unreadable"


def test_a_usual_table_is_never_read_row_by_row(monkeypatch):
    monkeypatch.setattr(records, "raw_rows", lambda stream, _: iter(stream))
    text = "id,loss\n" + "".join(f'{n},"{n}.5"\n' for n in range(9000))
    plain = text.replace('"', "")
    for one in (text, plain, plain.replace("\n", "\r\n"), plain.rstrip()):
        assert taken(one).summary.records == 9001
    # What is not simple still reaches the reader of rows: bytes here, not rows.
    with pytest.raises(TypeError):
        taken(plain + "\n\n1,2\n")


def test_the_moments_do_not_depend_on_how_rows_are_read():
    rows = "".join(f"{n / 7},{-n / 3}\n" for n in range(9000))
    simple, slow = taken(f"a,b\n{rows}"), taken(f"a,b\n\n{rows}")
    assert simple.summary.columns == slow.summary.columns
