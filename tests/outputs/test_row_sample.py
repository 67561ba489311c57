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


@given(st.lists(TEXTS, max_size=8))
def test_the_fast_way_says_what_the_slow_way_says(texts):
    fast, slow = ColumnSums(), ColumnSums()
    fast.add_texts(texts)
    slow.add_cells(map(read_cell, texts))
    assert fast.summary("x").exact == slow.summary("x").exact
    left, right = fast.summary("x").numbers, slow.summary("x").numbers
    assert left.shape == right.shape
    if left.mean is not None and right.mean is not None:
        assert np.isclose(as_float(left.mean), as_float(right.mean))
