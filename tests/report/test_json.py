import msgspec
import pytest

from reprobundle.format.canonical import decode
from reprobundle.format.findings import Report, Verdict
from reprobundle.report.json import report_json
from tests.report import reports


@pytest.mark.parametrize("report", reports.ALL)
def test_a_report_comes_back_equal(report):
    data = report_json(report)
    assert decode(data, Report, where="report", rule="R") == report


def test_numbers_that_json_lacks_are_strings_and_come_back():
    part = msgspec.structs.replace(
        reports.LOGITS.parts[0], max_abs="nan", max_rel="inf", relative_l2="-inf"
    )
    output = msgspec.structs.replace(reports.LOGITS, parts=(part,))
    judged = reports.judgement(Verdict.NOT_REPRODUCED, outputs=(output,))
    report = reports.report(Verdict.NOT_REPRODUCED, judgements=(judged,))
    data = report_json(report)
    assert b'"max_abs": "nan"' in data
    assert b'"max_rel": "inf"' in data
    assert decode(data, Report, where="report", rule="R") == report


def test_equal_reports_are_equal_bytes_with_sorted_keys_and_one_line_end():
    data = report_json(reports.NOT_REPRODUCED)
    again = msgspec.convert(msgspec.to_builtins(reports.NOT_REPRODUCED), Report)
    assert data == report_json(again)
    keys = [line[2:].split(b'"')[0] for line in data.splitlines() if line[:2] == b' "']
    assert keys == sorted(keys)
    assert data.endswith(b"}\n")
