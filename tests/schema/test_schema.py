"""The published schemas and the types that decode must say the same."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import msgspec
import pytest

from reprobundle.format.policy import Policy
from reprobundle.format.record import Fact, Output
from reprobundle.format.schema import DOCUMENTS, schema_of, schema_text

SCHEMAS = Path(__file__).parents[2] / "schema"


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_published_schema_equals_the_type(name):
    published = (SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8")
    assert published == schema_text(name), (
        "run: python -m reprobundle.format.schema schema"
    )


def test_no_schema_is_left_over():
    files = {path.name.removesuffix(".schema.json") for path in SCHEMAS.glob("*.json")}
    assert files == set(DOCUMENTS)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_schema_is_a_valid_schema(name):
    jsonschema.Draft202012Validator.check_schema(schema_of(name))


OUTPUT = {
    "name": "out/a.npy",
    "kind": "arrays",
    "format": "npy",
    "size_bytes": 3,
    "blake3": "0" * 64,
    "stored": "here",
}

# (document fragment, type, schema pointer, accepted by both)
CORPUS = [
    ({"value": 1}, Fact, "Fact", True),
    ({"value": "x", "colour": 1}, Fact, "Fact", False),
    ({"value": {"a": 1}}, Fact, "Fact", False),
    (OUTPUT, Output, "Output", True),
    ({**OUTPUT, "blake3": "0" * 63}, Output, "Output", False),
    ({**OUTPUT, "blake3": "0" * 64 + "\n"}, Output, "Output", False),
    ({**OUTPUT, "blake3": "G" * 64}, Output, "Output", False),
    ({**OUTPUT, "size_bytes": -1}, Output, "Output", False),
    ({**OUTPUT, "size_bytes": "3"}, Output, "Output", False),
    ({**OUTPUT, "stored": "elsewhere"}, Output, "Output", False),
    ({**OUTPUT, "kind": "picture"}, Output, "Output", False),
    ({k: v for k, v in OUTPUT.items() if k != "name"}, Output, "Output", False),
]


@pytest.mark.parametrize(("fragment", "kind", "pointer", "accepted"), CORPUS)
def test_schema_and_type_accept_the_same(fragment, kind, pointer, accepted):
    schema = schema_of("record")
    validator = jsonschema.Draft202012Validator(
        {"$defs": schema["$defs"], "$ref": f"#/$defs/{pointer}"}
    )
    by_type = True
    try:
        msgspec.convert(fragment, kind, strict=True)
    except msgspec.ValidationError:
        by_type = False
    assert validator.is_valid(fragment) is accepted
    assert by_type is accepted


@pytest.mark.parametrize(
    "bad", [{"rtol": -1, "atol": 0}, {"rtol": 0}, {"rtol": 0, "atol": 0, "share": 1.5}]
)
def test_a_tolerance_out_of_range_is_refused_by_both(bad):
    policy = {
        "tolerances": [
            {"dtype": "float32", "devices": "same", "source": "x", "tolerance": bad}
        ]
    }
    assert not jsonschema.Draft202012Validator(schema_of("policy")).is_valid(policy)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(policy, Policy)
