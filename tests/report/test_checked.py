import msgspec

from reprobundle.format.findings import (
    Finding,
    Verdict,
)
from reprobundle.report.screen import Screen
from reprobundle.report.terminal import render_report
from reprobundle.verify.checks import finding
from tests.report import reports

PLAIN = Screen()


def test_verbose_says_why_each_check_was_not_made():
    shown = render_report(reports.INCOMPLETE, PLAIN, verbose=True)
    assert (
        "            ? chunk-digests was not checked: only whole members were checked; "
        "add --deep [V4]\n"
    ) in shown
    assert (
        "? has-memory-log at runs/1 was not checked: no sample was taken [V9]" in shown
    )
    assert "not checked   chunk-digests  has-memory-log\n" in shown


def test_a_warning_is_explained_once():
    warned = reports.report(
        Verdict.WITH_WARNINGS,
        reasons=("vacuous-tolerance (out/*.npy): every value would meet it",),
        findings=(*reports.INTACT, reports.VACUOUS),
    )
    assert render_report(warned, PLAIN).count("every value would meet it") == 1
    assert render_report(reports.NOT_REPRODUCED, PLAIN).count("would meet it") == 1


def test_the_passed_checks_of_a_replay_are_counted_and_the_others_named():
    checked = reports.report(
        Verdict.WITH_WARNINGS,
        judgements=(
            reports.judgement(
                Verdict.WITH_WARNINGS,
                findings=(
                    finding("same-run", "pass"),
                    finding("same-seed", "pass"),
                    finding("cpu-fallback", "warn", "an operator ran on the CPU"),
                    finding("same-inputs", "not-checked", "the log is cut short"),
                ),
            ),
        ),
    )
    shown = render_report(checked, PLAIN)
    assert "checks        ✔ 2 checks  ⚠ cpu-fallback  ? same-inputs\n" in shown
    assert "⚠ cpu-fallback: an operator ran on the CPU [V15]" in shown
    every = render_report(checked, PLAIN, verbose=True)
    assert "checks        ✔ same-run  ✔ same-seed  ⚠ cpu-fallback" in every


def test_every_reason_is_shown_once():
    shown = render_report(reports.NOT_REPRODUCED, PLAIN)
    assert shown.count("2 of 3 outputs are not the same") == 1


def test_a_warning_that_was_allowed_is_still_shown_as_one():
    allowed = msgspec.structs.replace(reports.VACUOUS, allowed=True)
    shown = render_report(reports.report(Verdict.INTACT, findings=(allowed,)), PLAIN)
    assert "every value would meet it; allowed by the caller [V8]" in shown
    assert "⚠ vacuous-tolerance" in shown


def test_what_a_note_on_an_output_tells_is_not_told_by_its_finding_too():
    differs = finding(
        "output-differs",
        "fail",
        reports.LOGITS.reason,
        where=reports.LOGITS.name,
        expected="0.01172",
        got="0.54137",
    )
    other = finding("output-differs", "fail", "something else", where="x.npy")
    judged = reports.judgement(
        Verdict.NOT_REPRODUCED, outputs=(reports.LOGITS,), findings=(differs, other)
    )
    report = reports.report(Verdict.NOT_REPRODUCED, judgements=(judged,))
    shown = render_report(report, PLAIN)
    assert shown.count(reports.LOGITS.reason) == 1
    assert "✘ output-differs at x.npy: something else [V17]" in shown
    assert "checks        ✘ output-differs (2)" in shown


def test_verbose_shows_every_finding_that_says_more_than_its_tick():
    bundle = reports.report(
        Verdict.INTACT,
        findings=(
            *reports.INTACT,
            finding("has-seeds", "pass", "3 calls", where="train.py:12"),
            reports.NO_MAC,
        ),
    )
    assert "has-seeds at" not in render_report(bundle, PLAIN)
    shown = render_report(bundle, PLAIN, verbose=True)
    assert "            ✔ member-digest at project/train.py [V4]" in shown
    assert "            ✔ has-seeds at train.py:12: 3 calls [V9]" in shown
    assert "– lists-pressure: the reference ran on Linux [V10]" in shown
    assert "container [V1]" not in shown


def many(number: int, **fields: str) -> tuple[Finding, ...]:
    return tuple(
        msgspec.convert(
            {"check": "V4", "id": "member-digest", "where": f"{at}.py", **fields},
            Finding,
        )
        for at in range(number)
    )


def test_what_one_screen_has_no_room_for_is_counted_and_shown_with_verbose():
    damaged = reports.report(
        Verdict.TAMPERED, findings=many(40, outcome="fail", reason="altered")
    )
    brief = render_report(damaged, PLAIN)
    assert brief.count("member-digest at ") == 3
    assert "and 37 more findings of member-digest (--verbose shows all)" in brief
    whole = render_report(damaged, PLAIN, verbose=True)
    assert whole.count("member-digest at ") == 40
    assert "--verbose" not in whole


def test_a_finding_whose_reason_is_cut_off_is_told_in_its_place():
    findings = many(9, outcome="fail", reason="altered")
    damaged = reports.report(
        Verdict.TAMPERED,
        findings=findings,
        reasons=tuple(f"{it.id} ({it.where}): {it.reason}" for it in findings),
    )
    shown = render_report(damaged, PLAIN)
    assert "and 3 more reasons" in shown
    for at in range(9):
        assert shown.count(f"{at}.py") == 1
