from pathlib import Path

import pytest

from reprobundle.report.early import EarlyLines
from reprobundle.report.screen import Screen
from reprobundle.report.terminal import render_report
from reprobundle.verify.asked import SoFar
from reprobundle.verify.checks import finding
from reprobundle.verify.verify import verify_bundle
from tests.report import reports

VECTORS = Path(__file__).parent.parent / "vectors"
PLAIN = Screen()


def told(*, verbose=False):
    shown: list[str] = []
    return shown, EarlyLines(shown.append, PLAIN, verbose=verbose)


def so_far(report, *findings):
    return SoFar(report.file, report.bundle, report.format_version, findings)


def verified(name, **options):
    """Return what was shown step by step, and the report as shown at once."""
    verbose = options.pop("verbose", False)
    shown, lines = told(verbose=verbose)
    bundle = VECTORS / name / "bundle.rpb.zip"
    report = verify_bundle(bundle, told=lines.tell, **options)
    lines.end(report)
    return shown, render_report(report, PLAIN, verbose=verbose) + "\n"


FRESH = "verdict/not_yet_replayed_fail"
OTHER_NUMBER = VECTORS / "verdict" / "number_outside_tolerance_fail" / "replay.rpr.zip"


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("verdict/nan_in_same_places", {}),
        ("verdict/nan_in_same_places", {"verbose": True}),
        ("verdict/nan_in_same_places", {"deep": True, "integrity_only": True}),
        (FRESH, {}),
        (FRESH, {"replay_file": OTHER_NUMBER}),
    ],
)
def test_the_lines_are_those_of_the_whole_report(name, options):
    shown, at_once = verified(name, **options)
    assert "".join(shown) == at_once
    heading, integrity, rest = shown
    assert heading.startswith("file ")
    assert heading.count("\n") == 1
    assert integrity.startswith("integrity ")
    assert integrity.endswith("\n")
    assert "VERDICT" not in heading + integrity
    assert "VERDICT" in rest


def test_integrity_that_fails_waits_for_its_reasons():
    shown, at_once = verified("container/content_altered_fail")
    assert "".join(shown) == at_once
    assert len(shown) == 2  # the heading, and all the rest with the verdict
    assert "✘ member-digest" in shown[1]


def test_what_is_no_bundle_has_no_early_line():
    shown, at_once = verified("container/trailing_byte_fail")
    assert shown == [at_once]
    assert "no bundle id" in at_once


def test_what_turned_out_otherwise_is_shown_as_a_whole():
    report = reports.TAMPERED
    shown, lines = told()
    lines.tell(so_far(report, finding("member-digest", "pass")))
    assert "✔ member-digest" in shown[0]
    lines.end(report)
    assert shown[1] == render_report(report, PLAIN) + "\n"
