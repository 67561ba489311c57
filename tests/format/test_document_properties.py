"""Canonical JSON: order, numbers, texts; and what is measured before it is parsed."""

from __future__ import annotations

import contextlib
import json
import math
import struct

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reprobundle.errors import BundleError, LimitError
from reprobundle.format import limits
from reprobundle.format.canonical import check_form, decode, encode, measure

numbers = st.one_of(
    st.integers(-(2**53) + 1, 2**53 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
trees = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4)
    ),
    max_leaves=15,
)


def read(data: bytes, *, canonical: bool = True) -> object:
    return decode(data, object, where="x", rule="R-6.4", canonical=canonical)


@given(trees)
def test_what_is_written_is_canonical_and_comes_back_bit_for_bit(tree):
    data = encode(tree)
    check_form(data, where="x", rule="R-6.4")
    assert repr(read(data)) == repr(json.loads(data)) == repr(_sorted(tree))


def _sorted(tree: object) -> object:
    if isinstance(tree, dict):
        return {key: _sorted(tree[key]) for key in sorted(tree)}
    return [_sorted(one) for one in tree] if isinstance(tree, list) else tree


@given(st.dictionaries(texts, numbers, min_size=2, max_size=6), st.randoms())
def test_the_order_of_keys_is_that_of_code_points_however_they_came(tree, random):
    keys = list(tree)
    random.shuffle(keys)
    assert encode({key: tree[key] for key in keys}) == encode(tree)
    assert list(json.loads(encode(tree))) == sorted(tree)


@given(st.binary(min_size=8, max_size=8))
@example(struct.pack("<d", -0.0))
@example(struct.pack("<d", 5e-324))
@example(struct.pack("<d", 1.7976931348623157e308))
def test_every_float_comes_back_to_the_last_bit(raw):
    (value,) = struct.unpack("<d", raw)
    if math.isfinite(value):
        assert struct.pack("<d", float(str(json.loads(encode(value))))) == raw


@settings(max_examples=200)
@given(trees, st.data())
def test_another_byte_is_another_value_or_no_canonical_document(tree, data):
    raw = bytearray(encode(tree))
    place = data.draw(st.integers(0, len(raw) - 1))
    raw[place] ^= data.draw(st.integers(1, 255))
    with contextlib.suppress(BundleError):
        assert repr(read(bytes(raw))) != repr(_sorted(tree))


@given(st.binary(max_size=60))
@example(b'"\xed\xa0\x80"')
@example(b"1" * 5000)
@example(b"[" * 5000)
def test_no_bytes_end_in_anything_but_our_errors(data):
    for canonical in (True, False):
        with contextlib.suppress(BundleError):
            read(data, canonical=canonical)


def counted(tree: object) -> tuple[int, int]:
    """Return depth and values of a tree, one after another."""
    if not isinstance(tree, (dict, list)):
        return 0, 0
    inner = tree.values() if isinstance(tree, dict) else tree
    found = [counted(one) for one in inner]
    depth = 1 + max((one for one, _ in found), default=0)
    return depth, 1 + max(0, len(found) - 1) + sum(count for _, count in found)


@given(trees, st.sampled_from([None, 1]), st.booleans())
@example({'a,[{"': ["\\", '\\"', ",,", "[[", ""]}, None, True)
def test_what_is_measured_is_what_a_parser_finds(tree, indent, plain):
    data = json.dumps(tree, indent=indent, ensure_ascii=plain).encode()
    assert measure(data) == counted(tree)


def test_a_document_has_so_many_values_and_not_one_more(monkeypatch):
    monkeypatch.setattr(limits, "DOCUMENT_VALUES", 10)
    assert read(b"[" + b"0," * 9 + b"0]", canonical=False) == [0] * 10
    with pytest.raises(LimitError, match="11 values, at most 10 are read") as caught:
        read(b"[" + b"0," * 10 + b"0]", canonical=False)
    assert caught.value.rule == "R-6.1"


@given(st.text(alphabet="[]{}", max_size=60))
def test_brackets_that_do_not_match_are_counted_as_they_come(brackets):
    depth = deepest = 0
    for bracket in brackets:
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    assert measure(brackets.encode())[0] == deepest


@pytest.mark.parametrize("depth", [1, 7, 8, 9, 200])
def test_any_depth_is_counted(depth):
    assert measure(b"[" * depth + b"]" * depth)[0] == depth
