import re

import msgspec
import pytest

from reprobundle.format.findings import (
    EnvironmentDifference,
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
        "  torch.allow_tf32  False      True          ⚠ TF32 keeps 10 mantissa bits "
        "of a product\n"
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


@pytest.mark.parametrize("width", [32, 40, 60, 80, 100])
@pytest.mark.parametrize("report", reports.ALL)
def test_no_line_is_wider_than_the_screen_but_the_verdict(report, width):
    *lines, _verdict = render_report(report, Screen(width=width)).split("\n")
    assert [line for line in lines if len(line) > width] == []


def test_on_a_narrow_screen_a_row_becomes_a_block():
    lines = render_report(reports.NOT_REPRODUCED, Screen(width=40)).split("\n")
    start = lines.index("  out/logits.npy")
    assert lines[start + 1 : start + 4] == [
        "    kind arrays float32  compared 20,000",
        "    outside 19,100  max abs 0.0009537",
        "    max rel 45.21",
    ]
    assert lines[start + 4] == "    result ✘ outside-tolerance"


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


def test_a_failure_without_outputs_is_told_beside_the_verdict():
    same = finding("same-failure", "pass", "same error")
    one = reports.judgement(Verdict.BIT_IDENTICAL, findings=(same,))
    report = msgspec.structs.replace(reports.REPRODUCED, judgements=(one,))
    said = "compared      the expected failure only: there is no output to compare"
    assert said in render_report(report, PLAIN)
    assert (
        "compared    " not in render_report(reports.REPRODUCED, PLAIN).split("\n\n")[-1]
    )
