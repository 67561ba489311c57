"""Attacks on our own verifier that once passed: none of them may be green again."""

from __future__ import annotations

import io
import json

import msgspec
import numpy as np
import pytest

from reprobundle.format.digests import digest_bytes
from reprobundle.format.policy import Claim, OutputRule, Tolerance
from reprobundle.format.record import Command, Devices, Fact, FileRead, Outcome, Process
from reprobundle.verify.defaults import default_policy
from tests.outputs import files
from tests.verify.builder import (
    DATA,
    ENVIRONMENT,
    ERROR,
    LOGITS,
    Run,
    found,
    npy,
    outputs,
)

INPUT = FileRead(
    path="project:data.csv",
    member="inputs/data.csv",
    size_bytes=len(DATA),
    blake3=digest_bytes(DATA),
)
BOTH_NAN = "both sides hold NaN"


def repeated(bench, run):
    """Return the verdict on a bundle whose replay gives the same bytes."""
    bench.reference = bench.repeat = run
    bench.pack().replay(run)
    return bench.verify()


def npz(**arrays):
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


class Liar(Run):
    """A run whose record states other figures than its arrays have."""

    def _output(self, folder, name, data, content):
        output = super()._output(folder, name, data, content)
        lie = {"nan": 0, "minimum": -1.0, "maximum": 1.0, "mean": 0.0, "l2": 2.0}
        arrays = [msgspec.structs.replace(one, **lie) for one in output.arrays]
        return msgspec.structs.replace(output, arrays=tuple(arrays))


@pytest.mark.parametrize(
    "run",
    [
        Run({"m.json": b'{"loss": NaN, "n": 3}'}),
        Run({"m.jsonl": b'{"loss": 1.5}\n{"loss": NaN}\n'}),
        Run({"m.csv": b"step,loss\n1,0.5\n2,nan\n"}),
        Run({"record:loss": b"NaN"}),
        Run({"a.npy": npy(np.array([1.0, np.nan]))}, summaries=False),
        Liar({"a.npy": npy(np.array([1.0, np.nan], "f4"))}),
    ],
    ids=["json", "jsonl", "csv", "value", "no summary", "wrong summary"],
)
def test_nan_in_equal_bytes_is_seen(bench, run):
    report = repeated(bench, run)
    (one,) = found(report, "nan-in-output", "warn")
    assert one.reason.startswith(BOTH_NAN)
    assert report.verdict == "REPRODUCED WITH WARNINGS"


@pytest.mark.parametrize(
    "run",
    [
        Run({"m.json": b'{"loss": 0.0, "score": -0.0}'}),
        Run({"m.csv": b"a,b\n0.0,0.0\n0.0,-0.0\n"}),
        Liar({"a.npy": npy(np.zeros(4, "f4"))}),
    ],
    ids=["json", "csv", "wrong summary"],
)
def test_nothing_but_zeros_in_equal_bytes_is_seen(bench, run):
    report = repeated(bench, run)
    assert found(report, "output-all-zero", "warn")
    assert report.exit_status == 12


@pytest.mark.parametrize("text", [b"{}", b"[]", b"[[], {}]"])
def test_a_document_that_holds_nothing_is_seen(bench, text):
    assert found(repeated(bench, Run({"m.json": text})), "output-empty", "warn")


@pytest.mark.parametrize(
    "run",
    [
        Run({"m.json": b'{"errors": 0, "loss": 0.5}'}),
        Run({"m.json": b'{"errors": 0}'}),
        Run({"m.csv": b"name,loss\nNanette,0.5\n"}),
        Run({"m.npz": npz(mask=np.zeros(3, bool), x=np.ones(3))}),
        Run({"m.json": b'{"train_seconds": 3.5}'}),
    ],
    ids=["zero beside", "one count", "a name", "a mask", "a time alone"],
)
def test_what_is_sound_in_equal_bytes_stays_green(bench, run):
    report = repeated(bench, run)
    assert report.verdict == "REPRODUCED, bit-identical", report.reasons


def long_table(end: bytes) -> bytes:
    rows = b"".join(b"%d,%d.5,fine\n" % (n, n) for n in range(30_000))
    return b"step,loss,note\n" + rows + end


def test_of_a_long_table_only_a_sign_makes_the_cells_be_read(bench, monkeypatch):
    from reprobundle.verify import compare_cells

    read = []
    usual = compare_cells.compare_tables

    def counting(*arguments, **options):
        read.append(1)
        return usual(*arguments, **options)

    monkeypatch.setattr(compare_cells, "compare_tables", counting)
    report = repeated(bench, Run({"m.csv": long_table(b"")}))
    assert (report.exit_status, read) == (0, [])
    report = repeated(bench, Run({"m.csv": long_table(b"30000,nan,bad\n")}))
    assert found(report, "nan-in-output", "warn")
    assert read


def test_a_long_table_of_zeros_is_seen(bench):
    zeros = b"loss,accuracy1\n" + b"0.0,0.00\n" * 40_000
    assert found(repeated(bench, Run({"m.csv": zeros})), "output-all-zero", "warn")


def test_a_run_that_took_no_time_is_none(bench):
    bench.pack().replay(elapsed_ns=0)
    report = bench.verify()
    assert report.verdict == "INCOMPLETE"
    (one,) = found(report, "copied-replay", "fail")
    assert "took no time" in one.reason


def test_a_replay_that_stopped_before_it_ran_may_have_taken_none(bench):
    stop = Outcome(exit_status=0, completed=False, stop="data", stop_detail="none")
    bench.pack().replay(elapsed_ns=0, outcome=stop, processes=())
    assert not found(bench.verify(), "copied-replay", "fail")


def test_an_input_read_twice_has_one_content(bench):
    other = msgspec.structs.replace(INPUT, member="", blake3="1" * 64)
    bench.pack().replay(reads=(other, INPUT))
    assert bench.verify().verdict == "NOT REPRODUCED"


def test_a_replay_that_read_the_result_may_have_copied_it(bench):
    result = FileRead(
        path="external:1/logits.npy",
        size_bytes=len(LOGITS),
        blake3=digest_bytes(LOGITS),
    )
    bench.pack().replay(reads=(INPUT, result))
    report = bench.verify()
    assert report.verdict == "REPRODUCED WITH WARNINGS"
    (one,) = found(report, "further-input", "warn")
    assert "may have copied the result" in one.reason


def test_another_file_that_only_the_replay_read_is_a_named_gap(bench):
    cache = FileRead(path="external:1/cache", size_bytes=3, blake3="1" * 64)
    mine = FileRead(path="project:mac.cfg", size_bytes=3, blake3="2" * 64)
    bench.pack().replay(reads=(INPUT, cache, mine))
    report = bench.verify()
    (one,) = found(report, "further-input", "not-checked")
    assert one.reason.endswith("did not read: external:1/cache")
    assert "further-input" in report.not_checked


def test_a_result_that_the_reference_read_too_is_an_input(bench):
    result = FileRead(
        path="external:1/logits.npy",
        size_bytes=len(LOGITS),
        blake3=digest_bytes(LOGITS),
    )
    reads = {"reads": (INPUT, result)}
    bench.reference = Run(changes=dict(reads))
    bench.repeat = Run(changes=dict(reads))
    bench.pack().replay(**reads)
    assert found(bench.verify(), "further-input", "pass")


def test_a_success_has_no_error_that_ended_it(bench):
    bench.pack().replay(outcome=Outcome(exit_status=0, error=ERROR))
    report = bench.verify()
    assert report.verdict == "NOT REPRODUCED"
    (one,) = found(report, "exit-status", "fail")
    assert one.reason == "it states a success and an error that ended it"


def test_a_process_of_a_success_came_to_its_end(bench):
    lost = Process(pid=1, kind="main", argv=("python", "x.py"), ended=False)
    bench.pack().replay(processes=(lost,))
    (one,) = found(bench.verify(), "run-warning", "warn")
    assert "did not report its end" in one.reason


def test_mps_was_not_on_debian(bench):
    system = {"os.name": Fact(value="Debian GNU/Linux 12", source="os-release")}
    used = Devices(observed=("cpu", "mps"), fallback="none-possible")
    bench.pack().replay(
        platform="darwin", devices=used, environment={**ENVIRONMENT, **system}
    )
    report = bench.verify()
    assert report.judgements[0].device == "mps-standin"
    assert found(report, "standin-device", "warn")


@pytest.mark.parametrize("device", ["cuda", "mps"])
def test_a_build_for_the_cpu_alone_used_no_accelerator(bench, device):
    used = Devices(observed=("cpu", device), fallback="none-possible")
    bench.pack().replay(devices=used, environment=ENVIRONMENT, platform="darwin")
    report = bench.verify()
    assert report.judgements[0].device == f"{device}-standin"
    assert found(report, "standin-device", "warn")
    assert report.exit_status


def test_one_claim_has_one_sealed_command(bench):
    bench.claims = {"main": Run({"out/x.txt": b"1\n"})}
    bench.pack()
    report = bench.verify()
    assert report.verdict == "UNREADABLE"
    (one,) = found(report, "sealed-document", "fail")
    assert "a claim has one command" in one.reason


@pytest.mark.parametrize(
    "claim",
    [
        Claim(name="further", statement="It works elsewhere"),
        Claim(name="stand-in", statement="The same on samples", command=("x",)),
    ],
    ids=["no command", "a reserved name"],
)
def test_a_claim_that_nobody_ran_leaves_a_part(bench, claim):
    bench.policy = msgspec.structs.replace(bench.policy, claims=(claim,))
    bench.pack().replay()
    report = bench.verify()
    assert report.verdict == "PARTIAL"
    assert {one.name: one.result for one in report.claims}[claim.name] == "NOT RUN"


@pytest.mark.parametrize(
    ("tolerance", "factor"),
    [
        (Tolerance(rtol=0.99, atol=0.0), 0.02),
        (Tolerance(rtol=1e-6, atol=0.0, share=0.49), None),
    ],
    ids=["factor", "share"],
)
def test_an_error_as_large_as_the_values_is_a_warning(bench, tolerance, factor):
    rule = OutputRule(match="*", tolerance=tolerance, reason="x")
    bench.policy = msgspec.structs.replace(
        default_policy(), outputs=(rule,), author="A", reason="x"
    )
    values = np.linspace(-1.0, 1.0, 24, dtype="f4").reshape(4, 6)
    if factor is None:
        values.flat[:11] = 1e9
    else:
        values *= np.float32(factor)
    bench.pack().replay(Run(outputs(logits=npy(values))))
    report = bench.verify()
    assert report.verdict == "REPRODUCED WITH WARNINGS"
    (one,) = found(report, "large-error", "warn")
    assert "about as large as the values" in one.reason


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"command": Command(argv=("true",), seed=0)}, "same-command"),
        ({"command": Command(argv=("python", "train.py"), seed=5)}, "same-seed"),
        ({"files_digest": "0" * 64}, "same-files"),
    ],
    ids=["command", "seed", "files"],
)
@pytest.mark.parametrize("which", ["repeat", "evidence"])
def test_a_pass_that_ran_something_else_repeats_nothing(bench, which, changes, words):
    setattr(bench, which, Run(changes=changes))
    bench.pack().replay()
    report = bench.verify()
    names = {
        "repeat": "reference-not-repeatable",
        "evidence": "tracing-changed-reference",
    }
    (one,) = found(report, names[which], "warn")
    assert words in one.reason
    assert report.verdict == "REPRODUCED WITH WARNINGS"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"claims": (Claim(name="main"), Claim(name="main"))}, "the claim 'main'"),
        ({"tolerances": default_policy().tolerances[:1] * 2}, "devices twice"),
    ],
    ids=["claim", "tolerance"],
)
def test_a_policy_states_nothing_twice(bench, fields, words):
    bench.policy = msgspec.structs.replace(bench.policy, **fields)
    bench.pack().replay()
    report = bench.verify()
    assert report.verdict == "UNREADABLE"
    assert words in found(report, "sealed-document", "fail")[0].reason


# --- what a file holds beside the numbers that were compared

ONES = ("F32", (2,), np.ones(2, "f4").tobytes())
PICKLED = (b"\x80\x02}1.", b"\x80\x02}2.")


def with_texts(**texts):
    return files.safetensors({"w": ONES}, texts=texts)


def replayed(bench, reference, replay):
    """Return the report on a replay with other outputs than the reference."""
    bench.reference, bench.repeat = reference, None
    bench.pack().replay(replay)
    return bench.verify()


@pytest.mark.parametrize(
    ("other", "problem"),
    [
        ({"classes": "cat,dog"}, "REPRODUCED, within tolerance"),
        ({"classes": "dog,cat"}, "classes: the text differs"),
        ({}, "classes: text missing in the replay"),
        ({"classes": "cat,dog", "n": "2"}, "n: text not in the reference"),
        ({"classes": "cat,dog", "saved_time": "3"}, "REPRODUCED, within tolerance"),
    ],
)
def test_texts_of_a_checkpoint_are_compared(bench, other, problem):
    ours, theirs = (with_texts(**one) for one in ({"classes": "cat,dog"}, other))
    report = replayed(
        bench,
        Run({"m.pt": PICKLED[0]}, tensors={"m.pt": ours}),
        Run({"m.pt": PICKLED[1]}, tensors={"m.pt": theirs}),
    )
    said = (report.verdict, report.judgements[0].outputs[0].reason)
    assert problem in said
    assert (report.exit_status == 0) is problem.startswith("REPRODUCED")


def test_texts_of_a_safetensors_file_are_compared(bench):
    ours, theirs = (with_texts(epoch=number) for number in ("1", "2"))
    report = replayed(
        bench, Run({"w.safetensors": ours}), Run({"w.safetensors": theirs})
    )
    assert report.verdict == "NOT REPRODUCED"


def test_a_number_in_hexadecimal_that_a_notebook_prints_is_a_result(bench):
    ours, theirs = (notebook(f"crc {crc}") for crc in ("0xdeadbeef", "0xcafebabe"))
    report = replayed(bench, Run({"a.ipynb": ours}), Run({"a.ipynb": theirs}))
    assert report.verdict == "NOT REPRODUCED"


def test_what_only_calls_itself_a_widget_is_compared(bench):
    ours, theirs = (notebook("x", {"text/widget": word}) for word in ("one", "two"))
    report = replayed(bench, Run({"a.ipynb": ours}), Run({"a.ipynb": theirs}))
    assert report.verdict == "NOT REPRODUCED"


def notebook(text, data=None):
    shown = [{"output_type": "stream", "name": "stdout", "text": text}]
    if data:
        shown.append({"output_type": "display_data", "data": data, "metadata": {}})
    cell = {"cell_type": "code", "source": "x", "metadata": {}, "outputs": shown}
    return json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4}).encode()


@pytest.mark.parametrize(
    ("rows", "said"), [(10, "REPRODUCED"), (3, "NOT"), (11, "NOT")]
)
def test_of_later_rows_of_a_document_the_number_counts(bench, rows, said):
    rule = OutputRule(match="*", rows=3, reason="chaotic from there on")
    bench.policy = msgspec.structs.replace(
        bench.policy, author="a", reason="r", outputs=(rule,)
    )
    ours, theirs = (
        Run({"a.json": json.dumps({"loss": [0.5, 0.4, 0.3, *later]}).encode()})
        for later in ([0.2] * 7, [0.1] * (rows - 3))
    )
    assert replayed(bench, ours, theirs).verdict.startswith(said)
