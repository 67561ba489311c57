"""What an issue says of the values of documents and tables of equal bytes."""

from __future__ import annotations

import json

import pytest

from reprobundle.format.parting import split_bundle
from reprobundle.format.reader import open_bundle
from reprobundle.report.issue import Materials, render_issue
from reprobundle.report.issue_values import MOST_BYTES, values_in
from reprobundle.report.page import build_page
from tests.verify.builder import OUTPUTS, Bench, Run

HISTORY = {
    "history": [{"loss": 0.5}, {"loss": 0.25}],
    "ok": True,
    "note": "ada",
    "n": 7,
}
MADE = {
    "out/history.json": json.dumps(HISTORY).encode(),
    "out/log.jsonl": b'{"step": 0, "loss": 2.0}\n{"step": 1, "loss": 1.5}\n',
    "out/curve.csv": b"step,loss,who\n0,2.5,ada\n1,1.25,bob\n",
    "out/wide.csv": b"a,b,c,d,e\n1.5,2.5,3.5,4.5,5.5\n",
    "out/words.json": b'{"who": "ada"}',
    "out/people.csv": b"email,score\nada@lab.example,1.5\nbob@lab.example,2.5\n",
    "out/long.csv": b"x\n" + b"0.125\n" * (MOST_BYTES // 6 + 1),
}
SAID = {
    "out/history.json": "json, 79 bytes; history[1].loss = 0.25, n = 7",
    "out/log.jsonl": "jsonl, 50 bytes; [1].step = 1, [1].loss = 1.5",
    "out/curve.csv": "csv, 2 rows; last step = 1, last loss = 1.25",
    "out/wide.csv": "csv, 1 row; last a = 1.5, last b = 2.5, last c = 3.5 and 2 more "
    "numbers",
    "out/words.json": "json, 14 bytes; no values: it holds no number",
    "out/people.csv": "csv, 2 rows; no values: it looks like personal-column",
    "out/long.csv": "csv, 174,763 rows; no values: too long to be read for one line",
}


def rows_of(bench):
    page = build_page(bench.path, bench.verify())
    with open_bundle(bench.path) as opened:
        text = render_issue(page, Materials(values=values_in(opened, page)))
    lines = [line for line in text.splitlines() if line.startswith("| `out/")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return {name.strip("`"): rest for name, *rest in cells}, text


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    bench = Bench(folder, reference=Run(dict(MADE)), repeat=None).pack()
    bench.replay(Run(dict(MADE)))
    return bench


@pytest.fixture(scope="module")
def rows(bench):
    return rows_of(bench)


@pytest.mark.parametrize("name", MADE)
def test_both_sides_show_the_last_numbers_or_why_not(name, rows):
    expected, got, _, result = rows[0][name]
    assert (expected, got) == (f"`{SAID[name]}`",) * 2
    assert result == "`bit-identical`"


def test_no_text_of_a_table_or_document_is_shown(rows):
    assert "ada" not in rows[1]
    assert "bob" not in rows[1]


def test_a_run_that_nobody_repeated_shows_them_too(tmp_path):
    bench = Bench(tmp_path, reference=Run(dict(MADE)), repeat=None).pack()
    assert rows_of(bench)[0]["out/curve.csv"] == ["", f"`{SAID['out/curve.csv']}`"]


@pytest.mark.parametrize(
    ("stored", "why"),
    [
        ("none", "no values: only the digest is kept"),
        ("withheld", "no values: its author keeps the content"),
    ],
)
def test_what_is_not_kept_says_so(stored, why, tmp_path):
    run = Run({"out/metrics.json": OUTPUTS["out/metrics.json"]}, stored=stored)
    bench = Bench(tmp_path, reference=run, repeat=None).pack()
    assert rows_of(bench)[0]["out/metrics.json"][1].endswith(f"; {why}`")


def test_what_lies_in_the_other_part_says_so(bench, tmp_path):
    first = tmp_path / "1.rpb.zip"
    with open_bundle(bench.path) as opened:
        (moved,) = (one for one in opened.members if one.endswith("curve.csv"))
        split_bundle(opened, [moved], first=first, rest=tmp_path / "2.rpb.zip")
    with open_bundle(first) as opened:
        page = build_page(bench.path, bench.verify())
        said = values_in(opened, page)
    assert "2 rows; no values: the content is in the other part" in said.values()
