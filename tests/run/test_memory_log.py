"""The memory log of a run: what is kept, what limits it, how it went."""

from reprobundle.format.record import Fact, Growth
from reprobundle.outputs.memory_course import course
from reprobundle.run.events import (
    AllocatorEvent,
    EventFile,
    MemoryEvent,
    ShapeCount,
    ShapesEvent,
    Start,
)
from reprobundle.run.memory_log import (
    MOST_CLOCK_SAMPLES,
    growth_remarks,
    memory,
    memory_samples,
    thinned,
)


def process(*events, pid=1):
    start = Start(
        t_ns=0,
        pid=pid,
        parent_pid=0,
        kind="main",
        argv=("python",),
        executable="python",
        working_directory="/",
    )
    return EventFile(start=start, events=(start, *events), damaged_lines=0)


def log(*files, environment=None):
    samples = memory_samples(files, 0)
    return memory(
        files,
        samples,
        environment or {},
        series="memory.json",
        kept=len(thinned(samples)),
        hide=[("/scratch", "{project}")],
    )


def steps(count, size, *, counter="anonymous", shapes=None):
    return [
        MemoryEvent(
            t_ns=n,
            point=f"step {n}",
            bytes={counter: size(n)},
            step=n,
            shapes=shapes(n) if shapes else 1,
        )
        for n in range(1, count + 1)
    ]


def emptied(step, **changes):
    fields = {
        "function": "torch.cuda.empty_cache",
        "value": "",
        "where": "/scratch/train.py:7",
        "calls": 1,
        "in_use": True,
        **changes,
    }
    return AllocatorEvent(t_ns=step, step=step, **fields)


def test_samples_that_tell_the_pressure_are_counted():
    told = MemoryEvent(t_ns=5, point="clock", bytes={"rss": 1}, pressure={"level": 1.0})
    silent = MemoryEvent(t_ns=6, point="clock", bytes={"rss": 1})
    assert log(process(told, silent, told)).with_pressure == 2
    assert log(process(silent)).with_pressure == 0


def test_the_peak_is_the_largest_sample_of_any_process():
    files = (
        process(MemoryEvent(t_ns=5, point="start", bytes={"rss": 10})),
        process(MemoryEvent(t_ns=3, point="end", bytes={"rss": 30}), pid=2),
    )
    assert [sample.t_ns for sample in memory_samples(files, 1)] == [2, 4]
    peak = log(*files).peak_rss_bytes
    assert (peak.value, peak.source) == (30, "largest rss of the memory series")


def test_what_the_kernel_saw_counts_more_than_what_was_sampled():
    found = log(
        process(
            MemoryEvent(t_ns=1, point="end", bytes={"rss": 10, "rss_peak": 99}),
        )
    )
    assert found.peak_rss_bytes.value == 99
    assert "rss_peak" in found.peak_rss_bytes.source


def test_without_samples_the_peak_is_unknown_with_a_reason():
    found = log()
    assert (found.series, found.samples, found.course) == ("", 0, "not-classified")
    assert found.peak_rss_bytes.unknown


def test_a_leak_is_seen_in_the_process_that_has_the_loop():
    worker = process(*steps(6, lambda n: 10**8), pid=2)
    found = log(process(*steps(60, lambda n: 10**8 + n * 2_400_000)), worker)
    (growth,) = found.growth
    assert (found.rounds, found.course, growth.kind) == ("step", "linear", "linear")
    assert growth.bytes_per_round == 2_400_000


def test_a_loop_without_an_optimizer_is_followed_by_its_calls():
    calls = [
        MemoryEvent(t_ns=n, point=f"call {n}", bytes={"rss": 10**8})
        for n in range(1, 40)
    ]
    found = log(process(*calls))
    assert (found.rounds, found.course) == ("call", "flat")


def test_a_script_without_a_loop_has_no_course():
    found = log(process(MemoryEvent(t_ns=1, point="end", bytes={"rss": 1})))
    assert (found.rounds, found.growth, found.course) == ("", (), "not-classified")


def test_no_value_after_an_emptied_cache_proves_that_nothing_grew():
    flat = steps(60, lambda n: 10**8, counter="cuda_allocated")
    (growth,) = log(process(*flat, emptied(20))).growth
    assert growth.kind == "not-classified"
    assert "emptied after round 20" in growth.reason
    (growth,) = log(process(*flat, emptied(20, in_use=False))).growth
    assert growth.kind == "flat"


def test_what_grows_although_the_cache_was_emptied_grows():
    leak = steps(60, lambda n: n * 10**6, counter="cuda_allocated")
    (growth,) = log(process(*leak, emptied(20))).growth
    assert growth.kind == "linear"


def test_growth_on_the_host_alone_is_told_from_growth_on_the_device():
    def both(n):
        return MemoryEvent(
            t_ns=n,
            point=f"step {n}",
            bytes={"anonymous": n * 10**6, "cuda_allocated": 5 * 10**8},
        )

    found = log(process(*(both(n) for n in range(1, 60))))
    assert found.course == "host-only"
    assert {one.counter: one.kind for one in found.growth} == {
        "anonymous": "linear",
        "cuda_allocated": "flat",
    }


def test_what_was_not_classified_never_reads_as_flat():
    def growth(kind, counter="anonymous"):
        return Growth(counter=counter, kind=kind)

    flat = growth("flat")
    assert course([flat, growth("not-classified", "cuda_reserved")]) == "not-classified"
    assert course([flat, growth("step", "cuda_reserved")]) == "step"
    linear = growth("linear")
    unknown = growth("not-classified", "cuda_allocated")
    assert course([linear, unknown]) == "linear"


def test_limits_are_what_the_variables_say_and_what_the_script_sets():
    fraction = emptied(
        3, function="torch.cuda.set_per_process_memory_fraction", value="0.5"
    )
    environment = {
        "env.PYTORCH_CUDA_ALLOC_CONF": Fact(value="max_split_size_mb:32"),
        "env.PYTORCH_MPS_HIGH_WATERMARK_RATIO": Fact(unknown="not set"),
        "env.LANG": Fact(value="C"),
    }
    assert log(process(fraction), environment=environment).limits == {
        "PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:32",
        "torch.cuda.set_per_process_memory_fraction": "0.5",
    }


def test_a_limit_that_the_script_sets_before_torch_is_the_one_in_force():
    name = "PYTORCH_CUDA_ALLOC_CONF"
    environment = {
        f"env.{name}": Fact(value="backend:native"),
        f"at_torch.env.{name}": Fact(value="backend:cudaMallocAsync"),
    }
    limits = log(process(), environment=environment).limits
    assert limits == {name: "backend:cudaMallocAsync"}
    environment[f"at_torch.env.{name}"] = Fact(value="(unset)")
    assert log(process(), environment=environment).limits == {}


def test_growth_is_remarked_on_and_a_flat_course_is_not():
    leak = log(process(*steps(60, lambda n: 10**8 + n * 2_400_000)))
    (remark,) = growth_remarks(leak)
    assert (remark.id, remark.where) == ("memory-grows", "anonymous")
    assert "2,400,000 bytes a step" in remark.text
    assert list(growth_remarks(log(process(*steps(60, lambda n: 10**8))))) == []


def test_every_call_that_empties_a_cache_is_in_the_log():
    (call,) = log(process(emptied(4), emptied(8, calls=16))).calls
    assert (call.function, call.where) == (
        "torch.cuda.empty_cache",
        "{project}/train.py:7",
    )
    assert (call.calls, call.first_step) == (16, 4)


def test_shapes_are_those_of_the_process_with_the_loop():
    def shapes(*counts):
        return ShapesEvent(
            t_ns=1,
            shapes=tuple(
                ShapeCount(shape=f"float32[{n}]", count=count)
                for n, count in enumerate(counts)
            ),
            other=0,
            distinct=len(counts),
        )

    found = log(
        process(*steps(3, lambda n: 1), shapes(1), shapes(5, 7)),
        process(shapes(9, 9, 9), pid=2),
    )
    assert [shape.count for shape in found.shapes] == [5, 7]
    assert found.distinct_shapes == 2


def test_a_long_series_is_thinned_but_keeps_its_points_and_its_peaks():
    clock = [
        MemoryEvent(t_ns=n, point="clock", bytes={"rss": 9 if n == 4001 else 1})
        for n in range(30_000)
    ]
    named = [MemoryEvent(t_ns=7, point="start", bytes={"rss": 1})]
    samples = memory_samples((process(*clock, *named),), 0)
    kept = thinned(samples)
    assert len(kept) <= MOST_CLOCK_SAMPLES + 2
    assert max(sample.bytes["rss"] for sample in kept) == 9
    assert any(sample.point == "start" for sample in kept)
    assert kept[-1].t_ns > 29_900
    found = log(process(*clock, *named))
    assert (found.taken, found.samples) == (30_001, len(kept))
