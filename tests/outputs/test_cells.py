import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprobundle.outputs.cells import json_cell, read_cell


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("3", "integer", 3),
        (" -17 ", "integer", -17),
        ("3.0", "number", 3.0),
        (".5", "number", 0.5),
        ("1e-3", "number", 1e-3),
        ("1e999", "text", 0),
        ("-Inf", "number", -math.inf),
        ("True", "text", 0),
        ("", "text", 0),
        ("1_000", "text", 0),
        ("0x10", "text", 0),
        ("٣", "text", 0),
        ("9" * 500, "text", 0),
        ("0", "integer", 0),
        ("-0", "integer", 0),
        ("0.0", "number", 0.0),
        ("-.5e3", "number", -500.0),
        ("1.", "number", 1.0),
        ("+0.5", "number", 0.5),
        ("1E+16", "number", 1e16),
        ("1.5E16", "number", 1.5e16),
        ("007", "text", 0),
        ("-007", "text", 0),
        ("00", "text", 0),
        ("01.10", "text", 0),
        ("00.5", "text", 0),
        ("+49", "text", 0),
        ("12e5", "text", 0),
        ("0e1", "text", 0),
        ("1e16.", "text", 0),
        (".", "text", 0),
        ("1.2.3", "text", 0),
        ("1,5", "text", 0),
        ("Nan", "text", 0),
        ("iNF", "text", 0),
        ("nan(ind)", "text", 0),
        ("+INF", "number", math.inf),
        ("-Infinity", "number", -math.inf),
    ],
)
def test_the_text_decides_what_a_cell_is(text, kind, value):
    cell = read_cell(text)
    assert (cell.kind, cell.value) == (kind, value)


@pytest.mark.parametrize("text", ["nan", "NaN", "NAN", "-nan", "+nan"])
def test_nan_is_a_number(text):
    assert read_cell(text).kind == "number"
    assert math.isnan(read_cell(text).value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_what_common_writers_make_of_a_float_is_that_number(value):
    for text in (repr(value), f"{value:.17g}", f"{value:+.17e}", f"{value:.16E}"):
        cell = read_cell(text)
        assert cell.is_numeric or (text.startswith("+") and "e" not in text)
        assert float(cell.value) == float(text)


@given(st.integers())
def test_every_whole_number_is_itself_and_no_other_text_is(value):
    assert read_cell(str(value)).value == value
    for text in (f"0{value}", f"+{value}", f"{value}_0", f"{value}e7"):
        assert read_cell(text).kind == "text"


@pytest.mark.parametrize(
    ("value", "kind"),
    [(True, "bool"), (1, "integer"), (1.0, "number"), (None, "null"), ([], "empty")],
)
def test_json_types_stay_apart(value, kind):
    assert json_cell(value).kind == kind
