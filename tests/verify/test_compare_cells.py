import io

import pytest

from reprobundle.errors import UnreadableOutputError
from reprobundle.format.policy import Tolerance
from reprobundle.verify.compare_cells import compare_documents, compare_tables

RULE = Tolerance(rtol=1e-3, atol=0.0)


def tables(reference, replay, *, tolerance=RULE, ignore=(), formats=("csv", "csv")):
    return compare_tables(
        lambda: io.BytesIO(reference),
        lambda: io.BytesIO(replay),
        formats,
        tolerance=tolerance,
        ignored=lambda keys: any(key in ignore for key in keys),
    )


def documents(reference, replay, *, tolerance=RULE, ignore=(), file_format="json"):
    return compare_documents(
        io.BytesIO(reference),
        io.BytesIO(replay),
        (file_format, file_format),
        tolerance=tolerance,
        ignored=lambda keys: any(key in ignore for key in keys),
    )


def parts(cells):
    return {part.name: part for part in cells.parts}


def problems(cells):
    return {part.name: part.problem for part in cells.parts if part.problem}


def test_decimals_of_a_column_are_compared_under_the_tolerance():
    near = tables(b"e,loss\n1,2.000\n2,1.000\n", b"e,loss\n1,2.001\n2,1.0\n")
    assert problems(near) == {}
    assert parts(near)["loss"].dtype == "number"
    assert parts(near)["loss"].max_abs == pytest.approx(1e-3)
    assert not parts(near)["loss"].equal
    far = tables(b"e,loss\n1,2.0\n2,1.0\n", b"e,loss\n1,2.0\n2,1.1\n")
    assert parts(far)["loss"].outside == 1
    assert parts(far)["loss"].worst_index == (1,)
    assert (parts(far)["loss"].expected, parts(far)["loss"].got) == ("1.0", "1.1")


def test_whole_numbers_and_texts_of_a_table_are_exact():
    cells = tables(b"n,s\n1000000,a\n", b"n,s\n1000001,b\n")
    assert problems(cells) == {
        "n": "1 of 1 cells differ (integer, exact)",
        "s": "1 of 1 cells differ (text, exact)",
    }


def test_a_whole_number_written_as_a_decimal_is_the_same_number():
    assert problems(tables(b"n\n1\n", b"n\n1.0\n")) == {}
    assert problems(tables(b"n\n1\n", b"n\n1.0001\n")) != {}


@pytest.mark.parametrize(
    ("reference", "replay"),
    [
        ("007", "7"),
        ("007", "008"),
        ("-007", "-7"),
        ("01.10", "1.1"),
        ("+49", "49"),
        ("1e5", "100000"),
        ("12e5", "12E5"),
        ("1234567e1", "1234568e1"),
        ("Nan", "nan"),
        ("7", "7 x"),
        ("1e400", "1e401"),
        ("9" * 401, "9" * 400 + "8"),
    ],
)
def test_identifiers_that_look_like_numbers_are_text(reference, replay):
    boundless = Tolerance(rtol=1.0, atol=1e300, share=1.0)
    for row in ("a,{}\n", "a,{}\nb,2.5\n"):
        both = (("k,id\n" + row.format(one)).encode() for one in (reference, replay))
        assert "id" in problems(tables(*both, tolerance=boundless))


def test_fewer_rows_are_outside_even_if_all_of_them_agree():
    cells = tables(b"e,loss\n1,2.0\n2,1.0\n3,0.5\n", b"e,loss\n1,2.0\n2,1.0\n")
    assert problems(cells) == {"": "2 rows, expected 3"}


def test_missing_additional_and_moved_columns_are_outside():
    assert "missing in the replay" in problems(tables(b"a,b\n1,2\n", b"a\n1\n"))["b"]
    assert "not in the reference" in problems(tables(b"a\nx\n", b"a,c\nx,2\n"))["c"]
    assert "another order" in problems(tables(b"a,b\nx,y\n", b"b,a\ny,x\n"))[""]


def test_an_ignored_column_is_left_out_and_named():
    cells = tables(
        b"loss,seconds\n1.0,3\n", b"loss,seconds\n1.0,9\n", ignore={"seconds"}
    )
    assert problems(cells) == {}
    assert cells.ignored == ("seconds",)
    assert cells.compared == 1


def test_nan_cells_must_stand_in_the_same_rows():
    same = tables(b"x\nnan\n1.5\n", b"x\nnan\n1.5\n")
    assert parts(same)["x"].nan == 1
    other = tables(b"x\nnan\n1.5\n", b"x\n1.5\nnan\n")
    assert "one side only in 2 of 2" in problems(other)["x"]


def test_a_number_in_place_of_an_empty_cell_differs():
    assert problems(tables(b"x,y\n,1\n", b"x,y\n0.0,1\n")) != {}


def test_the_floor_of_a_column_is_that_columns_own_scale():
    rule = Tolerance(rtol=1e-2, atol=0.0, floor=1.0)
    reference = b"big,small\n" + b"100.0,0.001\n" * 10
    replay = b"big,small\n" + b"100.5,0.002\n" * 10
    cells = tables(reference, replay, tolerance=rule)
    assert set(problems(cells)) == {"small"}


def test_large_tables_are_compared_row_by_row():
    rows = b"".join(b"%d,%d.5\n" % (n, n) for n in range(10_000))
    changed = rows.replace(b"9123,9123.5", b"9123,9999.5")
    cells = tables(b"n,x\n" + rows, b"n,x\n" + changed)
    assert parts(cells)["x"].worst_index == (9123,)
    assert parts(cells)["x"].elements == 10_000


def test_a_broken_table_is_refused():
    with pytest.raises(UnreadableOutputError):
        tables(b"a,b\n1,2\n", b"a,b\n1\n")


# --- documents ------------------------------------------------------------------------


def test_the_numbers_of_a_list_are_one_column():
    cells = documents(
        b'{"loss": [2.0, 1.0, 0.5], "n": 3}', b'{"loss": [2.0, 1.0, 0.9], "n": 3}'
    )
    loss = parts(cells)["loss[]"]
    assert (loss.elements, loss.outside, loss.worst_index) == (3, 1, (2,))
    assert parts(cells)["n"].equal


def test_skipped_steps_are_missing_values():
    cells = documents(b'{"loss": [2.0, 1.0, 0.5]}', b'{"loss": [2.0]}')
    assert "2 values missing in the replay" in problems(cells)["loss[]"]


def test_additional_keys_are_outside():
    cells = documents(b'{"a": 1}', b'{"a": 1, "b": 2}')
    assert problems(cells) == {"b": "1 values not in the reference"}


@pytest.mark.parametrize(
    ("reference", "replay"),
    [
        (b'{"a": true}', b'{"a": 1}'),
        (b'{"a": null}', b'{"a": 0}'),
        (b'{"a": "1.5"}', b'{"a": 1.5}'),
        (b'{"a": []}', b'{"a": {}}'),
        (b'{"a": []}', b"{}"),
        (b'{"a": "x"}', b'{"a": "y"}'),
        (b'{"a": 1}', b'{"a": 2}'),
        (b'{"a": 1.0}', b'{"a": NaN}'),
        (b'{"a": {"b": 1}}', b'{"a": [1]}'),
    ],
)
def test_a_change_of_type_or_exact_value_is_outside(reference, replay):
    assert problems(documents(reference, replay)) != {}


def test_keys_in_another_order_are_the_same_document():
    cells = documents(b'{"a": 1, "b": 2.5}', b'{"b": 2.5, "a": 1}')
    assert all(part.equal for part in cells.parts)


def test_ignored_keys_are_left_out_at_any_depth():
    cells = documents(
        b'{"run": {"seconds": 3.5, "acc": 0.5}}',
        b'{"run": {"seconds": 9.5, "acc": 0.5}}',
        ignore={"seconds"},
    )
    assert problems(cells) == {}
    assert cells.ignored == ("run.seconds",)


def test_json_lines_are_compared_line_by_line():
    cells = documents(b'{"l": 1.5}\n{"l": 0.5}\n', b'{"l": 1.5}\n', file_format="jsonl")
    assert "1 values missing" in problems(cells)["[].l"]


# --- ways to slip past ----------------------------------------------------------------


@pytest.mark.parametrize("header", [b"x,x,x#2", b"x#2,x,x", b"x,x#2,x", b"x,x,x,x#2"])
def test_each_of_many_columns_of_one_name_is_compared(header):
    width = header.count(b",") + 1
    for place in range(width):
        replay = [b"1.5"] * width
        replay[place] = b"9.5"
        cells = tables(
            header + b"\n" + b",".join([b"1.5"] * width),
            header + b"\n" + b",".join(replay),
        )
        assert len(parts(cells)) == width
        assert problems(cells), place


@pytest.mark.parametrize("other", [b"2e400", b"inf", b"-1e400", b"1e401", b'"1e400"'])
def test_numbers_beyond_float64_are_not_all_infinity(other):
    assert problems(tables(b"x,y\n1e400,a\n", b"x,y\n" + other.strip(b'"') + b"0,a\n"))
    literal = b"Infinity" if other == b"inf" else other
    assert problems(documents(b'{"x":1e400}', b'{"x":' + literal + b"}"))
    assert not problems(documents(b'{"x":1e400}', b'{"x":1e400}'))


@pytest.mark.parametrize(
    ("reference", "replay"),
    [
        (b"9007199254740993", b"9007199254740992"),
        (b"9007199254740993", b"9007199254740992.0"),
        (b'"1,5"', b'"1,6"'),
        (b'"1,5"', b"1.5"),
        (b"1_000", b"1000"),
        (b"0x10", b"16"),
        ("\u0661.0".encode(), "\u0662.0".encode()),
        (b"nan", b'""'),
        (b"inf", b"1e308"),
        (b"1000", b"1000.5"),
        (b"1000.5", b"1000"),
    ],
)
def test_cells_that_look_alike_differ(reference, replay):
    assert problems(tables(b"a,b\n" + reference + b",x", b"a,b\n" + replay + b",x"))


@pytest.mark.parametrize(
    ("reference", "replay"),
    [
        (b"1", b'"1"'),
        (b"1.5", b'"1.5"'),
        (b"1", b"true"),
        (b"0", b"false"),
        (b"NaN", b"null"),
        (b"NaN", b'"nan"'),
        (b"[]", b"{}"),
        (b'""', b"null"),
        (b"[1.5]", b"1.5"),
        (b"[1.5, [2.5]]", b"[1.5, 2.5]"),
        (b'"\\ud800"', b'"\\ud801"'),
        (b"1" + b"0" * 400, b"1" + b"0" * 399 + b"1"),
    ],
)
def test_json_values_of_another_type_differ(reference, replay):
    reference, replay = b'{"a":' + reference + b"}", b'{"a":' + replay + b"}"
    assert problems(documents(reference, replay))
    assert problems(documents(replay, reference))
