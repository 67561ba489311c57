"""The end of chaotic runs is judged over repeated runs, or not at all."""

from __future__ import annotations

import msgspec
import pytest

from reprobundle.format.policy import Claim, EndTest, OutputRule
from reprobundle.report.screen import Screen
from reprobundle.report.terminal import render_report
from tests.verify.builder import Run, found, npy, outputs

FIRST_ROWS = OutputRule(match="loss.csv", rows=1, reason="chaotic from row 1 on")
AUTHOR = (0.50, 0.53, 0.48, 0.52, 0.51)
ALIKE = (0.505, 0.49, 0.525, 0.515, 0.47)
SHIFTED = (0.60, 0.63, 0.58, 0.62, 0.61)


def ending(value):
    table = f"step,loss\n1,2.0\n2,{value!r}\n".encode()
    return Run(outputs=outputs(**{"loss.csv": table}))


def judged(bench, ends, *, author=AUTHOR, alpha=0.05, **changes):
    claim = Claim(
        name="main",
        statement="It converges",
        ends=(EndTest(metric="loss.csv#loss", alpha=alpha),),
    )
    bench.policy = msgspec.structs.replace(
        bench.policy, claims=(claim,), outputs=(FIRST_ROWS,)
    )
    bench.reference, bench.repeat, *rest = map(ending, author)
    bench.repeats = tuple(rest)
    bench.pack()
    for value in ends:
        bench.replay(ending(value), **changes)
    return bench.verify()


def result(report):
    (one,) = report.claims[0].ends
    return one


def test_runs_like_the_authors_are_not_rejected(bench):
    report = judged(bench, ALIKE)
    one = result(report)
    assert (one.result, one.reference_runs, one.replay_runs) == ("same", 5, 5)
    assert one.p > 0.3
    assert found(report, "claim-ends", "pass")
    assert report.exit_status == 0
    assert report.claims[0].judged
    assert not found(report, "claim-judged", "not-checked")


def test_a_shifted_end_is_not_reproduced_and_states_the_test(bench):
    report = judged(bench, SHIFTED)
    assert result(report).p == pytest.approx(2 / 252)
    assert report.verdict == "NOT REPRODUCED"
    assert report.claims[0].result == "NOT REPRODUCED"
    (one,) = found(report, "claim-ends", "fail")
    assert "two-sided rank-sum test of 5 and 5 runs at level 0.05" in one.reason
    # Each run by itself has the rows that are compared element by element.
    assert {one.exit_status for one in report.judgements} == {0}
    shown = render_report(report, Screen(width=300))
    assert "loss.csv#loss ends other than the author's" in shown


@pytest.mark.parametrize("ends", [SHIFTED[:1], SHIFTED[:3], ALIKE[:1]])
def test_too_few_runs_decide_nothing(bench, ends):
    report = judged(bench, ends, author=AUTHOR[:3])
    assert result(report).result == "not-judged"
    assert report.verdict == "INCOMPLETE"
    assert report.claims[0].result == "INCOMPLETE"
    (one,) = found(report, "claim-ends", "not-checked")
    assert "the test could not fail" in one.reason
    assert "--repeat" in one.advice


def test_a_stricter_level_needs_more_runs(bench):
    assert result(judged(bench, SHIFTED, alpha=0.005)).result == "not-judged"


def test_equal_ends_are_the_same_however_few(bench):
    one = result(judged(bench, (0.5,), author=(0.5, 0.5)))
    assert (one.result, one.p) == ("same", 1.0)


def test_an_end_that_is_not_finite_is_another_one(bench):
    report = judged(bench, (*ALIKE[:4], float("nan")))
    assert result(report).result == "other"
    assert report.verdict == "NOT REPRODUCED"


def test_an_end_that_is_not_there_is_not_judged(bench):
    claim = Claim(name="main", ends=(EndTest(metric="loss.csv#accuracy"),))
    bench.policy = msgspec.structs.replace(bench.policy, claims=(claim,))
    bench.pack().replay(Run())
    report = bench.verify()
    assert result(report).reason == "a run holds no such number"
    assert report.verdict == "INCOMPLETE"


def test_the_last_element_of_an_array_can_be_the_end(bench):
    claim = Claim(name="main", ends=(EndTest(metric="losses.npy"),))
    bench.policy = msgspec.structs.replace(bench.policy, claims=(claim,))
    same = {"losses.npy": npy([3.0, 0.25])}
    bench.reference, bench.repeat = Run(dict(same)), Run(dict(same))
    bench.pack().replay(Run(dict(same)))
    assert result(bench.verify()).result == "same"


def test_a_pass_of_the_profile_compat_can_never_read_as_reproduced(bench):
    bench.policy = msgspec.structs.replace(
        bench.policy, profile="compat", author="a", reason="only that it runs"
    )
    bench.pack().replay(ending(9.0))
    report = bench.verify()
    assert report.verdict == "REPRODUCED WITH WARNINGS"
    assert all(
        "not values" in one.reason
        for one in found(report, "values-not-compared", "warn")
    )
    allowed = bench.verify(allow=("values-not-compared",))
    assert (allowed.verdict, allowed.exit_status) == (report.verdict, 12)


def of_claim(bench, ends, *, author=AUTHOR):
    """Judge the ends of a claim with a command of its own."""
    claim = Claim(
        name="long",
        statement="It converges",
        command=("python", "train.py", "--long"),
        ends=(EndTest(metric="loss.csv#loss"),),
    )
    bench.policy = msgspec.structs.replace(
        bench.policy, claims=(claim,), outputs=(FIRST_ROWS,)
    )
    first, *rest = map(ending, author)
    bench.claims, bench.claim_repeats = {"long": first}, {"long": tuple(rest)}
    bench.pack().replay()
    for value in ends:
        bench.replay(ending(value), runs=3, claim="long")
    return bench.verify()


def test_a_claim_with_a_command_of_its_own_is_judged_by_its_own_repeats(bench):
    report = of_claim(bench, ALIKE)
    long = next(one for one in report.claims if one.name == "long")
    assert [(one.result, one.reference_runs) for one in long.ends] == [("same", 5)]
    assert report.exit_status == 0, report.reasons
    (found_one,) = [
        one
        for one in found(report, "reference-not-repeatable", "pass")
        if "claim" in one.reason
    ]
    assert found_one.reason.endswith("(claim 'long', run 3)")


def test_a_shifted_end_of_such_a_claim_is_not_reproduced(bench):
    report = of_claim(bench, SHIFTED)
    assert report.verdict == "NOT REPRODUCED"
    results = {one.name: one.result for one in report.claims}
    assert results["long"] == "NOT REPRODUCED"
    assert results["main"] == "REPRODUCED, bit-identical"


def test_such_a_claim_that_was_run_once_is_not_known_to_repeat(bench):
    report = of_claim(bench, ALIKE, author=AUTHOR[:1])
    (gap,) = found(report, "reference-not-repeatable", "not-checked")
    assert "no repeat pass was made" in gap.reason
    assert gap.reason.endswith("(claim 'long', run 3)")
    assert report.verdict == "INCOMPLETE"


def test_a_test_that_another_call_failed_is_not_passed_in_silence(bench):
    judged(bench, SHIFTED)
    for value in ALIKE:
        bench.replay(ending(value), occasion="1" * 16)
    report = bench.verify()
    (warning,) = found(report, "replays-disagree", "warn")
    assert "p = 0.00794" in warning.reason
    assert report.verdict == "REPRODUCED WITH WARNINGS"
