"""Citations: the schema's rules, and where they are kept."""

from __future__ import annotations

import os
import sys

import pytest

from reprobundle.errors import BadCallError, EnvironmentUnusableError
from reprobundle.format.citation import (
    Author,
    Citation,
    citation_facts,
    citation_of,
    parse_doi,
    with_doi,
)
from reprobundle.format.record import Fact
from reprobundle.pack.citing import read_citation, with_citation

MINIMAL = """\
cff-version: 1.2.0
message: Please cite it.
title: Points
authors:
  - given-names: Ada
    name-particle: of
    family-names: Lovelace
    orcid: https://orcid.org/0000-0001-2345-6789
  - name: The Team
"""


@pytest.fixture
def write(tmp_path):
    if not os.environ.get("REPROBUNDLE_REQUIRE_TOOLS"):
        pytest.importorskip("yaml")

    def _write(text):
        path = tmp_path / "CITATION.cff"
        path.write_text(text)
        return path

    return _write


def test_what_a_file_states_is_read(write):
    more = (
        "doi: 10.5281/zenodo.1\nversion: 2\ndate-released: 2026-01-02\nlicense: MIT\n"
    )
    assert read_citation(write(f"{MINIMAL}{more}")) == Citation(
        title="Points",
        authors=(
            Author("Ada of Lovelace", "https://orcid.org/0000-0001-2345-6789"),
            Author("The Team"),
        ),
        doi="10.5281/zenodo.1",
        version="2",
        released="2026-01-02",
        licenses=("MIT",),
    )


def test_a_doi_among_the_identifiers_counts(write):
    one = "identifiers:\n  - {type: doi, value: 10.5281/zenodo.7}\n"
    assert read_citation(write(MINIMAL + one)).doi == "10.5281/zenodo.7"
    two = f"{one}  - {{type: doi, value: 10.5281/zenodo.8}}\n"
    with pytest.raises(BadCallError, match="lists 2 DOIs"):
        read_citation(write(MINIMAL + two))
    assert read_citation(
        write(f"{MINIMAL}{two}doi: 10.1/x\n".replace("10.1/", "10.1234/"))
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("title: Points\n", ""), "'title' is a required property"),
        (("1.2.0", "1.1.0"), "cff-version is '1.1.0', expected '1.2.0'"),
        (("title:", "colour: red\ntitle:"), "'colour' was unexpected"),
        (("0000-0001", "0000_0001"), "breaks the schema of CITATION.cff at authors/0"),
        (
            ("title:", "date-released: 2026-13-01\ntitle:"),
            "'2026-13-01' is not a 'date'",
        ),
        (("title:", "license: My own\ntitle:"), "at license"),
        (("title: Points", "title: [Points"), "cannot be read as YAML, line"),
        (("title: Points", "title: &a Points\nabstract: *a"), "uses a YAML alias"),
        (
            ("title: Points", "title: !!python/name:os.system x"),
            "cannot be read as YAML",
        ),
        ((MINIMAL, "- a\n"), "holds no keys"),
        ((MINIMAL, ""), "holds no keys"),
    ],
)
def test_what_breaks_the_rules_is_told_in_one_line(change, message, write):
    path = write(MINIMAL.replace(*change))
    with pytest.raises(BadCallError) as caught:
        read_citation(path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(BadCallError, match="no such file"):
        read_citation(tmp_path / "CITATION.cff")


def test_a_huge_file_is_not_read(write):
    with pytest.raises(BadCallError, match="more than 1,048,576 bytes"):
        read_citation(write(MINIMAL + "#" * (1 << 20)))


def test_without_the_package_one_line_says_what_to_install(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(EnvironmentUnusableError, match=r"reprobundle\[export\]"):
        read_citation(write(MINIMAL))


@pytest.mark.parametrize(
    "text",
    ["10.5281/zenodo.1", "doi:10.5281/zenodo.1", "https://doi.org/10.5281/zenodo.1"],
)
def test_a_doi_is_read_in_the_usual_ways(text):
    assert parse_doi(text) == "10.5281/zenodo.1"


@pytest.mark.parametrize("text", ["", "10.5281", "zenodo.1", "10.5281/a b", "11.1/x"])
def test_what_is_no_doi_is_refused(text):
    with pytest.raises(BadCallError, match="is no DOI"):
        parse_doi(text)


def test_two_dois_are_refused():
    with pytest.raises(BadCallError, match="stated twice, once as"):
        with_doi(Citation(doi="10.5281/a"), "10.5281/b")
    assert with_doi(Citation(doi="10.5281/a"), "doi:10.5281/A").doi == "10.5281/A"


def test_facts_give_the_citation_back():
    citation = Citation(
        title="Points",
        authors=(Author("Ada", "https://orcid.org/0000-0001-2345-678X"), Author("B")),
        doi="10.5281/zenodo.1",
        version="2",
        released="2026-01-02",
        licenses=("MIT", "Apache-2.0"),
        url="https://example.org",
        repository="https://example.org/git",
    )
    assert citation_of(citation_facts(citation, "here")) == citation
    assert citation_facts(Citation(), "here") == {}
    assert citation_of({}) == Citation()


def test_a_strange_fact_is_no_citation():
    facts = {
        "stated.doi": Fact(value="javascript:alert(1)"),
        "stated.citation.title": Fact(value=3),
        "stated.citation.authors": Fact(value="Ada"),
    }
    assert citation_of(facts) == Citation()


def test_stated_facts_and_a_citation_stand_side_by_side(write):
    facts = {"stated.batch": Fact(value="1")}
    told = with_citation(facts, write(MINIMAL), "10.5281/zenodo.1")
    assert told["stated.batch"].value == "1"
    assert told["stated.doi"].value == "10.5281/zenodo.1"
    assert told["stated.doi"].source.endswith("from CITATION.cff")
    with pytest.raises(BadCallError, match="fact 'doi' is stated twice"):
        with_citation({"stated.doi": Fact(value="x")}, None, "10.5281/zenodo.1")
