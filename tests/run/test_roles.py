"""A role is shown by an output's form or stated; a name proves nothing."""

import json

import numpy as np
import pytest

from reprobundle.errors import BadCallError
from reprobundle.format.policy import RoleRule
from reprobundle.format.record import ArraySummary
from reprobundle.outputs.summary import Summary
from reprobundle.pack.policy import parse_role
from reprobundle.run.produced import Found, collect
from reprobundle.run.roles import role_of

SCALAR = Summary("arrays", "npy", (ArraySummary(name="", dtype="float64", shape=()),))
VECTOR = Summary("arrays", "npy", (ArraySummary(name="", dtype="float64", shape=(1,)),))
BYTES = Summary("bytes", "bytes")


@pytest.mark.parametrize(
    ("name", "summary", "expected"),
    [
        ("out/last.pt", Summary("arrays", "checkpoint"), ("checkpoint", "form")),
        ("metric:loss", Summary("document", "json"), ("metrics", "form")),
        ("record:loss", SCALAR, ("metrics", "form")),
        ("record:loss", VECTOR, ("", "")),
        ("loss.npy", SCALAR, ("", "")),
        ("predictions.npy", VECTOR, ("", "")),
        ("plots/curve.PNG", BYTES, ("figure", "form")),
        ("model.onnx", BYTES, ("export", "form")),
        ("done.ipynb", Summary("document", "notebook"), ("report", "form")),
        ("run.log", Summary("log", "text"), ("log", "form")),
        ("metrics.json", Summary("document", "json"), ("", "")),
    ],
)
def test_only_the_form_of_an_output_shows_its_role(name, summary, expected):
    assert role_of(name, summary, ()) == expected


def test_what_the_author_states_wins_and_the_first_rule_of_all():
    rules = (
        RoleRule(match="out/*.npy", role="prediction"),
        RoleRule(match="*", role="export"),
    )
    assert role_of("out/y.npy", VECTOR, rules) == ("prediction", "stated")
    assert role_of("x.png", BYTES, rules) == ("export", "stated")


def test_the_record_holds_the_role_and_how_it_is_known(tmp_path):
    np.save(tmp_path / "y.npy", np.zeros(3))
    (tmp_path / "m.json").write_text(json.dumps({"loss": 1.0}))
    found = [Found(name, name, tmp_path / name) for name in ("m.json", "y.npy")]
    rules = (parse_role("*.json=metrics"),)
    made = collect(
        found, python=None, work=tmp_path, sealed={}, limit_bytes=1000, roles=rules
    )
    told = {one.name: (one.role, one.role_source) for one in made.outputs}
    assert told == {"m.json": ("metrics", "stated"), "y.npy": ("", "")}


@pytest.mark.parametrize("text", ["out", "=metrics", "a=weights", "a="])
def test_another_form_or_role_is_a_bad_call(text):
    with pytest.raises(BadCallError, match="PATTERN=ROLE"):
        parse_role(text)
