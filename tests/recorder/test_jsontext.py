import json

import pytest

from reprobundle.recorder.jsontext import decode, encode


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        -(2**63),
        1.5,
        1e-310,
        'quote " backslash \\ newline \n tab \t bell \x07 é 😀',
        [1, [2, {"a": None}], ()],
        {"a": {"b": [False]}},
    ],
)
def test_writes_what_the_standard_library_reads(value):
    expected = json.loads(json.dumps(value))
    assert json.loads(encode(value)) == expected
    assert decode(encode(value)) == expected


def test_writes_numbers_that_json_lacks_as_text():
    text = encode([float("nan"), float("inf"), float("-inf")])
    assert text == '["nan","inf","-inf"]'


def test_sorts_sets_so_that_equal_sets_give_equal_text():
    assert encode({"b", "a", "c"}) == '["a","b","c"]'


def test_refuses_what_has_no_form():
    with pytest.raises(TypeError, match="type object has no JSON form"):
        encode([object()])


def test_never_writes_a_line_break():
    assert "\n" not in encode({"a\nb": "c\r\nd"})
