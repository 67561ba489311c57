"""How a work is cited, from `pack` to what a reader sees."""

from __future__ import annotations

import json
import os
import shutil

import pytest

from reprobundle.cli.group import run
from tests.cli.conftest import make_project, reprobundle

CITATION = """\
cff-version: 1.2.0
message: Please cite it.
title: Means of points
authors:
  - given-names: Ada
    family-names: Lovelace
    email: ada@example.org
version: 2.1.0
license: Apache-2.0
"""
DOI = "https://doi.org/10.5281/zenodo.1234567"


@pytest.fixture(scope="module")
def cited(tmp_path_factory):
    if not os.environ.get("REPROBUNDLE_REQUIRE_TOOLS"):
        pytest.importorskip("yaml")
    folder = tmp_path_factory.mktemp("cited")
    project = make_project(folder / "project")
    citation = folder / "elsewhere.cff"
    citation.write_text(CITATION)
    target = folder / "points.rpb.zip"
    options = ("--passes", "measured", "--citation", citation, "--doi", DOI)
    command = ("--", "python", "train.py")
    done = reprobundle("pack", "-o", target, "-q", *options, *command, cwd=project)
    assert done.status == 0, done.err
    return target


def test_what_was_stated_is_sealed_and_shown(cited, capfd):
    assert run(["inspect", str(cited)]) == 0
    shown = capfd.readouterr().out
    assert "cite as       Ada Lovelace: Means of points, version 2.1.0" in shown
    assert f"DOI           {DOI}" in shown
    assert "licence       Apache-2.0" in shown
    assert run(["cat", str(cited), "runs/1/record.json"]) == 0
    facts = json.loads(capfd.readouterr().out)["environment"]
    assert facts["stated.doi"]["value"] == "10.5281/zenodo.1234567"
    assert "stated by the user" in facts["stated.citation.title"]["source"]
    # An address of a person is not needed to cite, and stays where it was.
    assert "ada@example.org" not in json.dumps(facts)


@pytest.mark.parametrize("kind", ["markdown", "html"])
def test_a_report_shows_it(cited, kind, tmp_path):
    output = tmp_path / "report"
    run(["report", str(cited), "--format", kind, "-o", str(output)])
    text = output.read_text()
    assert "Ada Lovelace: Means of points" in text
    assert DOI in text


def test_another_doi_than_the_sealed_one_is_refused(cited, capfd):
    before = cited.read_bytes()
    assert run(["report", str(cited), "--style", "aec", "--doi", "10.1234/x"]) == 20
    assert "the DOI is stated twice" in capfd.readouterr().err
    assert cited.read_bytes() == before


def test_a_doi_that_came_later_is_shown_and_changes_nothing(packed, tmp_path, capfd):
    path = tmp_path / "points.rpb.zip"
    shutil.copy(packed, path)
    before = path.read_bytes()
    run(["report", str(path), "--style", "aec", "--doi", "10.1234/x"])
    assert "https://doi.org/10.1234/x" in capfd.readouterr().out
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title: x\n", "cff-version is 'None', expected '1.2.0'"),
        (CITATION.replace("title", "tilte"), "breaks the schema of CITATION.cff"),
    ],
)
def test_a_bad_file_is_refused_before_the_command_runs(
    project, text, message, tmp_path, monkeypatch, capfd
):
    monkeypatch.chdir(project)
    citation = tmp_path / "CITATION.cff"
    citation.write_text(text)
    arguments = ["pack", "--citation", str(citation), "--", "touch", "ran"]
    assert run(arguments) == 20
    assert message in capfd.readouterr().err
    assert not list(project.parent.glob("**/*.rpb.zip"))
