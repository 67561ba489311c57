"""Indices may change places where the values that they point at are tied."""

import io

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprobundle.format.policy import OutputRule, Tolerance
from reprobundle.outputs.arrays import read_arrays
from reprobundle.verify.ties import without_ties
from tests.verify.builder import Run

RULE = Tolerance(rtol=0.0, atol=0.5)


def npy(array):
    stream = io.BytesIO()
    np.save(stream, np.asarray(array))
    return stream.getvalue()


def npz(**arrays):
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def resolved(reference, replay, values, rule=RULE):
    """Return the replay's indices after the rule, and the note."""
    b, a, v = (
        read_arrays(io.BytesIO(npy(one)), "npy")[0]
        for one in (
            np.asarray(reference),
            np.asarray(replay),
            np.asarray(values, "f8"),
        )
    )
    array, note = without_ties(b, a, v, rule)
    found = [block.copy() for block in array.blocks(3)]
    return np.concatenate(found).reshape(array.shape).tolist(), note


def test_a_chain_of_small_steps_does_not_tie_its_ends():
    # Neighbours are 0.4 apart, and so all of them would form one run.
    values = np.arange(6) * -0.4
    assert resolved(range(6), [1, 0, 2, 3, 4, 5], values)[0] == [*range(6)]
    assert resolved(range(6), [5, 1, 2, 3, 4, 0], values)[0] == [5, 1, 2, 3, 4, 0]


def test_a_dense_argsort_is_no_single_run():
    values = np.linspace(0, 1, 1000)
    rule = Tolerance(rtol=0.0, atol=2e-3)
    backwards = np.arange(1000)[::-1]
    assert resolved(np.arange(1000), backwards, values, rule)[0] != [*range(1000)]


def test_without_a_rule_only_equal_bits_are_tied():
    assert resolved([3, 4], [4, 3], [1.0, 1.0], None)[0] == [3, 4]
    assert resolved([3, 4], [4, 3], [1.0, np.nextafter(1, 2)], None)[0] == [4, 3]


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_no_tie(value):
    assert resolved([3, 4], [4, 3], [value, value])[0] == [4, 3]


def test_the_last_value_alone_admits_no_other_index():
    assert resolved([3, 4], [3, 9], [5.0, 1.0])[0] == [3, 9]
    assert resolved([3, 4], [3, 9], [1.2, 1.0])[0] == [3, 4]
    assert resolved([3, 4], [3, 3], [1.2, 1.0])[0] == [3, 3]


def by_definition(reference, replay, values):
    """Return the indices as the words of the specification put them."""
    if len(set(replay)) < len(replay):
        return list(replay)
    cut_off = [abs(v - values[-1]) <= RULE.atol for v in values]
    result = []
    for place, index in enumerate(replay):
        if index in reference:
            there = values[reference.index(index)]
            admitted = abs(there - values[place]) <= RULE.atol
        else:
            admitted = cut_off[place] and sum(cut_off) > 1
        result.append(reference[place] if admitted else index)
    return result


@given(
    st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, 1.75]), min_size=1, max_size=6),
    st.data(),
)
def test_each_index_is_judged_by_the_definition(values, data):
    values = sorted(values, reverse=True)
    count = len(values)
    indices = st.integers(0, count + 2)
    reference = data.draw(st.permutations(range(count)))
    replay = data.draw(st.lists(indices, min_size=count, max_size=count))
    expected = by_definition(list(reference), replay, values)
    assert resolved(list(reference), replay, values)[0] == expected


# --- across files --------------------------------------------------------------------

SCORES = np.array([[9.0, 5.0, 5.0, 1.0]], "f4")
ORDER = np.array([[7, 2, 4, 0]])
SWAPPED = np.array([[7, 4, 2, 0]])
WRONG = np.array([[2, 7, 4, 0]])


def judged(bench, named, replay, *, scores=SCORES, others=(), reference=None):
    """Return the comparison of the output of indices."""
    rules = (*others, OutputRule(match="top*", ties=named, reason="equal scores"))
    bench.policy = msgspec.structs.replace(bench.policy, outputs=rules)
    outputs = reference or {"top.npy": npy(ORDER), "scores.npy": npy(scores)}
    bench.reference = bench.repeat = Run(outputs=outputs)
    bench.pack().replay(Run(outputs={**outputs, "top.npy": npy(replay)}))
    report = bench.verify()
    items = report.judgements[-1].outputs
    return report.verdict, next(one for one in items if one.name == "top.npy")


def test_the_values_may_lie_in_another_output(bench):
    verdict, item = judged(bench, "scores.npy#", SWAPPED)
    assert verdict == "REPRODUCED, within tolerance"
    assert item.parts[0].note.startswith("2 indices changed places")


def test_the_values_may_be_an_array_of_another_output(bench):
    outputs = {"top.npy": npy(ORDER), "all.npz": npz(a=ORDER, scores=SCORES)}
    verdict, _ = judged(bench, "all.npz#scores", SWAPPED, reference=outputs)
    assert verdict == "REPRODUCED, within tolerance"


def test_another_index_is_still_another_index(bench):
    verdict, item = judged(bench, "scores.npy#", WRONG)
    assert verdict == "NOT REPRODUCED"
    assert item.result == "outside-tolerance"


LEFT_OUT = OutputRule(match="scores.npy", compare=False, reason="large")


@pytest.mark.parametrize(
    ("named", "others", "reason"),
    [
        ("gone.npy#", (), "'gone.npy' is not there or not compared"),
        ("scores.npy#", (LEFT_OUT,), "'scores.npy' is not there or not compared"),
        ("scores.npy#x", (), "'scores.npy#x' is not there"),
        ("y.json#", (), "is not kept as arrays"),
    ],
)
def test_values_that_nobody_compares_admit_nothing(bench, named, others, reason):
    outputs = {
        "top.npy": npy(ORDER),
        "scores.npy": npy(SCORES),
        "y.json": b"1\n",
    }
    verdict, item = judged(bench, named, SWAPPED, others=others, reference=outputs)
    assert verdict == "NOT REPRODUCED"
    assert reason in item.reason


def test_values_of_another_shape_admit_nothing(bench):
    verdict, _ = judged(bench, "scores.npy#", SWAPPED, scores=SCORES[0])
    assert verdict == "NOT REPRODUCED"
