"""Which sources are parsed: none of which nothing could be said, and all others."""

from __future__ import annotations

import ast

import pytest

from reprobundle.run.hints import hints_in
from reprobundle.run.unseen_generators import unseen_in

EVALUATED = "{}\noutputs = []\nfor x in data:\n    outputs.append(model(x))\n"


@pytest.fixture
def parsed(monkeypatch):
    """Return the list of sources that were parsed so far."""
    seen = []
    original = ast.parse

    def counted(source):
        seen.append(source)
        return original(source)

    monkeypatch.setattr(ast, "parse", counted)
    return seen


@pytest.mark.parametrize(
    "call",
    ["model.eval()", "model . eval ()", "(model.eval)()", "(model.eval\n)( )"],
)
def test_a_model_is_known_by_a_call_however_it_is_written(call, tmp_path):
    (tmp_path / "a.py").write_text(EVALUATED.format(call))
    (hint,) = hints_in(tmp_path, ["a.py"])
    assert hint.id == "keeps-predictions"


def test_what_calls_no_method_of_a_model_is_not_parsed(tmp_path, parsed):
    (tmp_path / "a.py").write_text(EVALUATED.format("p = signature(f).parameters"))
    assert hints_in(tmp_path, ["a.py"]) == ()
    assert parsed == []


def test_a_generator_of_other_origin_is_not_parsed(tmp_path, parsed):
    (tmp_path / "a.py").write_text("from collections.abc import Generator\n")
    assert unseen_in(tmp_path, ["a.py"]) == ()
    assert parsed == []
    (tmp_path / "a.py").write_text(
        "from numpy.random import Generator, PCG64\nGenerator(PCG64(1))\n"
    )
    assert len(unseen_in(tmp_path, ["a.py"])) == 1
