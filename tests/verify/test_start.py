"""What the two runs began with."""

import msgspec
import pytest

from reprobundle.format.record import Loader, Outcome, Randomness
from reprobundle.verify.start import check_start
from tests.verify.builder import NEAR, START, Run, found, outputs


@pytest.fixture
def told(tmp_path):
    """Return the finding for a replay that began in another way."""

    def of(start=START, *, reference=START, identical=False, **changes):
        base, _ = Run().build(tmp_path)
        sides = [
            msgspec.structs.replace(
                base,
                randomness=msgspec.structs.replace(base.randomness, start=tensors),
            )
            for tensors in (reference, start)
        ]
        replay = msgspec.structs.replace(sides[1], **changes)
        (one,) = check_start(sides[0], replay, identical=identical)
        return one

    return of


def changed(number=0, **fields):
    tensors = list(START)
    tensors[number] = msgspec.structs.replace(tensors[number], **fields)
    return tuple(tensors)


def test_equal_starts_pass_and_say_how_much_was_compared(told):
    assert told().outcome == "pass"
    assert told().reason.startswith("2 tensors")


def test_other_weights_are_named_with_both_norms(told):
    one = told(changed(fingerprint="cc", l2=9.0))
    assert one.outcome == "warn"
    assert one.where == "Net/fc.weight"
    assert one.reason.startswith("the two runs did not start equal: Net/fc.weight")
    assert (one.expected, one.got) == ("aa (norm 2)", "cc (norm 9)")
    assert "unseeded" in one.advice


def test_last_digits_are_told_from_other_values(told):
    one = told(changed(fingerprint="cc", l2=2.0000001))
    assert one.outcome == "warn"
    assert "last digits only" in one.reason
    assert "another CPU" in one.advice


@pytest.mark.parametrize("norm", [None, "nan", 0.0])
def test_a_norm_that_tells_nothing_excuses_nothing(told, norm):
    one = told(
        changed(fingerprint="cc", l2=norm), reference=changed(fingerprint="aa", l2=norm)
    )
    assert "last digits" not in one.reason
    assert one.outcome == "warn"


def test_another_batch_size_is_another_form(told):
    one = told(changed(1, shape=(8, 4), fingerprint="cc"))
    assert (one.expected, one.got) == ("float32[4, 4]", "float32[8, 4]")


def test_another_base_seed_means_that_other_numbers_were_drawn(told):
    began = Randomness(start=START, loaders=(Loader(where="t.py:9", base_seed="78"),))
    one = told(randomness=began)
    assert one.outcome == "warn"
    assert (one.expected, one.got) == ("77", "78")


def test_equal_outputs_show_that_the_difference_had_no_effect(told):
    one = told(changed(fingerprint="cc"), identical=True)
    assert one.outcome == "pass"
    assert "Net/fc.weight" in one.reason


@pytest.mark.parametrize(
    "start",
    [
        (),
        START[:1],
        changed(fingerprint="", reason="it lay on the meta device"),
        changed(sampled=True, fingerprint="cc"),
    ],
)
def test_what_was_not_read_on_both_sides_is_not_checked(told, start):
    assert told(start).outcome == "not-checked"


def test_a_reference_that_says_nothing_is_not_checked(told):
    assert told(reference=()).outcome == "not-checked"


def test_a_run_without_torch_has_no_such_start(tmp_path):
    record, _ = Run(changes={"environment": {}}).build(tmp_path)
    (one,) = check_start(record, record, identical=False)
    assert one.outcome == "not-applicable"


def test_an_unequal_start_takes_the_plain_verdict(bench):
    other = Randomness(seed=0, start=changed(fingerprint="cc", l2=9.0))
    bench.pack().replay(Run(outputs(logits=NEAR)), randomness=other)
    report = bench.verify()
    assert report.verdict == "REPRODUCED WITH WARNINGS"
    assert found(report, "same-start", "warn")


def test_an_interrupted_replay_is_told_so_too(bench):
    other = Randomness(seed=0, start=changed(fingerprint="cc", l2=9.0))
    broken = Outcome(exit_status=-2, completed=False)
    bench.pack().replay(randomness=other, outcome=broken)
    assert found(bench.verify(), "same-start", "warn")
