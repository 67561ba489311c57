"""Outputs of which only samples were kept: what passes, and every false pass."""

from __future__ import annotations

import io

import msgspec
import numpy as np
import pytest
import safetensors.numpy

from reprobundle.format.digests import digest_bytes, digest_file
from reprobundle.format.policy import Policy, Tolerance
from reprobundle.format.record import Output
from reprobundle.outputs.places import places
from reprobundle.outputs.sample import write_sample
from reprobundle.outputs.summary import summarise
from reprobundle.verify.compare_output import compare_output
from reprobundle.verify.content import Content
from reprobundle.verify.defaults import default_policy
from reprobundle.verify.sampled_moments import moments_problem

KEY = "ab" * 32
NAME = "out/w.npz"
SIZE = 1_200_000
WEIGHTS = np.random.default_rng(3).standard_normal(SIZE, dtype="f4").reshape(1200, 1000)
COUNTS = np.arange(300)
SAMPLED = places(KEY, NAME, "w", WEIGHTS.shape, size=SIZE, count=100_000)
UNSAMPLED = int(np.setdiff1d(np.arange(1000), SAMPLED)[0])


class Side:
    """One side of a comparison: its output, and its members in memory."""

    def __init__(self, folder, *, kept="sample", key=KEY, **arrays):
        path = folder / "out.npz"
        np.savez(path, **arrays)
        told = summarise(NAME, path)
        sample = folder / "sample.safetensors"
        write_sample(path, "npz", sample, key=key, output=NAME)
        self.members = {"m": (sample if kept == "sample" else path).read_bytes()}
        self.output = Output(
            name=NAME,
            kind=told.kind,
            format=told.format,
            size_bytes=path.stat().st_size,
            blake3=digest_file(path),
            stored=kept,
            member="m" if kept != "none" else "",
            sample_key=key if kept == "sample" else "",
            arrays=told.arrays,
        )

    @property
    def content(self):
        def opened(name):
            return io.BytesIO(self.members[name])

        return Content(frozenset(self.members), opened, opened)

    def retold(self, array, **changes):
        """Change what the record says of one array."""
        arrays = tuple(
            msgspec.structs.replace(one, **changes) if one.name == array else one
            for one in self.output.arrays
        )
        self.output = msgspec.structs.replace(self.output, arrays=arrays)
        return self

    def resampled(self, change):
        """Change the tensors of the sample."""
        tensors = safetensors.numpy.load(self.members["m"])
        change(tensors)
        self.members["m"] = safetensors.numpy.save(tensors)
        return self


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    return Side(tmp_path_factory.mktemp("reference"), w=WEIGHTS, n=COUNTS)


def moved(index=None, value=0.0, *, factor=1.0):
    array = WEIGHTS * np.float32(factor)
    if index is not None:
        array.reshape(-1)[index] = value
    return array


def compared(reference, replay, policy=None):
    return compare_output(
        reference.output,
        replay.output,
        reference.content,
        replay.content,
        policy or default_policy(),
        "same",
    )


def test_equal_digests_of_all_blocks_are_bit_identical(tmp_path, reference):
    replay = Side(tmp_path, w=WEIGHTS, n=COUNTS)
    replay.output = msgspec.structs.replace(replay.output, blake3="00" * 32)
    found = compared(reference, replay)
    assert found.result == "bit-identical"
    assert [part.elements for part in found.parts] == [SIZE, 300]
    assert [part.sampled_from for part in found.parts] == [0, 0]


def test_a_small_difference_is_within_tolerance_and_names_the_places(
    tmp_path, reference
):
    found = compared(reference, Side(tmp_path, w=moved(factor=1 + 3e-7), n=COUNTS))
    assert found.result == "within-tolerance"
    assert "compared at 100,000 of 1,200,000 places" in found.reason
    assert "1 more arrays are bit-identical by digest" in found.reason
    part = found.parts[0]
    assert (part.elements, part.sampled_from, part.equal) == (100_000, SIZE, False)
    assert 0 < part.max_abs < 1e-5


def test_one_changed_bit_outside_the_sample_is_never_bit_identical(tmp_path, reference):
    near = np.nextafter(WEIGHTS.reshape(-1)[UNSAMPLED], np.float32(9))
    found = compared(reference, Side(tmp_path, w=moved(UNSAMPLED, near), n=COUNTS))
    assert found.result == "within-tolerance"
    assert found.parts[0].max_abs == 0.0


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (1e6, "maximum of the whole array is 1000000.0"),
        (-50.0, "minimum of the whole array is -50.0"),
        (np.nan, "the whole array holds 1 NaN, expected 0"),
        (np.inf, "the whole array holds 1 +inf, expected 0"),
    ],
)
def test_a_fault_outside_the_sample_is_seen_in_the_moments(
    tmp_path, reference, value, problem
):
    found = compared(reference, Side(tmp_path, w=moved(UNSAMPLED, value), n=COUNTS))
    assert found.result == "outside-tolerance"
    assert problem in found.reason


def test_a_difference_at_a_sampled_place_is_outside_with_its_index(tmp_path, reference):
    at = int(SAMPLED[12_345])
    found = compared(reference, Side(tmp_path, w=moved(at, 0.123), n=COUNTS))
    assert found.result == "outside-tolerance"
    assert found.parts[0].worst_index == divmod(at, 1000)
    assert "1 of 100,000 elements" in found.reason


def test_a_sample_that_is_copied_from_the_reference_does_not_help(tmp_path, reference):
    replay = Side(tmp_path, w=moved(factor=1.01), n=COUNTS)
    replay.members = dict(reference.members)
    found = compared(reference, replay)
    assert found.result == "outside-tolerance"
    assert "agree although" in found.reason


def test_digests_that_are_copied_do_not_help(tmp_path, reference):
    replay = Side(tmp_path, w=moved(factor=1.01), n=COUNTS)
    own = safetensors.numpy.load(reference.members["m"])
    replay.resampled(lambda t: t.update({"0.blocks": own["0.blocks"]}))
    found = compared(reference, replay)
    assert found.result == "outside-tolerance"
    assert "although sampled values differ" in found.reason


def test_values_of_other_places_are_outside(tmp_path, reference):
    other = WEIGHTS.reshape(-1)[(SAMPLED + 1) % SIZE]
    replay = Side(tmp_path, w=moved(factor=1 + 3e-7), n=COUNTS)
    replay.resampled(lambda t: t.update({"0.values": other}))
    found = compared(reference, replay)
    assert found.result == "outside-tolerance"
    assert "outside the tolerance" in found.reason


def test_a_sample_by_another_policy_is_not_compared(tmp_path, reference):
    replay = Side(tmp_path, w=moved(factor=1 + 3e-7), n=COUNTS, key="cd" * 32)
    found = compared(reference, replay)
    assert found.result == "not-compared"
    assert "different places" in found.reason


def test_a_whole_array_in_a_sample_has_to_match_its_own_digests(tmp_path, reference):
    replay = Side(tmp_path, w=WEIGHTS, n=COUNTS + 1)
    own = safetensors.numpy.load(reference.members["m"])
    replay.resampled(lambda t: t.update({"1.values": own["1.values"]}))
    found = compared(reference, replay)
    assert found.result == "outside-tolerance"
    assert "the replay's sample holds the whole array, with other" in found.reason


def test_a_sample_cannot_exceed_the_range_of_its_summary(tmp_path, reference):
    replay = Side(tmp_path, w=moved(factor=1 + 3e-7), n=COUNTS)
    replay.retold("w", maximum=1.0)
    found = compared(reference, replay)
    assert found.result == "outside-tolerance"
    assert "outside the range of its summary" in found.reason


def test_whole_numbers_are_compared_exactly(tmp_path, reference):
    changed = COUNTS.copy()
    changed[7] += 1
    found = compared(reference, Side(tmp_path, w=WEIGHTS, n=changed))
    assert found.result == "outside-tolerance"
    assert found.parts[1].worst_index == (7,)
    assert (found.parts[1].expected, found.parts[1].got) == ("7", "8")


def test_another_shape_is_outside(tmp_path, reference):
    found = compared(reference, Side(tmp_path, w=WEIGHTS.T, n=COUNTS))
    assert found.result == "outside-tolerance"
    assert "shape [1000, 1200], expected [1200, 1000]" in found.reason


def test_an_array_that_is_missing_is_outside(tmp_path, reference):
    found = compared(reference, Side(tmp_path, w=WEIGHTS))
    assert found.result == "outside-tolerance"
    assert "missing in the replay" in found.reason


@pytest.mark.parametrize("factor", [1.0, 1 + 3e-7, 1.01])
def test_the_side_that_kept_everything_is_sampled_at_the_same_places(
    tmp_path, reference, factor
):
    whole = Side(tmp_path, w=moved(factor=factor), n=COUNTS, kept="here")
    whole.output = msgspec.structs.replace(whole.output, blake3="00" * 32)
    expected = {1.0: "bit-identical", 1.01: "outside-tolerance"}
    wanted = expected.get(factor, "within-tolerance")
    assert compared(reference, whole).result == wanted
    assert compared(whole, reference).result == wanted


def test_a_side_without_sample_is_not_compared(tmp_path, reference):
    replay = Side(tmp_path, w=moved(factor=1 + 3e-7), n=COUNTS, kept="none")
    assert compared(reference, replay).result == "not-compared"


def test_a_share_that_may_lie_outside_does_not_excuse_the_moments(tmp_path, reference):
    lax = Tolerance(rtol=1e-5, atol=1e-6, share=0.2)
    policy = Policy(
        tolerances=tuple(
            msgspec.structs.replace(row, tolerance=lax)
            for row in default_policy().tolerances
        )
    )
    replay = Side(tmp_path, w=moved(UNSAMPLED, 1e6), n=COUNTS)
    assert compared(reference, replay, policy).result == "outside-tolerance"


def test_plain_bytes_that_were_not_kept_differ_for_certain():
    reference, replay = (
        Output(
            name="blob",
            kind="bytes",
            format="bytes",
            size_bytes=2,
            blake3=digest_bytes(data),
            stored="none",
        )
        for data in (b"\0a", b"\0b")
    )
    nowhere = Content(frozenset(), lambda name: io.BytesIO(), lambda name: io.BytesIO())
    found = compare_output(
        reference, replay, nowhere, nowhere, default_policy(), "same"
    )
    assert found.result == "outside-tolerance"


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("floor", [0.0, 0.5])
def test_arrays_within_tolerance_never_break_the_bounds_of_moments(
    tmp_path, scale, floor
):
    rule = Tolerance(rtol=1e-3, atol=1e-5, floor=floor)
    rng = np.random.default_rng(11)
    b = rng.standard_normal(500) * scale
    norm = np.sqrt(np.mean(b**2))
    limit = rule.atol + rule.rtol * np.maximum(np.abs(b), floor * norm)
    summaries = []
    for sign in (0, 1, -1):
        np.save(tmp_path / "a.npy", b + sign * limit * (1 - 1e-12))
        summaries.append(summarise("a.npy", tmp_path / "a.npy").arrays[0])
    for moved_one in summaries[1:]:
        assert moments_problem(summaries[0], moved_one, rule) == ""
    np.save(tmp_path / "a.npy", b + 3 * limit)
    far = summarise("a.npy", tmp_path / "a.npy").arrays[0]
    assert moments_problem(summaries[0], far, rule) != ""
