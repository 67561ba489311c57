import itertools

import pytest

from reprobundle.format.findings import EXIT_STATUS, OutputComparison, Verdict
from reprobundle.verify.checks import ITEMS, finding
from reprobundle.verify.verdict import PRECEDENCE, base_of, consequence, decide, worst

REPRODUCED = (Verdict.BIT_IDENTICAL, Verdict.WITHIN_TOLERANCE)


def bad(name):
    item = ITEMS[name]
    outcome = next(iter(item.consequence))
    return finding(name, outcome, f"{name} happened")


def test_every_verdict_has_its_place_in_the_precedence():
    assert sorted(PRECEDENCE, key=lambda v: v.value) == sorted(
        Verdict, key=lambda v: v.value
    )


def test_precedence_never_turns_a_worse_exit_status_into_success():
    for first, second in itertools.combinations(PRECEDENCE, 2):
        if EXIT_STATUS[second] and second not in REPRODUCED:
            assert EXIT_STATUS[first] != 0


@pytest.mark.parametrize("base", REPRODUCED)
def test_without_any_consequence_the_outputs_tell(base):
    decision = decide([finding("same-files", "pass")], base)
    assert (decision.verdict, decision.reasons, decision.exit_status) == (base, (), 0)


@pytest.mark.parametrize(
    ("names", "verdict"),
    [
        (("container", "member-digest"), Verdict.UNREADABLE),
        (("output-differs", "member-digest"), Verdict.TAMPERED),
        (("stopped", "output-missing"), Verdict.NOT_RUN_HERE),
        (("same-failure", "output-missing"), Verdict.DIFFERENT_FAILURE),
        (("has-lockfile", "output-differs"), Verdict.NOT_REPRODUCED),
        (("has-lockfile", "accepting-platform"), Verdict.INCOMPLETE),
        (("accepting-platform", "claim-replayed"), Verdict.NOT_DECIDABLE_HERE),
        (("claim-replayed", "nan-in-output"), Verdict.PARTIAL),
        (("nan-in-output",), Verdict.WITH_WARNINGS),
    ],
)
def test_the_most_serious_consequence_wins_in_any_order(names, verdict):
    for order in itertools.permutations(names):
        decision = decide([bad(name) for name in order], Verdict.BIT_IDENTICAL)
        assert decision.verdict is verdict
        assert decision.exit_status == EXIT_STATUS[verdict]
        assert len(decision.reasons) == len(names)
        assert decision.reasons[0].startswith(names[0]) or verdict in (
            consequence(bad(name)) for name in names
        )


def test_reasons_begin_with_the_most_serious_one():
    decision = decide(
        [bad("nan-in-output"), bad("output-differs")], Verdict.BIT_IDENTICAL
    )
    assert [reason.partition(":")[0] for reason in decision.reasons] == [
        "output-differs",
        "nan-in-output",
    ]


def test_worst_is_by_precedence():
    assert worst([Verdict.BIT_IDENTICAL, Verdict.PARTIAL]) is Verdict.PARTIAL


def compared(*results):
    return [
        OutputComparison(name=str(n), kind="arrays", format="npy", result=result)
        for n, result in enumerate(results)
    ]


@pytest.mark.parametrize(
    ("results", "same_error", "base"),
    [
        (("bit-identical",), True, Verdict.BIT_IDENTICAL),
        (("bit-identical", "within-tolerance"), True, Verdict.WITHIN_TOLERANCE),
        ((), True, Verdict.BIT_IDENTICAL),
        ((), False, Verdict.WITHIN_TOLERANCE),
    ],
)
def test_bit_identical_only_where_everything_is(results, same_error, base):
    assert base_of(compared(*results), same_error=same_error) is base
