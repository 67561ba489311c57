import re

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reprobundle.format.findings import (
    EnvironmentDifference,
    Finding,
    OutputComparison,
    Report,
    Verdict,
)
from reprobundle.report.screen import Screen
from reprobundle.report.terminal import render_report
from reprobundle.verify.checks import finding
from tests.report import reports

PLAIN = Screen()
COLOUR = re.compile(r"\x1b\[[\d;]+m")


def test_a_bit_identical_replay_takes_a_few_lines():
    assert render_report(reports.REPRODUCED, PLAIN) == (
        "file          digits.rpb.zip  bundle 3f9a2c81d07b  format 1.0\n"
        "integrity     ✔ container  ✔ member-digest (2)\n"
        "\n"
        "replay        9b1f0c22d3aa  on cpu\n"
        "\n"
        "  output        kind             compared  outside  max abs  max rel  result\n"
        "  metrics.json  document number         1        0        0        0"
        "  ✔ bit-identical\n"
        "\n"
        "              metrics.json: left out by rule: elapsed_s\n"
        "\n"
        "VERDICT  REPRODUCED, bit-identical (exit 0)"
    )


def test_a_replay_that_differs_shows_where_and_against_which_rule():
    assert render_report(reports.NOT_REPRODUCED, PLAIN) == (
        "file          digits.rpb.zip  bundle 3f9a2c81d07b  format 1.0\n"
        "integrity     ✔ container  ✔ member-digest (2)  ? chunk-digests\n"
        "reference     ⚠ vacuous-tolerance\n"
        "            ⚠ vacuous-tolerance at out/*.npy: every value would meet it [V8]\n"
        "completeness  ✔ has-lockfile\n"
        "acceptance    – lists-pressure\n"
        "\n"
        "replay        9b1f0c22d3aa  on cuda\n"
        "\n"
        "  environment       reference  here\n"
        "  torch.allow_tf32  False      True          ⚠ can change numbers\n"
        "  cpu.model         AMD EPYC   Apple M2 Pro\n"
        "\n"
        "  output          kind             compared  outside    max abs  max rel"
        "  result\n"
        "  out/logits.npy  arrays float32     20,000   19,100  0.0009537    45.21"
        "  ✘ outside-tolerance\n"
        "  figure.png      bytes                   -        -          -        -"
        "  ✘ missing\n"
        "  metrics.json    document number         1        0          0        0"
        "  ✔ bit-identical\n"
        "\n"
        "              out/logits.npy: 95.5 % of the elements lie outside; worst at "
        "[12, 3]; reference\n"
        "              0.01172, here 0.54137; rule rtol 1.3e-06, atol 1e-05\n"
        "              figure.png: the replay did not write it\n"
        "              metrics.json: left out by rule: elapsed_s\n"
        "\n"
        "not checked   chunk-digests  (--verbose says why)\n"
        "why           2 of 3 outputs are not the same\n"
        "VERDICT  NOT REPRODUCED (exit 10)"
    )


def test_an_incomplete_bundle_names_what_was_not_checked():
    assert render_report(reports.INCOMPLETE, PLAIN) == (
        "file          digits.rpb.zip  bundle 3f9a2c81d07b  format 1.0\n"
        "integrity     ✔ container  ✔ member-digest (2)  ? chunk-digests\n"
        "completeness  ✔ has-lockfile  ? has-memory-log\n"
        "\n"
        "not checked   chunk-digests  has-memory-log  (--verbose says why)\n"
        "why           has-memory-log (runs/1): no sample was taken\n"
        "VERDICT  INCOMPLETE (exit 11)"
    )


def test_a_tampered_bundle_names_the_member_and_both_digests():
    assert render_report(reports.TAMPERED, PLAIN) == (
        "file          digits.rpb.zip  bundle 3f9a2c81d07b  format 1.0\n"
        "integrity     ✔ container  ✘ member-digest (1 of 2)\n"
        "            ✘ member-digest at project/model.py: the content was altered; "
        "expected abababababab…,\n"
        "              got cdcdcdcdcdcd… [V4]\n"
        "\n"
        "not checked   outputs  (--verbose says why)\n"
        "why           member-digest (project/model.py): the content was altered\n"
        "next          obtain the bundle again\n"
        "VERDICT  TAMPERED (exit 21)"
    )


def test_a_bundle_that_nobody_replayed_says_so_last_and_how_to_go_on():
    assert render_report(reports.NOT_YET_REPLAYED, PLAIN) == (
        "file          digits.rpb.zip  bundle 3f9a2c81d07b  format 1.0\n"
        "integrity     ✔ container  ✔ member-digest (2)\n"
        "result        ? replayed\n"
        "\n"
        "not checked   replayed  (--verbose says why)\n"
        "why           replayed: nobody has replayed it\n"
        "next          reprobundle replay digits.rpb.zip\n"
        "VERDICT  INTACT, NOT YET REPLAYED (exit 11)"
    )


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


def test_an_unreadable_file_has_a_report_too():
    unreadable = reports.report(
        Verdict.UNREADABLE,
        reasons=("this is a PDF",),
        findings=(),
        bundle="",
        format_version="",
        file="paper.pdf",
    )
    assert render_report(unreadable, PLAIN) == (
        "file          paper.pdf  no bundle id\n"
        "\n"
        "why           this is a PDF\n"
        "VERDICT  UNREADABLE (exit 21)"
    )


@pytest.mark.parametrize("verdict", Verdict)
def test_the_last_line_is_the_only_verdict_line(verdict):
    lines = render_report(reports.report(verdict), PLAIN).split("\n")
    status = reports.report(verdict).exit_status
    assert lines[-1] == f"VERDICT  {verdict.value} (exit {status})"
    assert not any(line.startswith("VERDICT") for line in lines[:-1])


@pytest.mark.parametrize("report", reports.ALL)
@pytest.mark.parametrize("verbose", [False, True])
def test_no_word_of_a_verdict_appears_that_the_report_does_not_hold(report, verbose):
    given_words = msgspec.json.encode(report).decode()
    shown = render_report(report, PLAIN, verbose=verbose)
    invented = [
        verdict.value
        for verdict in Verdict
        if verdict.value in shown and verdict.value not in given_words
    ]
    assert invented == []
    assert "replicated" not in shown.lower()


def test_the_verdict_is_repeated_word_for_word_even_if_it_is_none_we_know():
    odd = msgspec.structs.replace(reports.REPRODUCED, verdict="MAYBE", exit_status=77)
    assert render_report(odd, PLAIN).endswith("\nVERDICT  MAYBE (exit 77)")


def test_several_replays_each_show_their_own_verdict():
    both = reports.report(
        Verdict.NOT_REPRODUCED,
        reasons=("one of two replays differs",),
        judgements=(
            reports.judgement(Verdict.BIT_IDENTICAL, outputs=(reports.LOSS,)),
            reports.judgement(
                Verdict.NOT_REPRODUCED, reasons=("a.npy differs",), replay="f" * 64
            ),
        ),
    )
    lines = render_report(both, PLAIN).split("\n")
    assert "replay        9b1f0c22d3aa  on cpu  REPRODUCED, bit-identical" in lines
    assert "replay        ffffffffffff  on cpu  NOT REPRODUCED" in lines
    assert "why           a.npy differs" in lines


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


def test_a_note_does_not_repeat_itself():
    part = msgspec.structs.replace(reports.LOGITS.parts[0], problem="shape differs")
    output = msgspec.structs.replace(
        reports.LOGITS, reason="shape differs", parts=(part,)
    )
    judged = reports.judgement(Verdict.NOT_REPRODUCED, outputs=(output,))
    report = reports.report(Verdict.NOT_REPRODUCED, judgements=(judged,))
    assert render_report(report, PLAIN).count("shape differs") == 1


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


def test_numeric_differences_of_the_environment_are_never_left_out():
    numeric = tuple(
        EnvironmentDifference(name=f"n{at}", reference="0", replay="1", grade="numeric")
        for at in range(30)
    )
    other = tuple(
        EnvironmentDifference(name=f"o{at}", reference="0", replay="1", grade="other")
        for at in range(30)
    )
    drifted = reports.report(
        Verdict.WITH_WARNINGS,
        judgements=(
            reports.judgement(Verdict.WITH_WARNINGS, environment=(*other, *numeric)),
        ),
    )
    shown = render_report(drifted, PLAIN)
    assert shown.count("⚠ can change numbers") == 30
    assert "and 26 more differences not known to change numbers" in shown


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


HOSTILE = [
    "a\nVERDICT  REPRODUCED, bit-identical (exit 0)",
    "\x1b[2J\x1b[1;32mREPRODUCED",
    "\x9b32m",
    "gpj.\u202exe",
    "[bold red]x[/]",
    "\r" + " " * 90 + "VERDICT  INTACT",
    "x" * 100_000,
    "数" * 500,
    "lone \ud800",
    "\u2028\u2029\x85\x0b\x0c",
]


def hostile_report(text: str) -> Report:
    return reports.report(
        Verdict.NOT_REPRODUCED,
        reasons=(text,),
        not_checked=(text,),
        file=text,
        bundle=text,
        format_version=text,
        findings=(
            Finding(
                check=text,
                id=text,
                outcome="fail",
                where=text,
                expected=text,
                got=text,
                reason=text or "why",
                advice=text,
            ),
        ),
        judgements=(
            reports.judgement(
                Verdict.NOT_REPRODUCED,
                reasons=(text + "!",),
                device=text,
                replay=text,
                environment=(
                    EnvironmentDifference(
                        name=text, reference=text, replay=text, grade="numeric"
                    ),
                ),
                outputs=(
                    OutputComparison(
                        name=text,
                        kind=text,
                        format=text,
                        result="outside-tolerance",
                        reason=text,
                        ignored=(text,),
                        parts=(
                            msgspec.structs.replace(
                                reports.LOGITS.parts[0],
                                name=text,
                                dtype=text,
                                expected=text,
                                got=text,
                                problem=text,
                            ),
                        ),
                    ),
                ),
            ),
        ),
    )


def assert_tame(shown: str, screen: Screen) -> None:
    lines = shown.split("\n")
    assert all(line.isprintable() for line in lines)
    shown.encode(screen.encoding)
    assert lines[-1] == "VERDICT  NOT REPRODUCED (exit 10)"
    assert not any(line.startswith("VERDICT") for line in lines[:-1])


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("verbose", [False, True])
def test_hostile_text_cannot_steer_the_terminal_or_forge_a_verdict_line(text, verbose):
    assert_tame(render_report(hostile_report(text), PLAIN, verbose=verbose), PLAIN)


@given(
    st.text(max_size=60),
    st.integers(min_value=32, max_value=120),
    st.sampled_from(["utf-8", "ascii", "latin-1"]),
)
@settings(max_examples=60)
def test_no_text_width_or_encoding_breaks_the_report(text, width, encoding):
    screen = Screen(width=width, encoding=encoding)
    assert_tame(render_report(hostile_report(text), screen), screen)


def test_markup_of_a_console_library_is_shown_as_it_is():
    shown = render_report(hostile_report("[bold red]x[/]"), PLAIN)
    assert "why           [bold red]x[/]" in shown


@pytest.mark.parametrize("width", [32, 40, 60, 80, 100])
@pytest.mark.parametrize("report", reports.ALL)
def test_no_line_is_wider_than_the_screen_but_the_verdict(report, width):
    *lines, _verdict = render_report(report, Screen(width=width)).split("\n")
    assert [line for line in lines if len(line) > width] == []


def test_on_a_narrow_screen_a_row_becomes_a_block():
    lines = render_report(reports.NOT_REPRODUCED, Screen(width=40)).split("\n")
    start = lines.index("  out/logits.npy")
    assert lines[start + 1 : start + 7] == [
        "    kind arrays float32",
        "    compared 20,000",
        "    outside 19,100",
        "    max abs 0.0009537",
        "    max rel 45.21",
        "    result ✘ outside-tolerance",
    ]


def test_ascii_is_enough():
    shown = render_report(reports.NOT_REPRODUCED, Screen(encoding="ascii"))
    assert shown.isascii()
    assert "integrity     ok container  ok member-digest (2)  ? chunk-digests" in shown
    assert "X outside-tolerance" in shown


@pytest.mark.parametrize("report", reports.ALL)
def test_colour_adds_nothing_but_colour(report):
    shown = render_report(report, Screen(colour=True))
    assert COLOUR.search(shown)
    assert COLOUR.sub("", shown) == render_report(report, Screen(colour=False))


@pytest.mark.parametrize(
    ("report", "code"),
    [
        (reports.REPRODUCED, 32),
        (reports.NOT_REPRODUCED, 31),
        (reports.INCOMPLETE, 33),
        (reports.TAMPERED, 31),
    ],
)
def test_the_colour_of_the_verdict_follows_the_exit_status(report, code):
    last = render_report(report, Screen(colour=True)).split("\n")[-1]
    assert f"\x1b[1;{code}m{report.verdict}\x1b[0m" in last


def test_the_same_report_is_rendered_the_same_way_twice():
    again = msgspec.convert(msgspec.to_builtins(reports.NOT_REPRODUCED), Report)
    assert render_report(again, PLAIN) == render_report(reports.NOT_REPRODUCED, PLAIN)
