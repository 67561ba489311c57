"""The selftest: it catches a blind verifier, and ours is not blind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest

from reprobundle.errors import BadCallError, BundleError
from reprobundle.format.digests import digest_bytes
from reprobundle.format.policy import Claim, Intent, OutputRule, Policy, Tolerance
from reprobundle.format.record import ErrorReport, Outcome, Phase
from reprobundle.format.writer import Source
from reprobundle.verify.selftest.of_policy import LOOSENED
from reprobundle.verify.selftest.of_samples import SAMPLE_MUTATIONS
from reprobundle.verify.selftest.selftest import MUTATIONS, selftest
from reprobundle.verify.verify import verify_bundle
from tests.conformance import verdict_files
from tests.conformance.documents import Sampled
from tests.outputs import files
from tests.outputs.pictures import png
from tests.verify.builder import OUTPUTS, Bench, Run

VECTORS = Path(__file__).parents[1] / "vectors"
STEPPED = Phase(
    name="optimizer",
    count=8,
    total_ns=80,
    median_ns=10,
    longest_ns=12,
    synchronized="cpu",
)
PLOT = png(np.full((3, 4, 3), 90, "u1"), colour=2)
FAILURE = Outcome(
    exit_status=1,
    expected_failure=True,
    error=ErrorReport(
        type="ValueError",
        message="no",
        masked="no",
        where="train.py:2",
        traceback="ValueError: no",
    ),
)


@pytest.fixture(scope="module")
def benches(tmp_path_factory):
    """A training of two claims, a failure as the result, an output kept as a sample."""
    steps = Run(outputs={**OUTPUTS, "plot.png": PLOT}, changes={"phases": (STEPPED,)})
    training = Bench(
        tmp_path_factory.mktemp("training"),
        reference=steps,
        repeat=steps,
        claims={"ablation": Run()},
    )
    failure = Run(changes={"outcome": FAILURE})
    failing = Bench(
        tmp_path_factory.mktemp("failing"), reference=failure, repeat=failure
    )
    sampled = tmp_path_factory.mktemp("sampled") / "sampled.rpb.zip"
    sampled.write_bytes(verdict_files.sampled(Sampled())())
    kept = Run({"out/notes.bin": b"\0\1", **OUTPUTS}, stored="withheld")
    withheld = Bench(
        tmp_path_factory.mktemp("withheld"),
        reference=kept,
        repeat=kept,
        extra=(Source("stand-ins/out/notes.bin", "stand-in", b"form"),),
    )
    made = (training, failing, withheld)
    return (*(bench.pack().path for bench in made), sampled)


@pytest.fixture(scope="module")
def of_rows(tmp_path_factory):
    """A run of whose log of losses only rows are kept."""
    losses = "".join(f"{n},{0.5 + n / 64}\n" for n in range(9)).encode()
    run = Run({"losses.csv": b"step,loss\n" + losses}, sampled=("losses.csv",))
    bench = Bench(tmp_path_factory.mktemp("rows"), reference=run, repeat=run)
    return selftest(bench.pack().path, mutations=SAMPLE_MUTATIONS)


@pytest.fixture(scope="module")
def reports(benches, of_rows):
    return (*map(selftest, benches), of_rows)


def rows(report):
    return {row.name: row for row in report.rows}


@pytest.mark.parametrize("name", [mutation.name for mutation in MUTATIONS])
def test_every_mutation_is_made_somewhere_and_caught_wherever_it_is(reports, name):
    results = {
        row.result for report in reports for row in report.rows if row.name == name
    }
    assert "caught" in results
    assert results <= {"caught", "not-possible"}


def test_the_unaltered_bundle_is_green(reports):
    assert {report.control for report in reports} == {"REPRODUCED, bit-identical"}
    assert {report.exit_status for report in reports} == {0}


INSIDE: dict[str, type[msgspec.Struct]] = {
    "tolerances": Tolerance,
    "outputs": OutputRule,
    "claims": Claim,
    "intent": Intent,
}
# Names and words, which admit nothing: altering them is altering the field above them.
WORDS = {"match", "reason", "name", "statement", "minutes", "disk_bytes"} | {
    "purpose",
    "scenario",
}


def test_the_policy_is_loosened_at_each_of_its_fields():
    wanted = {one.name for one in msgspec.structs.fields(Policy)} - {"schema"}
    for outer, kind in INSIDE.items():
        inner = {one.name for one in msgspec.structs.fields(kind)} - WORDS
        wanted = (wanted - {outer}) | {f"{outer}.{name}" for name in inner}
    assert wanted <= set(LOOSENED)


def test_a_row_says_how_often_it_was_tried_and_why_not(reports):
    training, failing, *_ = map(rows, reports)
    assert training["flip-content"].copies > 8
    assert training["no-failure"].copies == 0
    assert training["no-failure"].detail == "the result is not a failure"
    assert failing["no-failure"].reasons == ("expected-failure",)


def test_bits_of_attached_replays_are_flipped_too(bench):
    bench.pack().replay()
    report = rows(selftest(bench.path))
    assert report["flip-content"].result == "caught"
    assert "replay-name" in report["flip-content"].reasons
    assert {row.result for row in report.values()} == {"caught", "not-possible"}


def test_the_bundle_itself_is_not_touched(benches):
    before = digest_bytes(benches[0].read_bytes())
    selftest(benches[0], mutations=MUTATIONS[:3])
    assert digest_bytes(benches[0].read_bytes()) == before


def blind(path, **options):
    """A verifier that calls everything reproduced."""
    report = verify_bundle(path, **options)
    return msgspec.structs.replace(
        report, verdict="REPRODUCED, bit-identical", exit_status=0
    )


def always_no(path, **options):
    """A verifier that says no to everything and never says why."""
    report = verify_bundle(path, **options)
    return msgspec.structs.replace(
        report, verdict="NOT REPRODUCED", exit_status=10, findings=(), judgements=()
    )


def hasty(path, *, replay_file=None, **options):
    """A verifier that looks at no replay."""
    return verify_bundle(path, integrity_only=True, **options)


def test_a_verifier_that_always_says_yes_is_found_out(benches):
    report = selftest(benches[0], verify=blind)
    assert {row.result for row in report.rows} == {"passed", "not-possible"}
    assert report.exit_status == 10


def test_a_verifier_that_says_no_without_a_reason_is_found_out(benches):
    report = selftest(benches[0], verify=always_no)
    assert {row.result for row in report.rows} == {"wrong-reason", "not-possible"}
    assert report.exit_status == 10


def test_a_verifier_that_checks_digests_only_is_found_out(benches):
    report = rows(selftest(benches[0], verify=hasty))
    assert report["flip-content"].result == "caught"
    assert report["other-value"].result == "passed"
    assert report["other-value"].detail == "the replay"


def test_a_bundle_without_a_policy_is_no_subject(bench):
    bench.left_out = ("policy.json",)
    with pytest.raises(BadCallError, match="lacks what a replay is judged by"):
        selftest(bench.pack().path)


def test_a_damaged_bundle_is_no_subject(bench):
    data = bench.pack().path.read_bytes()
    bench.path.write_bytes(data[:-5])
    with pytest.raises(BundleError):
        selftest(bench.path)


def test_the_page_has_the_tables_of_the_mutations():
    tool = [sys.executable, "tools/verify_tables.py", "--check"]
    result = subprocess.run(tool, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


OF_ARRAYS = (
    "other-value",
    "nan-in-replay",
    "other-shape",
    "other-dtype",
    "zeros",
    "nan-on-both-sides",
)


@pytest.fixture(scope="module")
def checkpoint_rows(tmp_path_factory):
    """A run whose only output is a checkpoint, with its tensors exported."""
    values = np.linspace(1, 2, 12, dtype="f4")
    tensors = files.safetensors({"w": ("F32", (3, 4), values.tobytes())})
    run = Run({"model.pt": b"\x80\x02}1."}, tensors={"model.pt": tensors})
    made = Bench(tmp_path_factory.mktemp("checkpoint"), reference=run, repeat=run)
    return rows(selftest(made.pack().path))


@pytest.mark.parametrize("name", OF_ARRAYS)
def test_values_of_a_checkpoint_are_altered_too(checkpoint_rows, name):
    row = checkpoint_rows[name]
    assert (row.result, row.copies) == ("caught", 1)
    assert "output-not-compared" not in row.reasons


def test_outputs_of_plain_bytes_are_refused_by_digest_alone(tmp_path):
    bench = Bench(tmp_path, reference=Run(outputs={"plot.png": PLOT}))
    only = tuple(one for one in MUTATIONS if one.name == "by-digest-only")
    (row,) = selftest(bench.pack().path, mutations=only).rows
    assert (row.result, row.reasons) == ("caught", ("output-differs",))


def test_a_bit_of_a_signature_is_refused_for_the_right_reason():
    signed = VECTORS / "integrity" / "signature_without_subject" / "bundle.rpb.zip"
    only = tuple(one for one in MUTATIONS if one.name == "flip-content")
    (row,) = selftest(signed, mutations=only).rows
    assert row.result == "caught", row
    assert "signature-form" in row.reasons
