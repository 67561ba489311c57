"""A part of a bundle never reads as the whole, and says what was not looked at."""

from __future__ import annotations

import numpy as np
import pytest

from reprobundle.errors import BadCallError
from reprobundle.format.parting import join_parts, split_bundle
from reprobundle.format.reader import open_bundle
from reprobundle.verify.fit.dividing import Budget, budget_of, moved_members
from reprobundle.verify.verify import verify_bundle
from tests.verify.builder import OUTPUTS, VALUES, Run, found, npy

NEAR = {**OUTPUTS, "out/logits.npy": npy(VALUES * np.float32(1 + 5e-7))}
RESULT = "runs/1/outputs/out/logits.npy"


@pytest.fixture
def split(bench):
    """Turn the bench's bundle into its first part; return where the second is."""

    def part(*moved):
        whole = bench.path.with_name("whole.rpb.zip")
        bench.path.rename(whole)
        rest = bench.path.with_name("rest.rpb.zip")
        with open_bundle(whole) as bundle:
            split_bundle(bundle, moved or (RESULT,), first=bench.path, rest=rest)
        return whole, rest

    return part


def test_a_part_alone_is_incomplete_and_names_what_is_absent(bench, split):
    bench.pack().replay()
    split()
    report = bench.verify()
    assert (report.verdict, report.exit_status) == ("INCOMPLETE", 11)
    (gap,) = found(report, "all-parts")
    assert gap.outcome == "not-checked"
    assert RESULT in gap.reason
    assert "rest.rpb.zip, blake3 " in gap.reason
    assert "all-parts" in report.not_checked
    assert any("all-parts" in reason for reason in report.reasons)


def test_the_integrity_of_a_part_is_not_intact(bench, split):
    bench.pack()
    split()
    report = bench.verify(integrity_only=True)
    assert (report.verdict, report.exit_status) == ("INCOMPLETE", 11)


def test_a_memory_log_in_the_other_part_is_none_that_was_looked_at(bench, split):
    bench.pack()
    split("runs/1/memory.json")
    assert not found(bench.verify(), "has-memory-log", "pass")


def test_no_option_takes_the_gap_away(bench, split):
    bench.pack().replay()
    split()
    with pytest.raises(BadCallError):
        bench.verify(allow=("all-parts",))


def test_equal_digests_are_equal_without_the_content(bench, split):
    bench.pack().replay()
    split()
    (judgement,) = bench.verify().judgements
    (logits,) = [one for one in judgement.outputs if one.name == "out/logits.npy"]
    assert logits.result == "bit-identical"


def test_what_differs_is_not_compared_and_not_excused(bench, split):
    bench.pack().replay(Run(dict(NEAR)))
    assert bench.verify().verdict == "REPRODUCED, within tolerance"
    split()
    report = bench.verify()
    (judgement,) = report.judgements
    (logits,) = [one for one in judgement.outputs if one.name == "out/logits.npy"]
    assert logits.result == "not-compared"
    assert report.exit_status == 11


def test_a_clear_no_stays_one(bench, split):
    other = {**OUTPUTS, "out/logits.npy": npy(VALUES + 1)}
    bench.pack().replay(Run(other))
    split("runs/1/outputs/out/metrics.json")
    assert bench.verify().verdict == "NOT REPRODUCED"


def test_the_second_part_alone_is_incomplete(bench, split):
    bench.pack().replay()
    _, rest = split()
    report = verify_bundle(rest)
    assert (report.verdict, report.exit_status) == ("INCOMPLETE", 11)


def test_any_member_can_be_absent(bench, split):
    bench.pack().replay()
    with open_bundle(bench.path) as bundle:
        members = tuple(bundle.members)
    original = bench.path.read_bytes()
    for path in members:
        bench.path.write_bytes(original)
        split(path)
        report = bench.verify()
        assert report.exit_status == 11, (path, report.reasons)


def test_altered_content_in_a_part_is_tampered(bench, split):
    bench.pack().replay()
    split()
    data = bytearray(bench.path.read_bytes())
    data[data.index(b"import torch") if b"import torch" in data else 100] ^= 1
    bench.path.write_bytes(data)
    assert bench.verify().verdict in ("TAMPERED", "UNREADABLE")


def test_joined_it_is_judged_as_before(bench, split, tmp_path):
    bench.pack().replay(Run(dict(NEAR)))
    _, rest = split()
    joined = tmp_path / "joined.rpb.zip"
    join_parts(bench.path, rest, joined)
    assert verify_bundle(joined).verdict == "REPRODUCED, within tolerance"


def test_results_move_before_what_a_replay_needs(bench):
    bench.pack()
    with open_bundle(bench.path) as bundle:
        moved = moved_members(bundle, Budget(bundle.size_bytes + 1500))
    assert moved
    assert all(path.startswith("runs/") for path in moved)


def test_nothing_is_split_that_fits_or_cannot(bench):
    bench.pack()
    with open_bundle(bench.path) as bundle:
        with pytest.raises(BadCallError, match="fits as it is"):
            moved_members(bundle, budget_of("github-issue"))
        with pytest.raises(BadCallError, match="what has to stay together takes"):
            moved_members(bundle, Budget(2_000))
