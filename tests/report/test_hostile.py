import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reprobundle.format.assessment import (
    Assessment,
    AttachedAcceptance,
    Evidence,
    HeldFor,
    Point,
    Recommendation,
    RuleAnswer,
)
from reprobundle.format.findings import (
    EnvironmentDifference,
    ExperimentRun,
    Finding,
    OutputComparison,
    Report,
    Verdict,
)
from reprobundle.report.screen import Screen
from reprobundle.report.terminal import render_report
from tests.report import reports

PLAIN = Screen()


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
    report = reports.report(
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
    return msgspec.structs.replace(
        report,
        experiments=(
            ExperimentRun(
                replay=text,
                pair=text,
                side="A",
                asked=text,
                claim=text,
                pass_name=text,
                device=text,
                ending=text,
            ),
        ),
        acceptances=(hostile_acceptance(text),),
        assessment=hostile_assessment(text),
    )


HELD = "torch.version"


def hostile_acceptance(text: str) -> AttachedAcceptance:
    return AttachedAcceptance(
        id=text,
        by=text,
        where=text,
        when=text,
        role=text,
        second_person=text,
        state="stale",
        reasons=(text,),
        verdict=text,
        acceptance="not-decided",
        choice="undecided",
        rule=text,
        signed_by=(text,),
    )


def hostile_assessment(text: str) -> Assessment:
    evidence = Evidence(source=text, says=text)
    return Assessment(
        replays=(),
        verdict=text,
        exit_status=11,
        acceptance="not-decided",
        points=(
            Point(
                id=text, group="object", title=text, state="met", evidence=(evidence,)
            ),
            Point(
                id=text, group="path", title=text, state="not-met", reason=text or "x"
            ),
        ),
        recommendation=Recommendation(
            choice="undecided",
            rule=text,
            text=text,
            evidence=(evidence,),
            missing=(text,),
            answers=(RuleAnswer(rule=text, choice="stop", answer="no", text=text),),
        ),
        holds_for=(HeldFor(run=text, platform=text, versions={HELD: text}),),
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
