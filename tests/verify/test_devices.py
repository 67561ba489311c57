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
