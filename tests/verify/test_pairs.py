"""Two runs side by side: what was changed, what came of it, what that shows."""

from __future__ import annotations

from contextlib import ExitStack

import msgspec
import pytest

from reprobundle.cli import run
from reprobundle.errors import BadCallError, BundleError
from reprobundle.format.difference_report import DifferenceReport
from reprobundle.format.record import (
    Command,
    Devices,
    ErrorReport,
    Fact,
    FileRead,
    Outcome,
    Phase,
)
from reprobundle.verify.pairs.axes import axis_of
from reprobundle.verify.pairs.chosen_run import choose_run
from reprobundle.verify.pairs.diff import diff_runs
from tests.verify.builder import DATA, DRIFTED, ENVIRONMENT, FAR, Run, outputs

THREADS = {**ENVIRONMENT, "torch.num_threads": Fact(value=8, source="torch")}
THREADS_AND_TF32 = {
    **THREADS,
    "torch.cuda.allow_tf32": Fact(value=True, source="torch"),
}
WITHOUT_TF32 = {
    **ENVIRONMENT,
    "torch.cuda.allow_tf32": Fact(value=False, source="torch"),
}
FAILED = Outcome(
    exit_status=1,
    error=ErrorReport(
        type="ValueError", message="no", masked="no", where="", traceback=""
    ),
)


def diff(bench, replay=None, **changes) -> DifferenceReport:
    """Compare the reference of a bundle with a replay that differs so."""
    bench.pack().replay(replay, **changes)
    with ExitStack() as stack:
        left = choose_run(str(bench.path), stack)
        right = choose_run(f"{bench.path}:newest", stack)
        return diff_runs(left, right)


def rules(report):
    return [conclusion.rule for conclusion in report.conclusions]


def test_where_a_change_may_hide_two_runs_are_never_the_same(bench):
    fact = Fact(value=4, source="torch")
    report = diff(bench, environment={**ENVIRONMENT, "torch.interop_threads": fact})
    assert report.axes == ()
    assert "1 fact that counts is known of one side only" in report.conclusions[0].text
    assert report.exit_status == 10


def test_a_fact_that_counts_for_nothing_may_stand_on_one_side(bench):
    more = {**ENVIRONMENT, "replay.environment": Fact(value="fresh", source="replay")}
    report = diff(bench, environment=more)
    assert report.exit_status == 0
    assert report.conclusions[0].text == "nothing that counts was changed"


def test_equal_runs_do_not_differ(bench):
    report = diff(bench)
    assert (report.changes, report.axes, report.exit_status) == ((), (), 0)
    assert report.conclusions[0].text == "nothing that counts was changed"


def test_one_change_that_moves_the_outputs_is_named(bench):
    report = diff(bench, Run(outputs(logits=FAR)), environment=THREADS)
    assert report.axes == ("threads",)
    assert rules(report) == ["one-change", "one-change-differs"]
    assert report.conclusions[1].evidence == ("out/logits.npy",)
    assert report.exit_status == 10


def test_one_change_that_moves_nothing_is_named(bench):
    report = diff(bench, environment=THREADS)
    assert rules(report) == ["one-change", "one-change-agrees"]
    assert "threads leaves every output within the policy" in report.conclusions[1].text
    assert report.exit_status == 10


def test_two_changes_at_once_show_nothing(bench):
    bench.reference = Run(changes={"environment": WITHOUT_TF32})
    report = diff(bench, Run(outputs(logits=FAR)), environment=THREADS_AND_TF32)
    assert set(report.axes) == {"threads", "precision"}
    assert rules(report) == ["one-change"]
    assert "change one at a time" in report.conclusions[0].text


def test_outputs_that_differ_without_a_change_do_not_repeat(bench):
    report = diff(bench, Run(outputs(logits=FAR)))
    assert rules(report) == ["one-change", "not-repeatable"]


def test_runs_that_end_differently_are_not_compared_by_their_outputs(bench):
    report = diff(bench, outcome=FAILED, environment=THREADS)
    assert rules(report) == ["one-change", "other-ending"]
    assert report.conclusions[1].evidence == (
        "exit status 0 against exit status 1, ValueError",
    )
    assert report.exit_status == 10


@pytest.mark.parametrize(
    ("changes", "axis"),
    [
        ({"command": Command(argv=("python", "train.py", "-x"), seed=0)}, "command"),
        ({"files_digest": "0" * 64}, "code"),
        ({"reads": ()}, "data"),
        (
            {
                "reads": (
                    FileRead(
                        path="project:data.csv",
                        member="inputs/data.csv",
                        size_bytes=len(DATA),
                        blake3="1" * 64,
                    ),
                )
            },
            "data",
        ),
        (
            {
                "platform": "darwin",
                "devices": Devices(observed=("mps",), fallback="none-seen"),
                "environment": ENVIRONMENT,
            },
            "device",
        ),
        ({"devices": Devices(observed=("cpu",), fallback="not-checked")}, "fallback"),
        ({"environment": DRIFTED}, "version"),
    ],
)
def test_every_kind_of_change_is_found(bench, changes, axis):
    assert diff(bench, **changes).axes == (axis,)


@pytest.mark.parametrize(
    ("fact", "axis"),
    [
        ("stated.batch_size", "batch"),
        ("observed.input_shapes", "shape"),
        ("end.torch.cuda.matmul.allow_tf32", "precision"),
        ("torch.num_threads", "threads"),
        ("cpu.model", "architecture"),
        ("os.build", "version"),
        ("env.PYTORCH_MPS_HIGH_WATERMARK_RATIO", "allocator"),
        ("git.remote", "other"),
    ],
)
def test_facts_have_an_axis(fact, axis):
    assert axis_of(fact) == axis


def phase(median_ns, synchronized):
    return Phase(
        name="forward",
        count=3,
        total_ns=3 * median_ns,
        median_ns=median_ns,
        longest_ns=median_ns,
        synchronized=synchronized,
        synchronizations=6,
    )


def forward(report):
    return next(one for one in report.effects if one.name == "median forward, ns")


def test_times_have_a_ratio(bench):
    bench.reference = Run(changes={"phases": (phase(100, "cpu"),)})
    assert forward(diff(bench, phases=(phase(250, "cpu"),))).ratio == 2.5


def test_a_time_without_synchronisation_has_none(bench):
    bench.reference = Run(changes={"phases": (phase(100, "cpu"),)})
    effect = forward(diff(bench, phases=(phase(250, "none"),)))
    assert effect.ratio is None
    assert effect.right == "not synchronised"
    assert "without waiting for the device" in effect.not_comparable


def test_memory_under_other_limits_is_not_comparable(bench):
    limit = "env.PYTORCH_MPS_HIGH_WATERMARK_RATIO"
    peak = Fact(value=100, source="allocator")

    def made(ratio):
        memory = msgspec.structs.replace(
            bench.reference.build(bench.folder)[0].memory, peak_device_bytes=peak
        )
        facts = {**ENVIRONMENT, limit: Fact(value=ratio, source="os.environ")}
        return {"memory": memory, "environment": facts}

    bench.reference = Run(changes=made("1.4"))
    report = diff(bench, **made("0.0"))
    device = next(one for one in report.effects if "device memory" in one.name)
    assert device.ratio is None
    assert limit in device.not_comparable


# --- which run is meant


@pytest.mark.parametrize("run_name", ["9", "deadbeef", "1234567", "oldest"])
def test_a_run_that_is_not_there_is_named_with_those_that_are(bench, run_name):
    bench.pack().replay()
    with ExitStack() as stack, pytest.raises(BadCallError) as caught:
        choose_run(f"{bench.path}:{run_name}", stack)
    assert repr(run_name) in caught.value.message
    assert "sealed runs: 1, 2" in caught.value.advice


def test_a_replay_is_found_by_the_start_of_its_id(bench):
    replay_id = bench.pack().replay()
    with ExitStack() as stack:
        chosen = choose_run(f"{bench.path}:{replay_id[:8]}", stack)
    assert chosen.record.role == "replay"


def test_a_damaged_bundle_is_not_compared(bench):
    bench.pack().replay()
    data = bytearray(bench.path.read_bytes())
    data[data.index(b"import torch")] ^= 1
    bench.path.write_bytes(data)
    expected = (BadCallError, BundleError)
    with ExitStack() as stack, pytest.raises(expected, match=r"train\.py|sealed"):
        choose_run(str(bench.path), stack)


# --- the command


def test_the_command_compares_reference_and_newest_replay(bench, capsys):
    bench.pack().replay(Run(outputs(logits=FAR)), environment=THREADS)
    assert run(["diff", str(bench.path)]) == 10
    shown = capsys.readouterr().out
    assert "one thing was changed: threads" in shown
    assert "torch.num_threads" in shown


def test_the_command_speaks_json(bench, capsysbinary):
    bench.pack()
    assert run(["diff", f"{bench.path}:1", f"{bench.path}:2", "--json"]) == 0
    report = msgspec.json.decode(capsysbinary.readouterr().out, type=DifferenceReport)
    assert report.left == "digits.rpb.zip:1 (reference)"
    assert report.right == "digits.rpb.zip:2 (repeat)"


def test_the_command_needs_a_replay_if_none_is_named(bench, capsys):
    bench.pack()
    assert run(["diff", str(bench.path)]) == 20
    assert "has no run 'newest'" in capsys.readouterr().err
