"""Memory logs: comparable only under equal limits, and growth that the other lacks."""

import msgspec
import pytest

from reprobundle.format.attach import attach_replay
from reprobundle.format.canonical import encode
from reprobundle.format.digests import digest_bytes
from reprobundle.format.record import (
    AllocatorCall,
    Devices,
    Fact,
    Growth,
    Memory,
    MemorySample,
    MemorySeries,
)
from reprobundle.format.writer import Source
from tests.verify.builder import found, reasons

LOG = Memory(
    series="memory.json",
    samples=2,
    peak_rss_bytes=Fact(value=2000, source="largest sample"),
    peak_device_bytes=Fact(unknown="no device"),
    rounds="step",
    course="flat",
)
LEAK = Growth(
    counter="anonymous",
    kind="linear",
    bytes_per_round=2_400_000.0,
    noise_bytes_per_round=67_000.0,
    first_round=4,
    last_round=60,
)


def log(**changes):
    return msgspec.structs.replace(LOG, **changes)


def judged(bench, reference, replay, **changes):
    bench.reference.changes["memory"] = reference
    bench.pack().replay(memory=replay, **changes)
    return bench.verify()


def test_two_flat_logs_pass(bench):
    report = judged(bench, log(), log(course="step"))
    assert report.exit_status == 0
    assert found(report, "memory-limits", "pass")
    assert found(report, "memory-growth", "pass")


def test_growth_that_the_reference_lacks_is_a_warning_with_its_size(bench):
    report = judged(bench, log(), log(course="linear", growth=(LEAK,)))
    assert report.verdict == "REPRODUCED WITH WARNINGS"
    (grown,) = found(report, "memory-growth", "warn")
    assert (grown.where, grown.expected) == ("anonymous", "flat")
    assert grown.got == "2,400,000 bytes a round, noise 67,000"


@pytest.mark.parametrize("course", ["with-shapes", "host-only"])
def test_every_kind_of_growth_counts(bench, course):
    report = judged(bench, log(), log(course=course))
    assert found(report, "memory-growth", "warn")[0].expected == "flat"


def test_growth_on_both_sides_is_said_and_no_difference(bench):
    report = judged(bench, log(course="linear"), log(course="linear"))
    assert "both grow" in found(report, "memory-growth", "pass")[0].reason


def test_less_growth_than_in_the_reference_is_no_warning(bench):
    report = judged(bench, log(course="linear"), log())
    assert found(report, "memory-growth", "pass")


@pytest.mark.parametrize("course", ["not-classified", "unclear"])
@pytest.mark.parametrize("side", ["reference", "replay"])
def test_a_course_that_is_not_known_is_never_a_pass(bench, course, side):
    few = Growth(counter="anonymous", kind="not-classified", reason="9 samples")
    unknown = log(course=course, growth=(few,))
    logs = (unknown, log()) if side == "reference" else (log(), unknown)
    report = judged(bench, *logs)
    (growth,) = found(report, "memory-growth")
    assert growth.outcome == "not-checked"
    assert side in growth.reason
    assert "9 samples" in growth.reason


@pytest.mark.parametrize(
    ("reference", "replay"),
    [
        ({}, {"PYTORCH_MPS_HIGH_WATERMARK_RATIO": "0.0"}),
        ({"PYTORCH_CUDA_ALLOC_CONF": "backend:native"}, {}),
        (
            {"torch.cuda.set_per_process_memory_fraction": "0.5"},
            {"torch.cuda.set_per_process_memory_fraction": "0.9"},
        ),
    ],
)
def test_under_other_limits_two_logs_are_not_comparable(bench, reference, replay):
    report = judged(bench, log(limits=reference), log(limits=replay, course="linear"))
    assert report.verdict == "REPRODUCED WITH WARNINGS"
    (limits,) = found(report, "memory-limits", "warn")
    (name,) = {*reference, *replay}
    assert limits.where == name
    assert limits.got == replay.get(name, "not set")
    assert "not comparable" in reasons(report)
    # Growth under other limits is neither a finding nor an acquittal.
    assert found(report, "memory-growth")[0].outcome == "not-checked"


def test_a_differing_limit_can_be_allowed_by_name(bench):
    judged(bench, log(), log(limits={"PYTHONMALLOC": "malloc"}))
    assert bench.verify(allow=("memory-limits",)).exit_status == 0


def test_another_kind_of_device_has_other_limits_but_may_still_leak(bench):
    devices = Devices(observed=("cuda",), fallback="none-possible", reason="cuda")
    report = judged(
        bench,
        log(limits={"PYTHONMALLOC": "malloc"}),
        log(course="linear", growth=(LEAK,)),
        devices=devices,
        phases=(),
    )
    assert found(report, "memory-limits", "not-applicable")
    assert found(report, "memory-growth", "warn")


def test_without_a_log_nothing_is_compared(bench):
    report = judged(bench, log(), log(samples=0, series=""))
    for name in ("memory-limits", "memory-growth"):
        assert found(report, name)[0].outcome == "not-checked"


def test_without_a_loop_there_is_no_course(bench):
    none = log(rounds="", course="not-classified")
    report = judged(bench, none, none)
    assert found(report, "memory-growth", "not-applicable")


def with_series(bench, sizes, **changes):
    """Attach a replay whose record calls flat what its series shows."""
    samples = tuple(
        MemorySample(t_ns=n, point=f"step {n}", step=n, pid=1, bytes={"rss": size})
        for n, size in enumerate(sizes, start=1)
    )
    data = encode(MemorySeries(samples=samples))
    record, sources = bench.pack().replay_tree(
        memory=log(samples=len(samples), **changes)
    )
    members = tuple(
        msgspec.structs.replace(one, size_bytes=len(data), blake3=digest_bytes(data))
        if one.name == "memory.json"
        else one
        for one in record.members
    )
    record = msgspec.structs.replace(record, members=members)
    kept = [one for one in sources if one.path != "memory.json"]
    series = Source("memory.json", "series", data)
    attach_replay(bench.path, encode(record), [*kept, series])
    return bench.verify()


def test_a_leak_that_the_record_calls_flat_is_seen_in_its_series(bench):
    report = with_series(bench, [n << 20 for n in range(60)])
    (one,) = found(report, "memory-growth", "warn")
    assert one.reason.endswith("; its record says flat, its series does not")
    assert (one.where, one.got.split()[0]) == ("rss", "1,048,576")
    assert report.verdict == "REPRODUCED WITH WARNINGS"


def test_a_series_that_settles_passes(bench):
    assert found(with_series(bench, [5 << 20] * 60), "memory-growth", "pass")


def test_a_series_after_an_emptied_cache_proves_growth_only(bench):
    emptied = AllocatorCall(
        function="torch.cuda.empty_cache",
        value="",
        where="x:1",
        calls=1,
        first_step=5,
        in_use=True,
    )
    report = with_series(bench, [n << 20 for n in range(60)], calls=(emptied,))
    assert found(report, "memory-growth", "warn")
