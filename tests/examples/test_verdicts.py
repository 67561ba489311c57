"""The three examples on other machines, altered, and a failure that a pipe masks.

The table of docs/verdict.md is made by the same cases.
"""

from __future__ import annotations

import os

import pytest

from tools.verdict_cases import cases

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one thread is all there is"),
]

SAME = "REPRODUCED, bit-identical"
CLOSE = "REPRODUCED, within tolerance"
WARNED = "REPRODUCED WITH WARNINGS"
NO = "NOT REPRODUCED"
# Case → verdicts that are right, the finding that has to be the first reason, the first
# likely cause. Whether other kernels or threads change a number depends on the machine.
SOUND = ((SAME,), "", "")
FILES = ((NO,), "same-files", "changed-files")
EXPECTED = {
    ("digits", "as it is"): SOUND,
    ("digits", "other kernels"): ((NO,), "output-differs", "cpu-capability"),
    ("digits", "one thread"): ((NO,), "output-differs", "threads"),
    ("digits", "three threads"): ((SAME, NO), "", ""),
    ("digits", "products in bfloat16"): ((NO,), "output-differs", "autocast"),
    ("digits", "changed script"): FILES,
    ("digits", "changed input"): FILES,
    ("inference", "as it is"): SOUND,
    ("inference", "other kernels"): ((SAME, WARNED), "", ""),
    ("inference", "one thread"): ((SAME, WARNED), "", ""),
    ("inference", "three threads"): ((SAME, WARNED), "", ""),
    ("inference", "products in bfloat16"): ((NO,), "output-differs", "autocast"),
    ("inference", "changed script"): FILES,
    ("inference", "changed input"): FILES,
    ("expected_failure", "as it is"): SOUND,
    ("expected_failure", "other kernels"): ((SAME, WARNED), "", ""),
    ("expected_failure", "one thread"): ((SAME, WARNED), "", ""),
    ("expected_failure", "three threads"): ((SAME, WARNED), "", ""),
    ("expected_failure", "products in bfloat16"): (
        (NO,),
        "output-differs",
        "autocast",
    ),
    ("expected_failure", "changed script"): (
        ("DIFFERENT FAILURE",),
        "same-failure",
        "changed-files",
    ),
    ("expected_failure", "changed input"): FILES,
    ("a pipeline", "masked failure"): ((NO,), "masked-failure", "masked-failure"),
}


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cases")
    return {
        (example, case.partition(" (")[0]): report
        for example, case, report in cases(folder)
    }


def test_every_case_has_an_expected_answer(reports):
    assert set(reports) == set(EXPECTED)


@pytest.mark.parametrize("case", EXPECTED, ids="-".join)
def test_each_case_gets_its_verdict_for_its_reason(reports, case):
    report = reports[case]
    verdicts, reason, cause = EXPECTED[case]
    assert report.verdict in verdicts
    assert (report.reasons[0] if report.reasons else "").startswith(reason)
    if cause:
        assert report.judgements[-1].causes[0].id == cause


@pytest.mark.parametrize("case", EXPECTED, ids="-".join)
def test_what_is_not_bit_identical_says_what_to_try(reports, case):
    report = reports[case]
    if report.verdict not in (SAME, CLOSE):
        assert any(one.command for one in report.judgements[-1].causes)
