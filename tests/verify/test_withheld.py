"""What a verifier makes of withheld files and the samples in their place."""

from __future__ import annotations

import msgspec

from reprobundle.format.digests import digest_bytes
from reprobundle.format.record import FileRead, Remark, WithheldFile
from reprobundle.format.writer import Source
from tests.verify.builder import DATA, VALUES, Run, found, npy, outputs, reasons

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


def results(*, summaries=False, **changes):
    """Return a run whose results are withheld; `changes` are other contents."""
    return Run(outputs(**changes), stored="withheld", summaries=summaries)


def with_results(bench, **options):
    bench.reference, bench.repeat = results(**options), results(**options)
    return bench.pack()


def test_a_withheld_result_of_equal_digest_is_compared_and_warned_about(bench):
    with_results(bench).replay(results())
    report = bench.verify()
    assert report.verdict == "REPRODUCED WITH WARNINGS"
    told = report.judgements[0].outputs
    assert [one.result for one in told] == ["bit-identical", "bit-identical"]
    assert all("by digest; its author keeps" in one.reason for one in told)
    assert {one.where for one in found(report, "output-withheld", "warn")} == {
        "out/logits.npy"
    }
    assert bench.verify(allow=("output-withheld",)).exit_status == 0


def test_with_its_summary_an_equal_withheld_result_needs_no_warning(bench):
    with_results(bench, summaries=True).replay(results(summaries=True))
    report = bench.verify()
    assert report.verdict == "REPRODUCED, bit-identical"
    assert len(found(report, "output-withheld", "pass")) == 2


def test_a_withheld_result_of_another_digest_is_not_checked_never_green(bench):
    with_results(bench).replay(results(metrics=b'{"accuracy": 0.93750001}\n'))
    report = bench.verify()
    assert report.verdict == "INCOMPLETE"
    (gap,) = found(report, "output-not-compared", "not-checked")
    assert gap.where == "out/metrics.json"
    assert "the author keeps the content" in gap.reason


def test_a_kept_summary_shows_another_shape_of_a_withheld_result(bench):
    with_results(bench, summaries=True).replay(
        results(summaries=True, logits=npy(VALUES[:2]))
    )
    report = bench.verify()
    assert report.verdict == "NOT REPRODUCED"
    assert "shape [2, 6], expected [4, 6]" in reasons(report)


def test_nan_in_a_kept_summary_is_reported(bench):
    values = VALUES.copy()
    values[0, 0] = float("nan")
    bench.reference = results(summaries=True, logits=npy(values))
    bench.repeat = None
    bench.pack().replay(results(summaries=True, logits=npy(values)))
    assert found(bench.verify(), "nan-in-output", "warn")


def test_a_replay_that_withholds_what_the_reference_shows_is_not_compared(bench):
    bench.pack().replay(results(metrics=b'{"accuracy": 0.5}\n'))
    report = bench.verify()
    assert report.verdict == "INCOMPLETE"
    assert "the replayer keeps the content" in reasons(report)


def test_a_sample_may_show_the_form_of_a_withheld_result(bench):
    bench.extra = (Source("stand-ins/out/metrics.json", "stand-in", b"{}"),)
    assert not found(with_results(bench).verify(), "run-members", "fail")


def test_a_withheld_result_whose_record_names_a_member_is_tampering(bench):
    run = results()
    record, _ = run.build(bench.folder)
    first, *rest = record.outputs
    named = msgspec.structs.replace(first, member="stdout.txt")
    run.changes = {"outputs": (named, *rest)}
    bench.reference = run
    (lie,) = found(bench.pack().verify(), "run-members", "fail")
    assert "states that its content is withheld" in lie.reason


def test_a_sample_of_a_result_is_no_sample_of_an_input(bench):
    bench.extra = (Source("stand-ins/out/metrics.json", "stand-in", b"{}"),)
    bench.left_out = ("inputs/data.csv",)
    bench.reference = Run(outputs(), {**WITHOUT}, stored="withheld")
    bench.repeat = None
    assert found(bench.pack().verify(), "has-input-sample", "warn")


def test_inputs_pinned_outside_the_project_are_kept_by_digest_too(bench):
    pinned = msgspec.structs.replace(READ, path="external:1/d.csv", origin="~/d.csv")
    bench.left_out = ("inputs/data.csv",)
    bench.reference = Run(changes={"reads": (pinned,)})
    bench.repeat = Run(changes={"reads": (pinned,)})
    bench.pack().replay(reads=(pinned,))
    report = bench.verify()
    assert report.verdict == "REPRODUCED WITH WARNINGS"
    assert "kept by digest only" in found(report, "has-input-sample", "warn")[0].reason
    unknown = msgspec.structs.replace(pinned, blake3="", path="missing:d.csv")
    bench.reference = Run(changes={"reads": (unknown,)})
    assert found(bench.pack().verify(), "has-input-sample", "fail")
