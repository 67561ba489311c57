"""The tables of docs/fields.md against what a run records."""

import importlib
import re
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from reprobundle.format.record import Randomness
from reprobundle.recorder import macos
from reprobundle.run.events import FactEvent
from reprobundle.run.observed import observed_facts

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| `(?P<name>[\w.]+)` \| (?P<source>.*?) \| (?P<where>[\w, ]+) \|")
# Rows whose last part stands for many names.
OPEN = ("NAME", "KEY")

SCRIPT = """
import os
os.environ['OMP_DYNAMIC'] = 'false'
import numpy, numpy.random, torch
torch.use_deterministic_algorithms(True)
"""


@pytest.fixture(scope="module")
def rows():
    """Return the sources and platforms of each documented fact."""
    text = (ROOT / "docs" / "fields.md").read_text().partition("## Fields by type")[0]
    found = [match for line in text.splitlines() if (match := ROW.match(line))]
    names = [match["name"] for match in found]
    assert len(names) == len(set(names))
    return {
        match["name"]: (
            re.findall(r"`([^`]+)`", match["source"]),
            match["where"].split(", "),
        )
        for match in found
    }


@pytest.fixture(scope="module")
def recorded(launch):
    run = launch(["python", "run.py"], {"run.py": SCRIPT})
    assert run.status == 0, run.stderr
    facts = {fact.name: fact.source for fact in run.of(FactEvent)}
    observed = observed_facts(run.files, Randomness())
    return {**facts, **{name: fact.source for name, fact in observed.items()}}


def documented(rows, name):
    """Return the row of a fact, by its own name or by its kind."""
    if name in rows:
        return rows[name]
    kinds = [kind for kind in rows if kind.endswith(OPEN)]
    for kind in kinds:
        pattern = re.sub(f"({'|'.join(OPEN)})$", "*", kind)
        if fnmatchcase(name, pattern):
            return rows[kind]
    return None


@pytest.mark.skipif(sys.platform != "linux", reason="records Linux facts")
def test_every_recorded_fact_is_in_a_table_with_its_source(rows, recorded):
    assert len(recorded) > 120
    for name, source in recorded.items():
        row = documented(rows, name)
        assert row is not None, f"docs/fields.md lacks {name}"
        assert source in row[0] or row[0] == ["NAME"], (name, source, row[0])


@pytest.mark.skipif(sys.platform != "linux", reason="records Linux facts")
def test_every_fact_in_a_table_is_recorded_on_linux(rows, recorded):
    expected = {
        name
        for name, (_, where) in rows.items()
        if {"all", "Linux"} & set(where) and not name.endswith(OPEN)
    }
    assert expected - set(recorded) == set()
    # Each kind of name is there as well; the last three come from pack and replay.
    for kind in ("env.", "at_torch.env.", "end."):
        assert any(name.startswith(kind) for name in recorded)


def test_the_facts_of_a_mac_are_those_in_the_tables(rows):
    probes = {name: source for name, source, _ in macos.probes(lambda argv: "")}
    marked = {name for name, (_, where) in rows.items() if "macOS" in where}
    assert marked == set(probes)
    assert all(source in rows[name][0] for name, source in probes.items())


def test_no_origin_is_told_of_a_type_that_is_gone(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    tables = importlib.import_module("field_tables")
    kinds = {kind.__name__ for kind in tables.record_types()}
    assert set(tables.ORIGINS) - kinds == set()


def test_a_type_without_an_origin_is_shown_as_such(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    tables = importlib.import_module("field_tables")
    monkeypatch.delitem(tables.ORIGINS, "Loader")
    assert f"Filled from: {tables.NOT_DESCRIBED}." in "\n".join(tables.table())


def test_a_field_of_a_type_is_a_row(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    tables = importlib.import_module("field_tables")
    text = "\n".join(tables.table())
    assert "| `base_seed` | What the workers' seeds are counted from." in text
    assert text.startswith("### Record")
