"""The table of the selftest."""

from __future__ import annotations

from reprobundle.format.selftest_report import MutationRow, SelftestReport
from reprobundle.report.selftested import render_selftest

CAUGHT = MutationRow(
    name="drop",
    title="a member taken out",
    result="caught",
    copies=9,
    verdicts=("TAMPERED",),
    reasons=("membership",),
)
MISSED = MutationRow(
    name="zeros", title="zeros instead of values", result="passed", copies=1
)
NEITHER = MutationRow(
    name="no-input",
    title="no input sample",
    result="not-possible",
    detail="the bundle holds no input",
)


def rendered(*rows, exit_status=0):
    return render_selftest(
        SelftestReport(
            file="x.rpb.zip",
            bundle="ab" * 32,
            control="REPRODUCED, bit-identical",
            rows=rows,
            exit_status=exit_status,
        )
    )


def test_what_was_caught_stands_with_its_reason():
    shown = rendered(CAUGHT, NEITHER)
    assert "a member taken out" in shown
    assert "membership" in shown
    assert "all 1 mutations caught, 9 altered copies verified" in shown


def test_what_was_not_tried_is_not_counted_as_caught():
    shown = rendered(CAUGHT, NEITHER)
    assert "1 not possible on this bundle were not tried" in " ".join(shown.split())
    assert "the bundle holds no input" in shown


def test_what_was_missed_is_named_in_the_last_line():
    last = rendered(CAUGHT, MISSED, exit_status=10).splitlines()[-1]
    assert "1 of 2 mutations not caught: zeros" in last
