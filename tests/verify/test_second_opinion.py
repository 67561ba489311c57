import pytest

from reprobundle.format.policy import DtypeTolerance, OutputRule, Policy, Tolerance
from reprobundle.verify.second_opinion import OwnPolicy, laid_over, looser
from tests.verify.builder import FAR, NEAR, Run, outputs


def own(**fields):
    return Policy(author="V. Erifier", reason="our field's habit", **fields)


def float32(rtol, atol=1e-5):
    row = DtypeTolerance(
        dtype="float32",
        devices="same",
        tolerance=Tolerance(rtol=rtol, atol=atol),
        source="habit",
    )
    return (row,)


def judged(bench, policy, logits):
    bench.pack().replay(Run(outputs=outputs(logits=logits)))
    return bench.verify(own_policy=OwnPolicy("mine.json", policy))


def test_a_looser_policy_never_takes_the_authors_place(bench):
    report = judged(bench, own(tolerances=float32(0.5)), FAR)
    assert (report.verdict, report.exit_status) == ("NOT REPRODUCED", 10)
    opinion = report.second_opinion
    assert (opinion.verdict, opinion.exit_status) == ("REPRODUCED, within tolerance", 0)
    assert opinion.looser == ("float32, same devices: rtol 0.5 instead of 1.3e-06",)
    assert (opinion.file, opinion.author) == ("mine.json", "V. Erifier")


def test_a_stricter_policy_says_no_beside_the_authors_yes(bench):
    report = judged(bench, own(tolerances=float32(0.0, 0.0)), NEAR)
    assert report.exit_status == 0
    assert report.second_opinion.exit_status == 10
    assert report.second_opinion.looser == ()
    assert len(report.judgements) == len(report.second_opinion.judgements) == 1


def test_without_an_own_policy_there_is_no_second_opinion(bench):
    bench.pack().replay(Run())
    assert bench.verify().second_opinion is None


def test_nobody_replayed_it_under_any_policy(bench):
    bench.pack()
    report = bench.verify(own_policy=OwnPolicy("m", own(tolerances=float32(0.5))))
    assert report.second_opinion.verdict == "INTACT, NOT YET REPLAYED"


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (own(profile="compat"), "profile compat compares no values"),
        (
            own(outputs=(OutputRule(match="o*", compare=False, reason="r"),)),
            "o*: not compared",
        ),
        (
            own(outputs=(OutputRule(match="o*", rows=3, reason="r"),)),
            "o*: compares less",
        ),
        (own(ignore_keys=("accuracy",)), "ignores the keys accuracy"),
    ],
)
def test_every_way_to_admit_more_is_told(policy, words):
    assert looser(Policy(), policy) == (words,)


def test_what_the_verifier_does_not_state_stays_frozen(bench):
    mine = own(tolerances=float32(0.5))
    merged = laid_over(bench.policy, mine)
    others = [r for r in bench.policy.tolerances if r.dtype != "float32"]
    assert all(row in merged.tolerances for row in others)
    assert merged.metrics == bench.policy.metrics
