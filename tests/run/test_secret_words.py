"""The short cuts of the scan leave nothing out that the expressions would find."""

from __future__ import annotations

import os
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reprobundle.errors import SensitiveContentError
from reprobundle.format.writer import Source
from reprobundle.run.project import Stage
from reprobundle.run.secrets import drawn, scan, shapes
from reprobundle.run.secrets.gate import Gate
from tests.run.secrets_corpus import expand

TOKEN = expand("hf~_<a34>", 1)
PATTERNS = [drawn._QUOTED, drawn._SET, drawn._ALONE]
pieces = st.sampled_from(
    [
        b"'",
        b'"',
        b"\\",
        b"\n",
        b" ",
        b": ",
        b"=",
        b"a" * 32,
        b"B7" * 40,
        b"-" * 31,
        b"x",
    ]
)


@settings(max_examples=100)
@given(st.lists(pieces, max_size=14).map(b"".join), st.sampled_from(PATTERNS))
def test_long_words_lead_to_what_the_expression_finds(text, pattern):
    words = list(drawn._LONG.places(text))
    found = [match.span() for match in drawn._matches(pattern, text, words)]
    assert found == [match.span() for match in pattern.finditer(text)]


@given(st.text(alphabet="aZ_-. \n\"'", max_size=200).map(str.encode))
def test_the_long_words_of_a_text_are_all_of_them(text):
    expected = [match.span() for match in re.finditer(rb"[aZ_-]{32,}", text)]
    assert list(drawn._LONG.places(text)) == expected


IN_WORDS = [one for one in shapes.SHAPES if not {*one.literals} <= shapes._ANYWHERE]


@pytest.mark.parametrize("shape", IN_WORDS, ids=lambda one: one.literals[0].decode())
def test_the_literal_of_a_token_stands_in_a_long_word(shape):
    body = shape.pattern.pattern
    body = body.removeprefix(shapes._START).removesuffix(shapes._END)
    # Its shortest forms are those that a limit could miss.
    body = re.sub(rb"\{(\d+),\d+\}", rb"{\1}", body)

    @settings(max_examples=4, database=None, derandomize=True)
    @given(st.from_regex(re.compile(body), fullmatch=True))
    def holds(token):
        text = b"x = '" + token + b"'"
        words = b" ".join(text[start:end] for start, end in shapes._LONG.places(text))
        assert any(literal in words for literal in shape.literals)

    holds()


def test_a_literal_that_stands_elsewhere_leads_to_the_token():
    token = b"sk-admin-" + b"aB3" * 20
    assert list(shapes.found_shapes(b"# or sk-proj-...\n" + token)) != []


def test_the_same_content_is_searched_once(tmp_path, monkeypatch):
    searched = []
    original = scan.scan_bytes

    def counted(path, data):
        searched.append(path)
        return original(path, data)

    monkeypatch.setattr(scan, "scan_bytes", counted)
    file = tmp_path / "a.py"
    file.write_bytes(b"x = 1\n")
    gate = Gate([])
    stage = Stage(folder=tmp_path, names=["a.py"])
    gate.check_project(stage, [], withheld=(), limit_bytes=1 << 20)
    gate.check_sources([Source("project/a.py", "project", file)])
    assert searched.count("a.py") == 1


def test_a_content_that_is_another_one_by_then_is_searched_again(tmp_path):
    file = tmp_path / "a.py"
    file.write_bytes(b"x = 1\n" + b"#" * len(TOKEN))
    before = file.stat()
    gate = Gate([])
    stage = Stage(folder=tmp_path, names=["a.py"])
    gate.check_project(stage, [], withheld=(), limit_bytes=1 << 20)
    file.write_bytes(b"x = 1\n" + TOKEN)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(SensitiveContentError, match=r"a\.py:2 \(huggingface-token\)"):
        gate.check_sources([Source("project/a.py", "project", file)])


def test_a_content_of_another_name_is_searched_again(tmp_path):
    # What stands in a file of settings needs no quotes to be a value.
    (tmp_path / "a.py").write_bytes(b"password = Tr0ub4dor&3x9\n")
    gate = Gate([])
    stage = Stage(folder=tmp_path, names=["a.py"])
    gate.check_project(stage, [], withheld=(), limit_bytes=1 << 20)
    settings_file = Source("project/.env", "project", tmp_path / "a.py")
    with pytest.raises(SensitiveContentError, match="password"):
        gate.check_sources([settings_file])
