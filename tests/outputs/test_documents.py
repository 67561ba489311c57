import io
import math

import pytest

from reprobundle.errors import UnreadableOutputError
from reprobundle.outputs.documents import read_leaves


def read(data, file_format="json"):
    return list(read_leaves(io.BytesIO(data), file_format))


def test_a_list_of_objects_becomes_columns_with_places():
    leaves = read(b'{"history": [{"loss": 2.5}, {"loss": 1.5}]}')
    assert [(leaf.column, leaf.place, leaf.cell.value) for leaf in leaves] == [
        ("history[].loss", (0,), 2.5),
        ("history[].loss", (1,), 1.5),
    ]
    assert leaves[0].keys == ("history", "loss")


def test_lines_are_the_outermost_list():
    leaves = read(b'{"a": 1}\n\n{"a": 2}\n', "jsonl")
    assert [(leaf.column, leaf.place) for leaf in leaves] == [
        ("[].a", (0,)),
        ("[].a", (1,)),
    ]


def test_a_separator_inside_a_string_does_not_end_a_line():
    assert len(read('{"a": "x\u2028y"}\n'.encode(), "jsonl")) == 1


def test_keys_with_dots_cannot_be_mistaken_for_paths():
    columns = {leaf.column for leaf in read(b'{"a.b": 1, "a": {"b": 2}, "[]": 3}')}
    assert columns == {'["a.b"]', "a.b", '["[]"]'}


def test_empty_lists_and_objects_are_leaves():
    cells = [leaf.cell for leaf in read(b'{"a": [], "b": {}}')]
    assert [(cell.kind, cell.text) for cell in cells] == [
        ("empty", "[]"),
        ("empty", "{}"),
    ]


def test_nan_literals_are_numbers():
    values = [leaf.cell.value for leaf in read(b"[NaN, -Infinity]")]
    assert math.isnan(values[0])
    assert values[1] == -math.inf


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{"a": 1, "a": 1}', "'a' stands twice"),
        (b'{"a": {"b": 1, "b": 1}}', "'b' stands twice"),
        (b"{", "not readable json"),
        (b"\xff", "not readable json"),
        (b"[" * 300 + b"]" * 300, "deeper than 200"),
        (b"[" * 200_000, "not readable json"),
        (b"9" * 5000, "not readable json"),
    ],
)
def test_a_document_nobody_can_trust_is_refused(data, words):
    if data.isdigit():
        # Python before 3.11 converts a number of any length.
        data = b"[" + data + b", " + b'"'
    with pytest.raises(UnreadableOutputError, match=words):
        read(data)
