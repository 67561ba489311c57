"""What `pack` says at its end: no more than was compared."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from reprobundle.format.findings import OutputComparison
from reprobundle.format.record import (
    ErrorReport,
    Outcome,
)
from reprobundle.format.writer import SealedBundle
from reprobundle.pack.options import Packed
from reprobundle.report.packed import render_packed
from reprobundle.report.screen import Screen
from reprobundle.verify.restart import Resumed
from tests.report.bundles import BUNDLE, RECORD


def record(message=""):
    """Return a run without outputs; with a message, one that failed as expected."""
    error = ErrorReport(
        type="ValueError", message=message, masked=message, where="t.py:1", traceback=""
    )
    outcome = Outcome(exit_status=0, completed=True)
    if message:
        outcome = Outcome(
            exit_status=1, completed=True, error=error, expected_failure=True
        )
    return msgspec.structs.replace(RECORD, outcome=outcome, outputs=())


def said(reference, repeats=(), **fields):
    packed = Packed(
        path=Path("x.rpb.zip"),
        sealed=SealedBundle(id=BUNDLE, members=(), size_bytes=1),
        reference=reference,
        repeats=tuple(repeats),
        repeatable=True,
        **fields,
    )
    lines = render_packed(packed, Screen()).splitlines()
    return {line.split()[0]: " ".join(line.split()[1:]) for line in lines}


def output(name, result):
    return OutputComparison(name=name, kind="bytes", format="bytes", result=result)


def test_a_failure_without_outputs_claims_no_bits():
    shown = said(record("nan"), [record("nan")])
    assert shown["repeat"] == "same failure; there is no output to compare"


def test_a_repeat_that_fails_otherwise_is_no_same_failure():
    shown = said(record("nan"), [record("inf")])
    assert shown["repeat"].startswith("NOT THE SAME FAILURE in a second run: another")


@pytest.mark.parametrize(
    ("resumed", "words"),
    [
        (
            Resumed(outputs=(output("a", "bit-identical"),)),
            "agrees with the straight run: 1 output bit-identical",
        ),
        (
            Resumed(outputs=(output("a", "bit-identical"), output("b", "missing"))),
            "DIFFERS from the straight run in 1 of 2 outputs: b",
        ),
        (Resumed(failed="it ended"), "DIFFERS from the straight run: it ended"),
        (Resumed(unmade="it began anew"), "not checked: it began anew"),
    ],
)
def test_the_restart_has_a_line_with_its_result(resumed, words):
    assert said(record(), [record()], resumed=resumed)["restart"] == words


def test_a_restart_that_nobody_asked_for_has_no_line():
    assert "restart" not in said(record(), [record()])
