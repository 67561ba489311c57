"""Which device really ran, and whether times are times."""

from typing import Literal

import msgspec
import pytest

from reprobundle.format.policy import (
    Intent,
)
from reprobundle.format.record import (
    Fact,
    Phase,
)
from reprobundle.verify.defaults import default_policy
from reprobundle.verify.timing import is_duration
from tests.verify.builder import (
    ENVIRONMENT,
    found,
    on,
    reasons,
    used,
)


def test_a_clean_run_on_mps_is_reproduced(bench):
    devices = on("mps", requested="mps")
    bench.pack().replay(devices=devices, phases=(), platform="darwin")
    report = bench.verify()
    assert report.judgements[0].device == "mps"
    assert report.exit_status == 0


def test_a_cpu_run_labelled_mps_is_no_mps_result(bench):
    bench.pack().replay(devices=on("cpu", "none-possible", requested="mps"))
    report = bench.verify()
    assert (report.verdict, report.exit_status) == ("INCOMPLETE", 11)
    assert report.judgements[0].device == "cpu"
    assert "mps was asked for, tensors were seen on cpu only" in reasons(report)


def test_a_models_work_on_the_cpu_beside_the_device_is_a_warning(bench):
    step = used("aten.add.Tensor")
    forward = used(
        "aten.addmm.default", "cpu", phase="forward", count=3, where="{project}/t.py:4"
    )
    backward = used("aten.mm.default", "cpu", phase="backward", count=2)
    operators = (step, forward, backward)
    report = judged_on(bench, operators)
    assert report.verdict == "REPRODUCED WITH WARNINGS"
    asked = found(report, "device-asked", "warn")[0]
    assert asked.reason == (
        "mps was used, and the CPU did work of the model: 3 operators in forward, "
        "2 operators in backward"
    )
    assert asked.where == "{project}/t.py:4"
    # The CPU's operators are none that the device was given.
    assert "none in 3 operator calls" in found(report, "cpu-fallback", "pass")[0].reason
    assert bench.verify(allow=["device-asked"]).exit_status == 0


def test_a_loss_that_the_script_computes_on_the_cpu_is_an_explicit_copy(bench):
    loss = used("aten._log_softmax_backward_data.default", "cpu", phase="backward")
    report = judged_on(bench, (used("aten.mm.default", phase="backward"), loss))
    assert report.exit_status == 0


def judged_on(bench, operators):
    devices = on("mps", requested="mps", operators=operators)
    bench.pack().replay(devices=devices, phases=(), platform="darwin")
    return bench.verify()


def test_cpu_fallback_is_a_warning_that_can_never_be_allowed(bench):
    bench.policy = msgspec.structs.replace(
        default_policy(), intent=Intent(fallback="allowed")
    )
    bench.pack().replay(devices=on("mps", "seen"), phases=(), platform="darwin")
    report = bench.verify(allow=("cpu-fallback",))
    assert (report.verdict, report.exit_status) == ("REPRODUCED WITH WARNINGS", 12)
    assert "operators ran on the CPU instead of mps" in reasons(report)
    assert "the author allows it, it is shown all the same" in reasons(report)


@pytest.mark.parametrize("fallback", ["not-checked", "none-possible"])
def test_an_mps_run_without_a_fallback_witness_is_incomplete(bench, fallback):
    bench.pack().replay(devices=on("mps", fallback), phases=(), platform="darwin")
    report = bench.verify()
    assert report.verdict == "INCOMPLETE"
    assert "cpu-fallback" in report.not_checked


def test_a_device_that_never_falls_back_needs_no_witness(bench):
    bench.pack().replay(devices=on("cuda", "not-checked"), phases=())
    assert found(bench.verify(), "cpu-fallback", "not-applicable")


@pytest.mark.parametrize(
    "devices",
    [on("mps", standin=True), on("mps-standin"), on("mps-standin", requested="mps")],
)
def test_a_stand_in_is_never_the_device_and_can_never_be_allowed(bench, devices):
    bench.pack().replay(devices=devices, phases=())
    report = bench.verify(allow=("standin-device",))
    assert report.exit_status == 12
    assert report.judgements[0].device == "mps-standin"
    assert found(report, "standin-device", "warn")


@pytest.mark.parametrize(
    ("device", "changes", "words"),
    [
        ("mps", {"platform": "linux"}, "MPS exists on macOS only"),
        (
            "mps",
            {
                "platform": "darwin",
                "environment": {
                    **ENVIRONMENT,
                    "torch.mps.built": Fact(value=False, source="torch"),
                },
            },
            "this build of torch has no MPS",
        ),
        (
            "cuda",
            {
                "environment": {
                    **ENVIRONMENT,
                    "torch.version": Fact(value="2.13.0", source="torch"),
                    "torch.cuda.built": Fact(unknown="built without CUDA"),
                    "torch.hip.built": Fact(unknown="built without ROCm"),
                }
            },
            "neither CUDA nor ROCm",
        ),
    ],
)
def test_a_stand_in_that_hides_its_name_is_found_by_what_contradicts_it(
    bench, device, changes, words
):
    bench.pack().replay(devices=on(device, requested=device), phases=(), **changes)
    report = bench.verify(allow=("standin-device",))
    assert report.exit_status == 12
    assert report.judgements[0].device == f"{device}-standin"
    assert words in found(report, "standin-device", "warn")[0].reason


def test_a_mac_question_cannot_be_decided_on_linux(bench):
    intent = Intent(accepting_platforms=("macos-mps",))
    bench.policy = msgspec.structs.replace(default_policy(), intent=intent)
    bench.pack().replay()
    report = bench.verify()
    assert (report.verdict, report.exit_status) == ("NOT DECIDABLE HERE", 11)
    assert "counts on macos-mps, this replay ran on linux-cpu" in reasons(report)


def test_a_result_that_counts_on_a_mac_says_why_it_could_not_be_had_here(bench):
    intent = Intent(accepting_platforms=("macos-mps",))
    bench.policy = msgspec.structs.replace(default_policy(), intent=intent)
    facts = {
        "torch.mps.missing": Fact(value="not-macos", source="s"),
        "torch.mps.missing_cause": Fact(value="MPS exists on macOS only", source="s"),
        "torch.mps.missing_remedy": Fact(value="replay on a Mac", source="s"),
    }
    bench.pack().replay(environment={**ENVIRONMENT, **facts})
    report = bench.verify()
    (one,) = found(report, "accepting-platform", "not-checked")
    assert one.reason.endswith("ran on linux-cpu: MPS exists on macOS only")
    assert one.advice == "replay on a Mac"
    (asked,) = found(report, "device-asked", "pass")
    assert asked.reason == "it chose cpu by itself; MPS exists on macOS only"


def test_a_replay_on_an_accepting_platform_counts_before_a_newer_one(bench):
    intent = Intent(accepting_platforms=("macos-mps",))
    bench.policy = msgspec.structs.replace(default_policy(), intent=intent)
    bench.pack().replay(
        devices=on("mps"), platform="darwin", phases=(), occasion="1" * 16
    )
    bench.replay(occasion="2" * 16)
    assert bench.verify().exit_status == 0


def test_a_run_without_phases_has_no_times_to_check(bench):
    bench.pack().replay(phases=())
    assert found(bench.verify(), "unsynchronised-timing", "not-applicable")


@pytest.mark.parametrize(
    ("device", "phase"),
    [
        ("mps", {"synchronized": "none"}),
        ("mps", {"synchronized": "cpu"}),
        ("mps", {"synchronized": "mps", "synchronizations": 0}),
        ("mps", {"synchronized": "mps", "synchronizations": 1}),
        ("cpu", {"synchronized": "none"}),
    ],
)
def test_a_time_taken_without_waiting_is_a_warning(bench, device, phase):
    taken = Phase(
        name="forward", count=1, total_ns=1, median_ns=1, longest_ns=1, **phase
    )
    platform = "linux" if device == "cpu" else "darwin"
    fallback = "none-possible" if device == "cpu" else "none-seen"
    devices = on(device, fallback)
    bench.pack().replay(devices=devices, phases=(taken,), platform=platform)
    report = bench.verify()
    assert report.verdict == "REPRODUCED WITH WARNINGS"
    assert found(report, "unsynchronised-timing", "warn")[0].where == "forward"


def checked(unwaited_ns, *, count=30):
    """Return a forward phase whose entries took 20 ms each."""
    return Phase(
        name="forward",
        count=count,
        total_ns=count * 20_000_000,
        median_ns=20_000_000,
        longest_ns=30_000_000,
        synchronized="mps",
        synchronizations=2 * count,
        unwaited_median_ns=unwaited_ns,
    )


def named(unwaited_ns):
    """Return a phase that the script named itself."""
    return msgspec.structs.replace(checked(unwaited_ns), name="mine")


def self_check(bench, device, *phases):
    platform = "linux" if device == "cpu" else "darwin"
    fallback = "none-possible" if device == "cpu" else "none-seen"
    bench.pack().replay(devices=on(device, fallback), phases=phases, platform=platform)
    report = bench.verify()
    (one,) = (f for f in report.judgements[0].findings if f.id == "timing-self-check")
    return one, report


def test_the_self_check_says_what_a_clock_without_waits_would_have_read(bench):
    one, _ = self_check(bench, "mps", checked(2_000_000))
    assert one.outcome == "pass"
    assert "forward: 20.000 ms with waits, 2.000 ms without the last (10.0 %)" in (
        one.reason
    )


@pytest.mark.parametrize("phase", [checked(20_000_001), named(20_000_001)])
def test_a_self_check_that_contradicts_itself_is_a_warning(bench, phase):
    one, report = self_check(bench, "mps", phase)
    assert (one.outcome, one.where) == ("warn", phase.name)
    assert report.verdict == "REPRODUCED WITH WARNINGS"


@pytest.mark.parametrize(
    ("ratio", "outcome"), [(0.1, "pass"), (None, "pass"), (0.9, "warn"), (0.0, "warn")]
)
def test_a_ratio_that_is_not_that_of_its_medians_is_a_warning(bench, ratio, outcome):
    phase = msgspec.structs.replace(checked(2_000_000), unwaited_ratio=ratio)
    one, report = self_check(bench, "mps", phase)
    assert one.outcome == outcome
    if outcome == "warn":
        assert (one.expected, one.got) == ("2,000,000 ns of 20,000,000 ns", str(ratio))
        assert report.verdict == "REPRODUCED WITH WARNINGS"


def test_a_ratio_without_a_self_check_is_never_a_pass(bench):
    phase = msgspec.structs.replace(checked(None), unwaited_ratio=0.5)
    one, _ = self_check(bench, "mps", phase)
    assert one.outcome == "not-checked"


@pytest.mark.parametrize(
    ("device", "phases", "outcome"),
    [
        ("mps", (checked(None, count=5),), "not-checked"),
        ("mps", (named(None),), "not-checked"),
        ("mps", (), "not-applicable"),
        ("cpu", (), "not-applicable"),
    ],
)
def test_a_self_check_that_was_not_made_never_passes(bench, device, phases, outcome):
    one, _ = self_check(bench, device, *phases)
    assert one.outcome == outcome
    assert one.reason


@pytest.mark.parametrize(
    "changes",
    [
        {"synchronized": "cuda"},
        {"synchronized": "cpu"},
        {"synchronized": "none"},
        {"synchronizations": 59},
    ],
)
def test_a_self_check_of_times_that_are_none_does_not_count(bench, changes):
    phase = msgspec.structs.replace(checked(1_000_000), **changes)
    one, report = self_check(bench, "mps", phase)
    assert one.outcome == "not-checked"
    assert found(report, "unsynchronised-timing", "warn")


@pytest.mark.parametrize(
    ("name", "synchronizations", "is_one"),
    [
        ("forward", 6, True),
        ("forward", 5, False),
        ("transfer", 1, True),
        ("transfer", 0, False),
        ("data", 0, True),
    ],
)
def test_a_duration_has_two_waits_for_each_entry(name, synchronizations, is_one):
    how: Literal["mps", "cpu"] = "mps" if synchronizations else "cpu"
    taken = Phase(
        name=name,
        count=3,
        total_ns=1,
        median_ns=1,
        longest_ns=1,
        synchronized=how,
        synchronizations=synchronizations,
    )
    assert is_duration(taken, "mps") is is_one
    assert is_duration(taken, "cpu")
