"""Likely causes, claims and the verifier's own policy, as each rendering shows them."""

import msgspec
import pytest

from reprobundle.format.findings import SecondOpinion, Verdict
from reprobundle.format.judged import BandResult, Cause, ClaimResult
from reprobundle.report.terminal import render_report
from tests.report import reports

CAUSE = Cause(
    id="threads",
    text="Another number of threads sums in another order.",
    evidence="torch.num_threads is 16, reference 2",
    source="pytorch/pytorch#88718",
    command="reprobundle replay digits.rpb.zip --set OMP_NUM_THREADS=2",
)


def with_causes(*causes):
    judged = msgspec.structs.replace(
        reports.judgement(Verdict.NOT_REPRODUCED),
        pass_name="measured",
        claim="main",
        causes=causes,
    )
    return reports.report(Verdict.NOT_REPRODUCED, judgements=(judged,))


def shown(report, **options):
    return " ".join(render_report(report, **options).split())


def test_the_first_cause_and_what_to_try_are_shown():
    other = msgspec.structs.replace(CAUSE, id="b", text="It is the weather.")
    text = shown(with_causes(CAUSE, other))
    assert CAUSE.text in text
    assert CAUSE.evidence in text
    assert f"try {CAUSE.command}" in text
    assert "It is the weather." not in text
    assert "It is the weather." in shown(with_causes(CAUSE, other), verbose=True)


def test_two_passes_of_one_replay_do_not_look_like_two_replays():
    assert "measured pass of main" in shown(with_causes())


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        (
            ClaimResult(
                name="main", statement="It is good", result="PARTIAL", judged=False
            ),
            "main: It is good: PARTIAL; no number of it is judged",
        ),
        (
            ClaimResult(name="full", statement="", result="NOT RUN", judged=False),
            "full: no statement: NOT RUN",
        ),
        (
            ClaimResult(
                name="main",
                statement="It is good",
                result="NOT REPRODUCED",
                judged=True,
                bands=(
                    BandResult(
                        metric="m#acc",
                        least=0.9,
                        reference=0.95,
                        replay=0.5,
                        result="outside",
                    ),
                ),
            ),
            "m#acc 0.5, reference 0.95, at least 0.9",
        ),
    ],
)
def test_every_claim_is_told_with_what_came_of_it(claim, words):
    main = ClaimResult(name="main", statement="", result="PARTIAL", judged=False)
    report = msgspec.structs.replace(reports.REPRODUCED, claims=(main, claim))
    assert words in shown(report)


def test_the_verifiers_verdict_never_stands_in_the_verdicts_place():
    opinion = SecondOpinion(
        file="mine.json",
        author="V",
        reason="habit",
        looser=("float32: rtol 1",),
        verdict="REPRODUCED, within tolerance",
        exit_status=0,
        reasons=(),
    )
    report = msgspec.structs.replace(with_causes(), second_opinion=opinion)
    text = render_report(report)
    assert text.splitlines()[-1] == "VERDICT  NOT REPRODUCED (exit 10)"
    assert "under mine.json by V: REPRODUCED, within tolerance" in " ".join(
        text.split()
    )
    assert "looser: float32: rtol 1" in text
