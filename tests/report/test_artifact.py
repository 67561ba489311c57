"""The appendix of a paper: what the templates ask for, and nothing made up."""

from __future__ import annotations

import msgspec
import pytest

from reprobundle.format.citation import Author, Citation
from reprobundle.format.policy import Band, Claim
from reprobundle.format.record import FileRead, WithheldFile
from reprobundle.report.artifact import data_rows, programs
from reprobundle.report.page import build_page
from reprobundle.report.styles import render_style
from reprobundle.verify.defaults import default_policy
from tests.report import pages
from tests.verify.builder import Bench

# Obligatory in the template of cTuning and ACM, in its order.
AEC = (
    "## Abstract",
    "## Check-list",
    "## Description",
    "**How to access.**",
    "**Hardware dependencies.**",
    "**Software dependencies.**",
    "**Data sets.**",
    "## Installation and experiment workflow",
    "## Evaluation and expected results",
    "## Outcome of the evaluation",
    "## Experiment customization",
)
ITEMS = (
    "program",
    "model",
    "data set",
    "run-time environment",
    "hardware",
    "run-time state",
    "execution",
    "metrics",
    "output",
    "experiments",
    "disk space required",
    "time to prepare",
    "time to complete",
    "publicly available",
    "code licence",
    "data licence",
    "workflow framework",
    "archived (DOI)",
)
AEA = (
    "Classification: ",
    "## Reasons for incomplete reproduction",
    "## Data availability",
    "## Computing requirements",
    "## Programs",
    "## Instructions to replicators",
    "## Tables, figures and claims",
)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    claims = (
        Claim(
            name="main",
            statement="Table 2: accuracy",
            bands=(Band(metric="out/metrics.json#accuracy", least=0.9, most=1.0),),
            minutes=4,
        ),
        Claim(name="smoke", command=("python", "plot.py"), statement="Fig. 3"),
    )
    policy = msgspec.structs.replace(default_policy(), claims=claims)
    bench = Bench(tmp_path_factory.mktemp("artifact"), policy=policy).pack()
    bench.replay()
    return build_page(bench.path, bench.verify())


def in_order(text, parts):
    places = [text.index(part) for part in parts]
    return places == sorted(places)


def test_the_appendix_has_every_section_of_the_template_in_order(page):
    text = render_style(page, "aec")
    assert in_order(text, AEC)
    assert in_order(text, [f"| {item} |" for item in ITEMS])


def test_the_report_has_every_section_that_data_editors_ask_for(page):
    assert in_order(render_style(page, "aea"), AEA)


@pytest.mark.parametrize("style", ["aec", "aea"])
def test_what_nobody_stated_is_told_as_not_stated(page, style):
    text = render_style(page, style)
    for item in ("publicly available", "code licence", "archived (DOI)"):
        assert f"| {item} | not stated |" in text


@pytest.mark.parametrize("style", ["aec", "aea"])
def test_a_stated_address_is_not_vouched_for(page, style):
    citation = Citation(title="T", authors=(Author("Ada"),), doi="10.5281/zenodo.1")
    text = render_style(page._replace(citation=citation), style)
    assert "Cite as: Ada: T `https://doi.org/10.5281/zenodo.1`" in text
    line = "`https://doi.org/10.5281/zenodo.1` (stated by the author, not checked) |"
    assert f"| archived (DOI) | {line}" in text


@pytest.mark.parametrize("style", ["aec", "aea"])
def test_a_claim_stands_with_needs_numbers_band_and_result(page, style):
    text = render_style(page, style)
    row = next(line for line in text.splitlines() if line.startswith("| `main`"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[1] == "Table 2: accuracy"
    assert cells[3] == "4 min"
    assert "0.9375" in cells[4]
    assert "0.9375" in cells[5]
    assert cells[6] == "0.9 to 1"
    assert cells[7].endswith("; in its band")


def test_a_claim_that_nobody_ran_is_not_told_as_met(page):
    text = render_style(page, "aec")
    row = next(line for line in text.splitlines() if line.startswith("| `smoke`"))
    assert "`python plot.py`" in row
    assert row.endswith("| NOT RUN |")
    assert "reprobundle replay digits.rpb.zip --claims smoke" in text


def test_a_claim_without_a_band_is_shown_and_not_judged(tmp_path):
    bench = Bench(tmp_path).pack()
    bench.replay()
    text = render_style(build_page(bench.path, bench.verify()), "aec")
    assert "no band: shown, not judged by a number" in text


@pytest.mark.parametrize("style", ["aec", "aea"])
def test_a_bundle_that_cannot_be_read_has_an_appendix_that_says_so(style, tmp_path):
    page = pages.CASES["cut_off"][0](tmp_path)
    report = page.verify()
    text = render_style(build_page(page.path, report), style)
    assert f"**{report.verdict}**" in text
    assert "| bundle | cannot be read |" in text


def test_data_and_program_are_told_apart(page):
    record = page.reference.record
    reads = (
        *record.reads,
        FileRead(
            path="project:model.py",
            member="project/model.py",
            size_bytes=3,
            blake3="a" * 64,
        ),
        FileRead(path="project:secret.csv", size_bytes=9, blake3="b" * 64),
        FileRead(path="missing:gone.csv", size_bytes=0, blake3=""),
    )
    held = WithheldFile(name="secret.csv", size_bytes=9, blake3="b" * 64)
    changed = msgspec.structs.replace(record, reads=reads, withheld=(held,))
    assert programs(changed) == ("model.py", "train.py")
    assert [row[2] for row in data_rows(changed)] == [
        "in the bundle",
        "kept by its holder; the bundle has size and digest",
    ]
