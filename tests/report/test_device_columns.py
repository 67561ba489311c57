"""Reference, mps and cpu in three columns, in every format."""

from __future__ import annotations

import msgspec
import pytest

from reprobundle.format.findings import (
    ArrayComparison,
    Finding,
    OutputComparison,
    Verdict,
)
from reprobundle.report.device_columns import device_columns
from reprobundle.report.html import render_html
from reprobundle.report.markdown import render_markdown
from reprobundle.report.page import Page
from reprobundle.report.screen import Screen
from reprobundle.report.terminal import render_report
from tests.report import reports
from tests.report.reports import LOGITS, LOSS

DIFFERENT = OutputComparison(
    name="metrics.json",
    kind="document",
    format="json",
    result="outside-tolerance",
    reason="loss",
    parts=(
        ArrayComparison(
            name="loss",
            dtype="number",
            elements=1,
            equal=False,
            outside=1,
            max_abs=0.5,
            expected="0.25",
            got="0.75",
        ),
    ),
)


def judged(device, *outputs, **changes):
    one = reports.judgement(
        Verdict.NOT_REPRODUCED, reasons=("x: y",), outputs=outputs, device=device
    )
    told = {"pass_name": "measured", "claim": "main", "occasion": "1" * 16, **changes}
    return msgspec.structs.replace(one, **told)


def report(*judgements):
    return reports.report(Verdict.NOT_REPRODUCED, judgements=judgements)


BOTH = report(judged("mps", DIFFERENT, LOGITS), judged("cpu", LOSS, LOGITS))


def test_each_output_has_a_cell_for_each_device():
    (table,) = device_columns(BOTH)
    assert (table.claim, table.devices) == ("main", ("mps", "cpu"))
    assert table.references == ("reference",)
    cells = {name.strip(): (reference, row) for name, reference, row in table.rows}
    assert cells["metrics.json"][1] == (
        "outside, abs 0.5",
        "bit-identical",
    )
    assert cells["loss"] == (("0.25",), ("0.75", "0.25"))
    assert cells["out/logits.npy"][0] == ("20,000 values",)


def near(expected, got):
    (part,) = DIFFERENT.parts
    part = msgspec.structs.replace(part, expected=expected, got=got, max_abs=1e-8)
    return msgspec.structs.replace(
        DIFFERENT, parts=(part,), result="within-tolerance", reason=""
    )


def on_its_own(device, run, *outputs):
    """Return a judgement against the sealed run of the same device."""
    found = Finding(check="V12", id="same-run", outcome="pass", got=device)
    return judged(device, *outputs, against=run, findings=(found,))


def test_a_number_stands_beside_the_sealed_run_it_was_compared_with():
    two = report(
        on_its_own("mps", 1, near("0.185", "0.18500001")),
        on_its_own("cpu", 4, near("0.184", "0.18400001")),
    )
    (table,) = device_columns(two)
    assert table.references == ("run 1, mps", "run 4, cpu")
    assert table.devices == ("mps", "cpu")
    (loss,) = [row for row in table.rows if row.name.strip() == "loss"]
    assert loss.references == ("0.185", "0.184")
    assert loss.cells == ("0.18500001", "0.18400001")
    assert "| `loss` | `0.185` | `0.184` | `0.18500001` | `0.18400001` |" in (
        render_markdown(Page(two))
    )
    assert '<th scope="col">run 4, cpu</th>' in render_html(Page(two))


def test_a_device_without_a_sealed_run_says_which_it_was_compared_with():
    found = Finding(check="V12", id="same-run", outcome="pass", got="cuda")
    far = judged("mps", DIFFERENT, against=1, findings=(found,))
    two = report(far, on_its_own("cpu", 4, DIFFERENT))
    (table,) = device_columns(two)
    assert table.devices == ("mps (of run 1)", "cpu")
    assert table.references == ("run 1, cuda", "run 4, cpu")


def test_a_number_that_equals_its_own_sealed_run_is_not_given_another_ones_value():
    two = report(
        on_its_own("mps", 1, near("0.185", "0.18500001")), on_its_own("cpu", 4, LOSS)
    )
    (table,) = device_columns(two)
    (loss,) = [row for row in table.rows if row.name.strip() == "loss"]
    assert loss.cells[1] != "0.185"


@pytest.mark.parametrize(
    "other",
    [
        report(judged("mps", DIFFERENT)),
        report(judged("mps", DIFFERENT), judged("cpu", LOSS, occasion="2" * 16)),
        report(judged("mps", DIFFERENT), judged("cpu", LOSS, claim="smoke")),
        report(judged("mps", DIFFERENT), judged("cpu", LOSS, pass_name="evidence")),
        report(judged("mps", DIFFERENT), judged("", LOSS)),
        report(judged("mps"), judged("cpu")),
    ],
    ids=["one device", "two replays", "two claims", "traced", "no device", "no output"],
)
def test_only_one_claim_of_one_replay_stands_side_by_side(other):
    assert device_columns(other) == []


def test_a_device_that_could_not_be_had_has_a_column_that_says_so():
    stopped = msgspec.structs.replace(
        judged("", requested="mps"), verdict="NOT RUN HERE"
    )
    (table,) = device_columns(report(stopped, judged("cpu", LOSS, requested="cpu")))
    assert table.devices == ("mps", "cpu")
    assert {row.cells for row in table.rows} == {("not run here", "bit-identical")}


def test_every_format_shows_the_columns():
    shown = render_report(BOTH, Screen(width=120))
    (heading,) = [line for line in shown.splitlines() if "claim main" in line]
    assert heading.split() == ["claim", "main", "reference", "mps", "cpu"]
    assert "| `loss` | `0.25` | `0.75` | `0.25` |" in render_markdown(Page(BOTH))
    assert "Devices side by side, claim main" in render_html(Page(BOTH))
