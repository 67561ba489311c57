import io

import numpy as np
import pytest

from reprobundle.format.policy import OutputRule, Tolerance
from tests.verify.builder import Run, npy, outputs

ORTHOGONAL = np.linalg.qr(np.random.default_rng(1).standard_normal((5, 5)))[0]


def npz(**arrays):
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def judged(bench, rule, name, reference, replay):
    """Return how one output stands under one rule of the author."""
    bench.reference.outputs = outputs(**{name: reference})
    bench.repeat.outputs = outputs(**{name: reference})
    bench.policy = bench.policy.__class__(
        tolerances=bench.policy.tolerances, author="A", reason="r", outputs=(rule,)
    )
    bench.pack().replay(Run(outputs=outputs(**{name: replay})))
    compared = bench.verify().judgements[0].outputs
    return next(item for item in compared if item.name == name)


def signs(axis):
    return OutputRule(match="v.npy", signs=axis, reason="eigenvectors")


def test_a_vector_of_the_other_sign_is_admitted_and_never_bit_identical(bench):
    turned = ORTHOGONAL * np.array([1, -1, 1, -1, 1])
    item = judged(bench, signs("columns"), "v.npy", npy(ORTHOGONAL), npy(turned))
    assert item.result == "within-tolerance"
    assert item.parts[0].note == (
        "2 of 5 columns have another sign, as the rule admits"
    )


def test_without_the_rule_the_other_sign_is_a_difference(bench):
    rule = OutputRule(match="other", reason="r")
    item = judged(bench, rule, "v.npy", npy(ORTHOGONAL), npy(-ORTHOGONAL))
    assert item.result == "outside-tolerance"


def test_signs_of_columns_do_not_excuse_signs_of_rows(bench):
    turned = ORTHOGONAL * np.array([[1], [-1], [1], [1], [1]])
    item = judged(bench, signs("columns"), "v.npy", npy(ORTHOGONAL), npy(turned))
    assert item.result == "outside-tolerance"


def test_one_element_of_the_other_sign_is_not_excused(bench):
    turned = ORTHOGONAL.copy()
    turned[2, 3] *= -1
    item = judged(bench, signs("columns"), "v.npy", npy(ORTHOGONAL), npy(turned))
    assert item.result == "outside-tolerance"


def test_a_complex_vector_may_have_another_phase(bench):
    turned = ORTHOGONAL * np.exp(1j * np.arange(5))
    rule, reference = signs("columns"), npy(ORTHOGONAL + 0j)
    item = judged(bench, rule, "v.npy", reference, npy(turned))
    assert item.result == "within-tolerance"
    assert "another phase" in item.parts[0].note


TIES = OutputRule(match="top.npz", ties="values", reason="equal scores")
VALUES = np.array([[9.0, 5.0, 5.0, 5.0, 1.0, 1.0]], "f4")
INDICES = np.array([[7, 2, 4, 6, 0, 1]])


@pytest.mark.parametrize(
    ("indices", "result"),
    [
        ([7, 4, 6, 2, 0, 1], "within-tolerance"),  # another order among equals
        ([7, 2, 4, 6, 0, 3], "within-tolerance"),  # cut off: another equal one
        ([2, 7, 4, 6, 0, 1], "outside-tolerance"),  # across different values
        ([7, 2, 4, 5, 0, 1], "outside-tolerance"),  # another one inside a whole run
        ([7, 2, 4, 6, 0, 0], "outside-tolerance"),  # one index twice
        ([7, 2, 4, 6, 0, 2], "outside-tolerance"),  # one that stands earlier
    ],
)
def test_indices_change_places_only_among_equal_values(bench, indices, result):
    reference = npz(values=VALUES, indices=INDICES)
    replay = npz(values=VALUES, indices=np.array([indices]))
    assert judged(bench, TIES, "top.npz", reference, replay).result == result


def test_a_rule_that_names_no_array_is_never_a_success(bench):
    rule = OutputRule(match="top.npz", ties="scores", reason="r")
    reference = npz(values=VALUES, indices=INDICES)
    replay = npz(values=VALUES, indices=INDICES[:, ::-1].copy())
    item = judged(bench, rule, "top.npz", reference, replay)
    assert item.result == "outside-tolerance"
    assert "'scores' is not in the reference" in item.reason


FIRST = OutputRule(match="loss*", rows=3, reason="the run is chaotic")
LOSS = np.array([4.0, 3.0, 2.0, 1.0, 0.5])


def late(place):
    values = LOSS.copy()
    values[place] += 0.25
    return values


@pytest.mark.parametrize(
    ("place", "result"), [(2, "outside-tolerance"), (3, "within-tolerance")]
)
@pytest.mark.parametrize("kind", ["npy", "csv", "json"])
def test_only_the_first_rows_count(bench, kind, place, result):
    def written(values):
        if kind == "npy":
            return npy(values)
        if kind == "json":
            return repr(values.tolist()).encode()
        return b"loss\n" + b"".join(f"{v!r}\n".encode() for v in values.tolist())

    name = f"loss.{kind}"
    reference, replay = written(LOSS), written(late(place))
    item = judged(bench, FIRST, name, reference, replay)
    assert item.result == result
    assert "rows 3" in " ".join((item.parts[0].note, *item.ignored))


def test_a_series_that_is_shorter_is_outside_even_if_its_first_rows_agree(bench):
    item = judged(bench, FIRST, "loss.npy", npy(LOSS), npy(LOSS[:4]))
    assert item.result == "outside-tolerance"
    assert "shape [4], expected [5]" in item.reason


def test_a_tolerance_of_one_dtype_leaves_the_others_alone(bench):
    wide = {"float32": Tolerance(rtol=0.5, atol=0.0)}
    rule = OutputRule(match="top.npz", dtypes=wide, reason="sampled")
    both = {"a": np.ones(3, "f4"), "b": np.ones(3)}
    for name, result in (("a", "within-tolerance"), ("b", "outside-tolerance")):
        moved = {**both, name: both[name] * both[name].dtype.type(1.25)}
        bench.folder.joinpath("digits.rpb.zip").unlink(missing_ok=True)
        item = judged(bench, rule, "top.npz", npz(**both), npz(**moved))
        assert item.result == result
