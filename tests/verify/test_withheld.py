"""What a verifier makes of withheld files and the samples in their place."""

from __future__ import annotations

from reprobundle.format.digests import digest_bytes
from reprobundle.format.record import FileRead, Remark, WithheldFile
from reprobundle.format.writer import Source
from tests.verify.builder import DATA, Run, found, outputs, reasons

HELD = WithheldFile(name="data.csv", size_bytes=len(DATA), blake3=digest_bytes(DATA))
READ = FileRead(
    path="project:data.csv", size_bytes=len(DATA), blake3=digest_bytes(DATA)
)
SAMPLE = Source("stand-ins/data.csv", "stand-in", b"x\n1\n")
STOOD_IN = Remark(id="standin-data", severity="gap", where="data.csv", text="a sample")
WITHOUT = {"withheld": (HELD,), "reads": (READ,)}


def withheld(bench, *extra, **changes):
    changes = {**WITHOUT, **changes}
    bench.left_out = ("inputs/data.csv",)
    bench.extra = extra
    bench.reference = Run(changes=changes)
    bench.repeat = Run(changes=changes)
    return bench


def with_sample(bench):
    withheld(bench, SAMPLE)
    bench.claims = {"stand-in": Run(changes={"remarks": (STOOD_IN,), "reads": ()})}
    return bench.pack()


def test_a_sample_that_stands_for_nothing_is_tampering(bench):
    bench.extra = (SAMPLE,)
    lie = found(bench.pack().verify(), "run-members", "fail")[0]
    assert lie.where == "stand-ins/data.csv"
    assert "no file is withheld in its place" in lie.reason


def test_a_file_that_is_said_to_be_withheld_must_not_be_there(bench):
    bench.reference = Run(changes={"withheld": (HELD,)})
    lie = found(bench.pack().verify(), "run-members", "fail")[0]
    assert lie.where == "inputs/data.csv"
    assert "does not hold this file" in lie.reason


def test_inputs_by_digest_without_any_sample_are_a_warning(bench):
    withheld(bench).pack().replay(**WITHOUT)
    report = bench.verify()
    assert report.verdict == "REPRODUCED WITH WARNINGS"
    assert "kept by digest only" in found(report, "has-input-sample", "warn")[0].reason


def test_a_sample_is_an_input_sample(bench):
    report = with_sample(bench).verify(integrity_only=True)
    sample = found(report, "has-input-sample", "pass")[0]
    assert sample.where == "stand-ins/data.csv"


def test_a_replay_on_samples_alone_is_partial(bench):
    with_sample(bench).replay(claim="stand-in", runs=3, remarks=(STOOD_IN,), reads=())
    report = bench.verify()
    assert report.verdict == "PARTIAL"
    assert "the claim 'main' was not replayed" in reasons(report)
    assert "standin-data" in reasons(report)


def test_a_replay_with_the_data_needs_none_on_samples(bench):
    with_sample(bench).replay(**WITHOUT)
    report = bench.verify()
    assert report.verdict == "REPRODUCED, bit-identical"
    assert "stand-in" not in reasons(report)


def test_a_replay_on_samples_takes_nothing_from_one_with_the_data(bench):
    with_sample(bench).replay(**WITHOUT)
    bench.replay(
        claim="stand-in", runs=3, remarks=(STOOD_IN,), reads=(), occasion="1" * 16
    )
    assert bench.verify().verdict == "REPRODUCED, bit-identical"


def test_samples_that_gave_other_results_are_told_beside_one_with_the_data(bench):
    with_sample(bench).replay(**WITHOUT)
    bench.replay(
        Run(outputs=outputs(metrics=b'{"accuracy": 0.1}\n')),
        claim="stand-in",
        runs=3,
        remarks=(STOOD_IN,),
        reads=(),
        occasion="1" * 16,
    )
    report = bench.verify()
    assert report.verdict == "REPRODUCED WITH WARNINGS"
    assert "replays-disagree" in reasons(report)


def test_a_replay_that_did_not_read_the_withheld_file_read_less(bench):
    withheld(bench).pack().replay(withheld=(HELD,), reads=())
    assert found(bench.verify(), "reduced-input", "warn")[0].where == READ.path
