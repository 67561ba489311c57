"""A difference that grows with the steps is said in every format."""

from __future__ import annotations

import html

import numpy as np
import pytest

from reprobundle.report.drifting import drift_words
from reprobundle.report.html import render_html
from reprobundle.report.markdown import render_markdown
from reprobundle.report.page import build_page
from reprobundle.report.screen import Screen
from reprobundle.report.terminal import render_report
from tests.verify.builder import Bench, Run


def curve(seed):
    """Losses whose error grows by a factor of 1.6 with every step."""
    noise = np.random.default_rng(seed).standard_normal() * 1e-9 * 1.6 ** np.arange(40)
    losses = np.exp(-0.05 * np.arange(40)) + noise
    rows = b"".join(f"{value!r}\n".encode() for value in losses.tolist())
    return Run(outputs={"loss.csv": b"loss\n" + rows})


def bench_of(folder, run):
    bench = Bench(folder, reference=curve(1), repeat=None)
    bench.pack().replay(run)
    return bench, bench.verify()


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    return bench_of(tmp_path_factory.mktemp("grown"), curve(2))


def test_the_growth_the_ends_and_the_place_are_said(grown):
    _, report = grown
    (part,) = report.judgements[0].outputs[0].parts
    words = drift_words(part)
    assert words.startswith("the error grows ")
    assert "at row 0, " in words
    # Rows 32 to 39 are the last stretch of 0, 1, 2-3, 4-7 and so on.
    assert "in the last 8, outside the tolerance from row " in words


def test_every_format_says_it(grown):
    bench, report = grown
    page = build_page(bench.path, report)
    said = "outside the tolerance from row "
    assert said in render_report(report, Screen(width=400))
    assert said in render_markdown(page)
    assert said in html.unescape(render_html(page))


def test_an_error_that_is_there_from_the_first_row_on_is_no_drift(tmp_path):
    table = curve(1).outputs["loss.csv"].split()[1:]
    values = np.array(table, dtype=float) * (1 + 1e-3)
    rows = b"".join(f"{value!r}\n".encode() for value in values.tolist())
    _, report = bench_of(tmp_path, Run(outputs={"loss.csv": b"loss\n" + rows}))
    (part,) = report.judgements[0].outputs[0].parts
    assert part.problem
    assert drift_words(part) == ""
