import msgspec

from reprobundle.format.findings import (
    Verdict,
)
from reprobundle.report.screen import Screen
from reprobundle.report.terminal import render_report
from tests.report import reports

PLAIN = Screen()


def test_a_note_does_not_repeat_itself():
    part = msgspec.structs.replace(reports.LOGITS.parts[0], problem="shape differs")
    output = msgspec.structs.replace(
        reports.LOGITS, reason="shape differs", parts=(part,)
    )
    judged = reports.judgement(Verdict.NOT_REPRODUCED, outputs=(output,))
    report = reports.report(Verdict.NOT_REPRODUCED, judgements=(judged,))
    assert render_report(report, PLAIN).count("shape differs") == 1


def test_many_outputs_are_counted_by_result_with_the_bad_ones_shown():
    fine = tuple(
        msgspec.structs.replace(reports.LOSS, name=f"out/{at}.json", ignored=())
        for at in range(200)
    )
    crowd = reports.report(
        Verdict.NOT_REPRODUCED,
        judgements=(
            reports.judgement(
                Verdict.NOT_REPRODUCED, outputs=(*fine, reports.LOGITS, reports.GONE)
            ),
        ),
    )
    brief = render_report(crowd, PLAIN)
    assert "✘ outside-tolerance" in brief
    assert "✘ missing" in brief
    assert "and 190 more outputs bit-identical (--verbose shows all)" in brief
    assert len(brief.split("\n")) < 30
    assert "out/199.json" in render_report(crowd, PLAIN, verbose=True)


def test_a_part_that_is_outside_stands_below_its_output():
    weights = msgspec.structs.replace(
        reports.LOGITS,
        name="model.pt",
        parts=tuple(
            msgspec.structs.replace(reports.LOGITS.parts[0], name=name, outside=outside)
            for name, outside in (("fc.weight", 0), ("fc.bias", 3))
        ),
    )
    shown = render_report(
        reports.report(
            Verdict.NOT_REPRODUCED,
            judgements=(reports.judgement(Verdict.NOT_REPRODUCED, outputs=(weights,)),),
        ),
        PLAIN,
    )
    rows = [line.split() for line in shown.split("\n") if line.startswith("  ")]
    assert rows[1][:5] == ["model.pt", "arrays", "float32", "40,000", "3"]
    assert rows[2][:4] == ["fc.bias", "float32", "20,000", "3"]
    assert "model.pt [fc.bias]: 95.5 %" in shown
    assert "fc.weight" not in shown


def test_a_nan_is_the_largest_error_of_an_output():
    parts = tuple(
        msgspec.structs.replace(reports.LOGITS.parts[0], name=name, max_abs=error)
        for name, error in (("a", "nan"), ("b", 1.0))
    )
    output = msgspec.structs.replace(reports.LOGITS, parts=parts)
    shown = render_report(
        reports.report(
            Verdict.NOT_REPRODUCED,
            judgements=(reports.judgement(Verdict.NOT_REPRODUCED, outputs=(output,)),),
        ),
        PLAIN,
    )
    (row,) = [line for line in shown.split("\n") if line.startswith("  out/logits.npy")]
    assert row.split()[5] == "nan"


def test_agreement_that_says_little_is_remarked():
    part = msgspec.structs.replace(reports.LOSS.parts[0], zero=True, nan=3, infinite=1)
    output = msgspec.structs.replace(reports.LOSS, parts=(part,), ignored=())
    shown = render_report(
        reports.report(
            Verdict.BIT_IDENTICAL,
            judgements=(reports.judgement(Verdict.BIT_IDENTICAL, outputs=(output,)),),
        ),
        PLAIN,
    )
    assert "metrics.json [loss]: every reference element is zero; NaN on both" in shown
    assert "the same infinity on both sides at 1 place" in shown
