"""One form for JSON, and nothing that is not JSON gets through."""

from __future__ import annotations

import json
import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprobundle.errors import BadCallError, DocumentError, LimitError
from reprobundle.format.canonical import decode, encode


class Point(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    x: int
    name: str = ""
    note: object = None


def read(data: bytes, kind=Point, **options):
    return decode(data, kind, where="p.json", rule="R-7.1", **options)


def test_the_form_is_sorted_indented_by_one_and_ends_in_a_line_break():
    assert encode({"b": [1, 2.5], "a": "é\n"}) == (
        '{\n "a": "é\\n",\n "b": [\n  1,\n  2.5\n ]\n}\n'.encode()
    )


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_refuses_to_write_what_json_has_no_form_for(value):
    with pytest.raises(BadCallError, match="no canonical JSON"):
        encode({"deep": [{"x": value}]})


def test_null_and_the_word_null_are_written():
    assert json.loads(encode([None, "null"])) == [None, "null"]


def test_refuses_to_write_a_lone_surrogate():
    with pytest.raises(BadCallError):
        encode("\ud800")


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(json_values)
def test_what_is_written_reads_back_equal(value):
    data = encode(value)
    assert json.loads(data) == value
    assert decode(data, object, where="v", rule="R-7.1", canonical=True) == value


BAD = {
    "nothing": (b"", DocumentError, "R-6.4"),
    "half a document": (b'{"x": 1', DocumentError, "R-6.4"),
    "two documents": (b'{"x": 1}{"x": 2}', DocumentError, "R-6.4"),
    "NaN": (b'{"x": 1, "note": NaN}', DocumentError, "R-6.4"),
    "Infinity": (b'{"x": 1, "note": -Infinity}', DocumentError, "R-6.4"),
    "a number beyond every float": (
        b'{"x": 1, "note": 1e999}',
        DocumentError,
        "R-7.1",
    ),
    "a byte order mark": (b'\xef\xbb\xbf{"x": 1}', DocumentError, "R-6.4"),
    "no UTF-8": (b'{"x": 1, "name": "\xff"}', DocumentError, "R-6.4"),
    "UTF-16": ('{"x": 1}'.encode("utf-16"), DocumentError, "R-6.4"),
    "a comment": (b'{"x": 1} // hello', DocumentError, "R-6.4"),
    "a repeated key": (b'{"x": 1, "x": 2}', DocumentError, "R-6.3"),
    "a repeated key further down": (
        b'{"x": 1, "note": [{"a": 1, "\\u0061": 2}]}',
        DocumentError,
        "R-6.3",
    ),
    "a wrong type": (b'{"x": "1"}', DocumentError, "R-7.1"),
    "a missing field": (b"{}", DocumentError, "R-7.1"),
    "an unknown field": (b'{"x": 1, "y": 2}', DocumentError, "R-7.1"),
    "too many levels": (
        b'{"x": 1, "note": ' + b"[" * 70 + b"]" * 70 + b"}",
        LimitError,
        "R-6.2",
    ),
    "a hundred thousand levels": (
        b'{"x": 1, "note": ' + b"[" * 10**5 + b"]" * 10**5 + b"}",
        LimitError,
        "R-6.2",
    ),
    "a hundred thousand open levels": (
        b'{"x": 1, "note": ' + b'{"a":' * 10**5,
        LimitError,
        "R-6.2",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_refuses(case):
    data, error, rule = BAD[case]
    with pytest.raises((DocumentError, LimitError)) as caught:
        read(data)
    assert (type(caught.value), caught.value.rule) == (error, rule)
    assert caught.value.where == "p.json"
    assert str(caught.value).isprintable()


def test_the_message_names_the_place_in_the_document():
    with pytest.raises(DocumentError, match=r"expected `int`, got `str` - at `\$\.x`"):
        read(b'{"x": "1"}')


def test_brackets_inside_of_strings_are_no_levels():
    text = '"[{' * 500
    assert read(json.dumps({"x": 1, "name": text}).encode()).name == text


def test_sixty_four_levels_are_read():
    data = b'{"x": 1, "note": ' + b"[" * 63 + b"]" * 63 + b"}"
    assert read(data).x == 1


def test_refuses_a_document_above_its_limit():
    with pytest.raises(LimitError) as caught:
        read(b'{"x": 1}', limit_bytes=7)
    assert caught.value.rule == "R-6.1"


def test_a_control_character_in_a_strangers_key_does_not_reach_the_terminal():
    with pytest.raises(DocumentError) as caught:
        read(b'{"x": 1, "\\u001b[31m": 2}')
    assert str(caught.value).isprintable()


def test_another_form_is_refused_only_where_the_canonical_one_is_asked_for():
    assert read(b'{"x":1}').x == 1
    with pytest.raises(DocumentError, match="not in canonical form") as caught:
        read(b'{"x":1}', canonical=True)
    assert caught.value.rule == "R-6.7"
