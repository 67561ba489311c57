import math

import pytest

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
    ],
)
def test_the_text_decides_what_a_cell_is(text, kind, value):
    cell = read_cell(text)
    assert (cell.kind, cell.value) == (kind, value)


def test_nan_is_a_number():
    assert read_cell("NaN").kind == "number"
    assert math.isnan(read_cell("NaN").value)


@pytest.mark.parametrize(
    ("value", "kind"),
    [(True, "bool"), (1, "integer"), (1.0, "number"), (None, "null"), ([], "empty")],
)
def test_json_types_stay_apart(value, kind):
    assert json_cell(value).kind == kind
