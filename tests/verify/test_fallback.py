"""What three witnesses of CPU fallback say together."""

import pytest

from reprobundle.format.record import Fact, Fallback, Process, Transfer, Witness
from tests.verify.builder import ENVIRONMENT, WITNESSES, found, on, reasons, used

MODE = Fallback(
    witness="warnings",
    operator="aten::mode.values",
    count=3,
    where="{project}/train.py:4",
    phase="forward",
)
PROFILED = Fallback(witness="profiler", operator="aten::mode", count=3)


def judged(bench, devices, traced=None, **changes):
    """Return the report on a replay, with a traced one of the same occasion if given.

    Both records are judged; the measured one stands first.
    """
    common = {"phases": (), "platform": "darwin", **changes}
    bench.pack().replay(devices=devices, **common)
    if traced is not None:
        bench.replay(devices=traced, pass_name="evidence", **common)
    return bench.verify()


def alone(**changes):
    """Return the devices of a measured run: only warnings are heard there."""
    return on("mps", "not-checked", witnesses=WITNESSES[:1], **changes)


def test_a_measured_run_with_a_clean_traced_one_is_reproduced(bench):
    report = judged(bench, alone(), on("mps"))
    assert report.exit_status == 0
    reason = found(report, "cpu-fallback", "pass")[0].reason
    assert reason == (
        "three witnesses saw none in 3 operator calls: warnings in the whole run; "
        "profiler in the whole run; census in the whole run"
    )
    assert found(report, "fallback-witnesses", "pass")


def test_a_measured_run_without_a_traced_one_is_not_known(bench):
    report = judged(bench, alone())
    assert report.verdict == "INCOMPLETE"
    gap = found(report, "cpu-fallback", "not-checked")[0]
    assert gap.reason.endswith("these witnesses did not look: profiler, census")
    assert gap.advice == "replay with --passes measured,evidence"


def test_the_word_none_seen_without_witnesses_is_not_believed(bench):
    report = judged(bench, on("mps", witnesses=(), operators=()))
    assert report.verdict == "INCOMPLETE"


@pytest.mark.parametrize("name", ["warnings", "profiler", "census"])
def test_each_witness_is_needed(bench, name):
    witnesses = tuple(
        Witness(name=one.name, looked=one.name != name) for one in WITNESSES
    )
    report = judged(bench, on("mps", witnesses=witnesses))
    assert report.verdict == "INCOMPLETE"
    assert name in found(report, "cpu-fallback", "not-checked")[0].reason or (
        name == "warnings"
    )


def test_nobody_listening_in_the_measured_run_is_a_gap_though_the_traced_is_clean(
    bench,
):
    report = judged(bench, on("mps", "not-checked"), on("mps"))
    assert report.verdict == "INCOMPLETE"
    assert "nobody listened to the warnings of the measured run" in reasons(report)


def test_a_torch_version_without_a_table_is_a_gap(bench):
    version = {**ENVIRONMENT, "torch.version": Fact(value="3.1.0", source="torch")}
    report = judged(bench, on("mps"), environment=version)
    gaps = found(report, "cpu-fallback", "not-checked")
    assert "no table of operators" in gaps[0].reason


def test_a_fallback_is_told_with_count_phase_place_and_weight(bench):
    traced = on(
        "mps",
        "seen",
        fallbacks=(MODE, PROFILED),
        operators=(used("aten.mode.default"), used("aten.addmm.default")),
    )
    report = judged(bench, alone(), traced)
    assert report.verdict == "REPRODUCED WITH WARNINGS"
    reason = found(report, "cpu-fallback", "warn")[0].reason
    assert reason == (
        "a mixed run: operators ran on the CPU instead of mps (mode 3 times (in "
        "forward, 96 bytes moved, central: in every step, at {project}/train.py:4))"
    )
    assert found(report, "fallback-witnesses", "pass")


def test_an_operator_called_once_is_not_central(bench):
    traced = on(
        "mps",
        "seen",
        fallbacks=(MODE, PROFILED),
        operators=(used("aten.mode.default", count=1, steps=1),),
    )
    report = judged(bench, alone(), traced)
    assert "central" not in found(report, "cpu-fallback", "warn")[0].reason


def test_the_table_alone_is_enough_to_say_so(bench):
    report = judged(bench, on("mps", operators=(used("aten.linalg_svd.default"),)))
    assert report.verdict == "REPRODUCED WITH WARNINGS"
    told = found(report, "cpu-fallback", "warn")[0].reason
    assert "whatever the fallback variable says" in told


@pytest.mark.parametrize(
    ("fallbacks", "operators", "words"),
    [
        ((), (used("aten.mode.default"),), "nobody saw it fall back"),
        ((PROFILED,), (), "no warning said so"),
        ((MODE,), (), "the profile shows none"),
    ],
)
def test_witnesses_that_contradict_each_other_are_a_finding(
    bench, fallbacks, operators, words
):
    state = "seen" if fallbacks else "none-seen"
    devices = on("mps", state, fallbacks=fallbacks, operators=operators)
    report = judged(bench, devices)
    assert words in found(report, "fallback-witnesses", "warn")[0].reason


def test_where_only_one_looked_there_is_no_contradiction(bench):
    partly = Witness(name="profiler", looked=True, steps=((1, 2),), total_steps=3)
    devices = on(
        "mps",
        "seen",
        fallbacks=(MODE,),
        operators=(used("aten.mode.default"),),
        witnesses=(WITNESSES[0], partly, WITNESSES[2]),
    )
    report = judged(bench, devices)
    assert found(report, "fallback-witnesses", "pass")


def test_what_the_script_moves_itself_is_counted_apart(bench):
    transfers = (
        Transfer(kind="from-device", where="t.py:8", count=5, bytes=20),
        Transfer(kind="scalar-read", where="t.py:9", count=3, bytes=12),
        Transfer(kind="to-device", where="t.py:2", count=3, bytes=96),
    )
    report = judged(bench, on("mps", transfers=transfers))
    assert report.exit_status == 0
    told = found(report, "host-transfers", "pass")[0].reason
    assert told == (
        "3 inputs that start on the CPU, 96 bytes (t.py:2 ×3); 5 explicit copies to "
        "the CPU, 20 bytes (t.py:8 ×5); 3 scalar reads, 12 bytes (t.py:9 ×3)"
    )


def test_a_kernel_that_leaves_by_itself_contradicts_no_profile(bench):
    text = "linalg_qr: limited to 512, falling back to CPU. (Triggered internally at x"
    heard = Fallback(witness="warnings", operator=text, count=1)
    report = judged(bench, alone(fallbacks=(heard,)), on("mps", fallbacks=(heard,)))
    assert found(report, "fallback-witnesses", "pass")
    assert found(report, "cpu-fallback", "warn")


def test_a_profile_that_was_cut_contradicts_no_warning(bench):
    cut = Witness(
        name="profiler", looked=True, steps=((1, 9),), total_steps=4, reason="cut"
    )
    traced = on(
        "mps", "seen", fallbacks=(MODE,), witnesses=(WITNESSES[0], cut, WITNESSES[2])
    )
    report = judged(bench, alone(fallbacks=(MODE,)), traced)
    assert found(report, "fallback-witnesses", "pass")


def test_an_operator_that_was_refused_is_no_result_of_the_device_alone(bench):
    caught = used("aten.heaviside.default", count=4, steps=4, refused=4)
    report = judged(bench, alone(), on("mps", operators=(caught,)))
    assert report.verdict == "REPRODUCED WITH WARNINGS"
    reason = found(report, "cpu-fallback", "warn")[0].reason
    assert "heaviside 4 times" in reason
    assert "refused by the device 4 times, and the script went on" in reason
    # Nobody could see it fall back, and nobody is blamed for it.
    assert found(report, "fallback-witnesses", "pass")


@pytest.mark.parametrize("side", [0, 1])
def test_a_process_without_the_recorder_may_have_fallen_back(bench, side):
    missed = Process(pid=7, argv=("python", "-I"), kind="python", entered=False)
    common = {"phases": (), "platform": "darwin"}
    seen = {"processes": (Process(pid=6, entered=True, ended=True), missed)}
    bench.pack().replay(devices=alone(), **common, **(seen if side == 0 else {}))
    bench.replay(
        devices=on("mps"),
        pass_name="evidence",
        **common,
        **(seen if side == 1 else {}),
    )
    report = bench.verify()
    assert report.verdict == "INCOMPLETE"
    (gap, *_) = found(report, "cpu-fallback", "not-checked")
    assert gap.reason.endswith("a Python process ran without the recorder")


def test_a_census_of_a_part_shows_no_absence(bench):
    cut = "a process that used the device did not report its end"
    census = Witness(name="census", looked=False, reason=cut)
    traced = on("mps", "not-checked", witnesses=(*WITNESSES[:2], census))
    report = judged(bench, alone(), traced)
    assert report.verdict == "INCOMPLETE"
    gap = found(report, "cpu-fallback", "not-checked")[0]
    assert gap.reason.endswith(f"the census is not whole: {cut}")


def test_what_a_machine_without_mps_refuses_is_no_fallback(bench):
    caught = used("aten.ones.default", refused=1)
    report = judged(bench, on("cpu", "none-possible", operators=(caught,)))
    assert found(report, "cpu-fallback", "pass")
    assert not found(report, "cpu-fallback", "warn")


def test_an_operator_that_was_refused_only_sometimes_is_doubted_as_well(bench):
    often = used("aten.mode.default", count=4, steps=4, refused=1)
    report = judged(bench, alone(), on("mps", operators=(often,)))
    assert found(report, "cpu-fallback", "warn")
    (doubt,) = found(report, "fallback-witnesses", "warn")[:1]
    assert "mode has no kernel by the table" in doubt.reason
