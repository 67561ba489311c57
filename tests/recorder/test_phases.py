"""Measuring phases: nesting, threads, devices, medians."""

import os
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reprobundle.recorder import host_memory, phases
from reprobundle.recorder.devices import Devices
from reprobundle.recorder.durations import Total, first_steady
from reprobundle.recorder.memory import Memory
from reprobundle.recorder.models import Models
from reprobundle.recorder.phases import Clock
from reprobundle.recorder.shapes import Shapes
from reprobundle.recorder.training import Rounds


class Heard:
    """A session that keeps what it is told."""

    def __init__(self):
        self.events = []
        self.troubles = []

    def emit(self, event, **fields):
        self.events.append({"event": event, **fields})

    def emit_all(self, events):
        self.events += events

    def trouble(self, part, error):
        self.troubles.append((part, str(error)))

    def attempt(self, part, action, *arguments):
        try:
            return action(*arguments)
        except (RuntimeError, TypeError) as error:
            self.trouble(part, error)


class Time:
    """A clock that moves only when it is told to."""

    def __init__(self):
        self.now = 10_000

    def __call__(self):
        return self.now


@pytest.fixture
def time(monkeypatch):
    time = Time()
    monkeypatch.setattr(phases, "monotonic_ns", time)
    return time


@pytest.fixture
def session() -> Any:
    return Heard()


@pytest.fixture
def clock(session, time):
    return Clock(session, lambda: "cpu")


def totals(clock, session):
    clock.flush()
    return {phase["name"]: phase for phase in session.events[-1]["phases"]}


def test_a_phase_inside_another_belongs_to_it(clock, session, time):
    assert clock.begin("data")
    time.now += 5
    assert not clock.begin("forward")
    time.now += 5
    clock.end()
    result = totals(clock, session)
    assert set(result) == {"data"}
    assert result["data"]["total_ns"] == 10


def test_passes_inside_a_step_are_taken_from_its_time(clock, session, time):
    clock.begin("optimizer")
    time.now += 1
    for name, length in (("forward", 10), ("backward", 20)):
        assert clock.begin(name)
        time.now += length
        clock.end()
    time.now += 2
    clock.end()
    result = {name: phase["total_ns"] for name, phase in totals(clock, session).items()}
    assert result == {"forward": 10, "backward": 20, "optimizer": 3}


def test_a_step_that_was_never_closed_is_no_entry(clock, session, time):
    clock.begin("optimizer")
    time.now += 100
    clock.begin("optimizer")
    time.now += 1
    clock.end()
    clock.end()
    phase = totals(clock, session)["optimizer"]
    assert (phase["count"], phase["total_ns"]) == (1, 1)


def test_named_phases_include_all_that_happens_in_them(clock, session, time):
    with clock.span("epoch"):
        clock.begin("forward")
        time.now += 7
        clock.end()
        time.now += 1
    result = {name: phase["total_ns"] for name, phase in totals(clock, session).items()}
    assert result == {"forward": 7, "epoch": 8}


def test_time_without_an_entry_is_added_and_not_counted(clock, session, time):
    clock.begin("data")
    time.now += 3
    clock.end(counted=False)
    phase = totals(clock, session)["data"]
    assert (phase["count"], phase["total_ns"], phase["median_ns"]) == (0, 3, 0)


def test_only_the_thread_that_trains_is_measured(clock, session):
    began = []
    clock.begin("forward")
    clock.end()
    thread = threading.Thread(target=lambda: began.append(clock.begin("forward")))
    thread.start()
    thread.join()
    assert began == [False]
    assert totals(clock, session)["forward"]["count"] == 1


def test_a_thread_that_trains_first_is_measured(clock, session):
    def train():
        clock.begin("import")
        clock.begin("forward")
        clock.end()

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    assert not clock.begin("forward")
    assert totals(clock, session)["forward"]["count"] == 1


def test_totals_are_sent_at_most_once_a_second(clock, session, time):
    for _ in range(30):
        clock.begin("forward")
        time.now += 100_000_000
        clock.end()
    assert 2 <= len(session.events) <= 3
    assert totals(clock, session)["forward"]["count"] == 30


def test_nothing_new_is_not_sent(clock, session):
    clock.flush()
    assert session.events == []


def test_the_median_stays_that_of_the_whole_run():
    total = Total("forward")
    for length in range(1, 50_001):
        total.add(length)
    fields: dict[str, Any] = total.fields()
    assert len(total._kept) <= 10_000
    assert fields["count"] == 50_000
    assert fields["longest_ns"] == 50_000
    assert abs(fields["median_ns"] - 25_000) < 100


def test_a_reading_without_a_wait_marks_the_whole_phase(session, time):
    answers = iter(["cuda", "cuda", "none", "cuda"])
    clock = Clock(session, lambda: next(answers))
    for _ in range(2):
        clock.begin("forward")
        clock.end()
    phase = totals(clock, session)["forward"]
    assert phase["synchronized"] == "none"
    assert phase["synchronizations"] == 2


def test_waits_are_counted(session, time):
    clock = Clock(session, lambda: "cuda")
    with clock.span("epoch"):
        clock.begin("forward")
        clock.end()
    result = totals(clock, session)
    for phase in result.values():
        assert (phase["synchronized"], phase["synchronizations"]) == ("cuda", 2)


def test_each_steady_entry_is_read_with_and_without_its_last_wait(session, time):
    def wait():
        time.now += pending[0]
        pending[0] = 0
        return "cuda"

    pending = [0]
    clock = Clock(session, wait)
    for _ in range(30):
        clock.begin("forward")
        time.now += 2  # Asking for the work; the device needs ten times as long.
        pending[0] = 18
        clock.end()
    phase = totals(clock, session)["forward"]
    assert (phase["median_ns"], phase["unwaited_median_ns"]) == (20, 2)
    assert phase["unwaited_ratio"] == 0.1
    assert phase["synchronizations"] == 60


@pytest.mark.parametrize(("how", "entries"), [("cuda", 19), ("cpu", 30), ("none", 30)])
def test_without_waits_or_a_steady_state_there_is_no_self_check(
    session, time, how, entries
):
    clock = Clock(session, lambda: how)
    for _ in range(entries):
        clock.begin("forward")
        time.now += 5
        clock.end()
    phase = totals(clock, session)["forward"]
    assert phase["unwaited_median_ns"] is None
    assert phase["unwaited_ratio"] is None


@pytest.mark.parametrize(("inside", "unwaited"), [((), 2), (("forward",), None)])
def test_a_phase_of_the_script_has_a_self_check_unless_we_waited_inside_it(
    session, time, inside, unwaited
):
    def wait():
        time.now += pending[0]
        pending[0] = 0
        return "cuda"

    pending = [0]
    clock = Clock(session, wait)
    for _ in range(30):
        with clock.span("mine"):
            time.now += 2
            pending[0] = 18
            for name in inside:
                clock.begin(name)
                clock.end()
    phase = totals(clock, session)["mine"]
    assert (phase["median_ns"], phase["unwaited_median_ns"]) == (20, unwaited)


def test_a_phase_of_the_script_inside_another_leaves_that_without_a_self_check(
    session, time
):
    clock = Clock(session, lambda: "cuda")
    for _ in range(30):
        with clock.span("outer"), clock.span("inner"):
            time.now += 2
    found = totals(clock, session)
    assert found["outer"]["unwaited_median_ns"] is None
    assert found["inner"]["unwaited_median_ns"] == 2


def test_one_entry_that_was_not_waited_for_ends_the_self_check(session, time):
    answers = iter(["cpu", "cpu"])
    clock = Clock(session, lambda: next(answers, "cuda"))
    for _ in range(30):
        clock.begin("forward")
        clock.end()
    assert totals(clock, session)["forward"]["unwaited_median_ns"] is None


def test_the_self_check_of_a_long_run_stays_beside_its_durations():
    total = Total("forward")
    total.note("cuda")
    for length in range(1, 50_001):
        total.add(2 * length, unwaited_ns=length)
    fields: dict[str, Any] = total.fields()
    assert total._unwaited == [length // 2 for length in total._kept]
    assert fields["unwaited_median_ns"] == fields["median_ns"] // 2


def test_no_time_of_the_recorder_comes_from_an_event():
    folder = Path(phases.__file__).parent
    words = ("elapsed_time", ".Event(", "record_event", "enable_timing")
    found = [
        (path.name, word)
        for path in sorted(folder.rglob("*.py"))
        for word in words
        if word in path.read_text(encoding="utf-8")
        # It answers a script that asks for an event's time, in a forecast.
        and path.name != "mps_answers.py"
    ]
    assert found == []


def test_a_failing_device_never_reaches_the_script(session, time):
    def fail():
        raise RuntimeError("device lost")

    clock = Clock(session, fail)
    assert clock.begin("forward") is False
    clock.end()
    assert session.troubles == [("phases", "device lost")]


class Torch:
    """As much of torch as the device code asks for."""

    class Tensor:
        def __init__(self, kind):
            self.device = SimpleNamespace(type=kind)

    def __init__(self, *, capturing=False, broken=False, available=False):
        self.calls: list[str] = []

        def synchronize():
            self.calls.append("cuda")
            if broken:
                raise RuntimeError("device-side assert")

        self.version = SimpleNamespace(cuda="13.0", hip=None)
        self._C = SimpleNamespace()
        self.initialized = False
        self.cuda = SimpleNamespace(
            is_initialized=lambda: self.initialized,
            is_current_stream_capturing=lambda: capturing,
            synchronize=synchronize,
            device_count=lambda: 2,
            current_device=lambda: 0,
            memory_reserved=lambda number: 0,
            memory_stats_as_nested_dict=lambda n: {
                "allocated_bytes": {"all": {"current": 100 + n, "peak": 500}},
                "reserved_bytes": {"all": {"current": 1000, "peak": 1000}},
            },
        )
        self.backends = SimpleNamespace(
            mps=SimpleNamespace(is_available=lambda: available)
        )
        self.mps = SimpleNamespace(
            synchronize=lambda: self.calls.append("mps"),
            current_allocated_memory=lambda: 7,
            driver_allocated_memory=lambda: 9,
        )


def devices(session: Any, torch: Any) -> Devices:
    result = Devices(session)
    result.use_torch(torch)
    return result


def test_a_device_that_is_not_in_use_is_never_touched(session):
    torch = Torch()
    result = devices(session, torch)
    result.note("cpu", "module input")
    assert result.synchronize() == "cpu"
    assert torch.calls == []


def test_cuda_is_waited_for_once_the_script_uses_it(session):
    torch = Torch()
    result = devices(session, torch)
    torch.initialized = True
    assert result.synchronize() == "cuda"
    assert torch.calls == ["cuda"]


def test_a_graph_capture_is_never_broken_by_a_wait(session):
    torch = Torch(capturing=True)
    torch.initialized = True
    device = devices(session, torch)
    assert device.synchronize() == "capturing"
    assert torch.calls == []
    clock = Clock(session, device.synchronize)
    assert clock.begin("forward") is False
    clock.flush()
    assert session.events == []


def test_a_wait_that_fails_is_trouble_and_no_duration(session):
    torch = Torch(broken=True)
    torch.initialized = True
    assert devices(session, torch).synchronize() == "none"
    assert session.troubles == [("synchronize cuda", "device-side assert")]


def test_a_device_we_cannot_wait_for_is_said_so(session):
    result = devices(session, Torch())
    result.note("xpu", "module input")
    assert result.synchronize() == "none"


def test_the_question_for_a_device_is_asked_once_one_is_possible(session):
    asked: list[str] = []
    torch: Any = Torch()
    result = Devices(session)
    result.on_possible = lambda: asked.append("possible")
    torch.version.cuda = None
    result.use_torch(torch)
    result.note("cpu", "module input")
    assert asked == []
    result.note("mps", "module input")
    assert asked == ["possible"]
    built_with_cuda = Devices(session)
    built_with_cuda.on_possible = lambda: asked.append("cuda")
    with_cuda: Any = Torch()
    built_with_cuda.use_torch(with_cuda)
    assert asked == ["possible", "cuda"]


def test_devices_without_modules_are_found_at_the_end(session):
    torch = Torch(available=True)
    result = devices(session, torch)
    torch.initialized = True
    result.look_at_end()
    seen = {(event["device"], event["seen_on"]) for event in session.events}
    assert seen >= {("cuda", "torch.cuda")}
    assert [kind.type for kind in result.accelerators_in_use()] == ["cuda", "mps"]


def test_devices_that_hold_nothing_are_not_reported_at_the_end(session):
    devices(session, Torch()).look_at_end()
    assert session.events == []


def test_mps_on_another_system_is_a_stand_in(session, monkeypatch):
    for platform, name in (("linux", "mps-standin"), ("darwin", "mps")):
        monkeypatch.setattr("reprobundle.recorder.hardware.sys.platform", platform)
        torch = Torch()
        result = devices(session, torch)
        result.note_tensors(
            [torch.Tensor("mps"), [torch.Tensor("mps")]], "module input"
        )
        assert session.events[-1]["device"] == name
        assert result.synchronize() == "mps"
        assert torch.calls == ["mps"]
    assert len(session.events) == 2


def test_allocators_are_read_only_where_they_are_in_use(session: Any, monkeypatch):
    host = "reprobundle.recorder.host_memory.reading"
    monkeypatch.setattr(host, lambda: {"rss": 1})
    torch = Torch()
    device = devices(session, torch)
    memory = Memory(session, device, Shapes(session), lambda: 3)
    memory.use_torch(torch)
    memory.sample("step 3")
    memory.flush()
    event = session.events[-1]
    assert (event["bytes"], event["step"]) == ({"rss": 1}, 3)
    torch.initialized = True
    device.note("mps", "module input")
    memory.sample("step 3", held={"parameters": 4})
    memory.flush()
    assert session.events[-1]["bytes"] == {
        "rss": 1,
        "cuda_allocated": 201,
        "cuda_reserved": 2000,
        "mps_allocated": 7,
        "mps_driver": 9,
        "parameters": 4,
    }


def test_a_named_sample_waits_for_the_device_and_one_by_the_clock_never(session):
    torch = Torch()
    torch.initialized = True
    memory = Memory(session, devices(session, torch), Shapes(session), lambda: 0)
    memory.use_torch(torch)
    memory.sample("end", whole=True)
    assert session.events[-1]["synchronized"] == "cuda"
    assert session.events[-1]["bytes"]["cuda_peak_allocated"] == 1000
    memory.sample_by_clock()
    assert session.events[-1]["synchronized"] == ""
    assert torch.calls == ["cuda"]


@pytest.fixture
def memory(session):
    return Memory(session, devices(session, Torch()), Shapes(session), lambda: 7)


def points(session):
    return [event["point"] for event in session.events if event["event"] == "memory"]


def test_a_sample_between_steps_is_written_with_the_next_one_by_the_clock(
    memory, session
):
    memory.sample("step 1")
    memory.sample("step 2")
    assert points(session) == []
    memory.sample_by_clock()
    assert points(session) == ["step 1", "step 2", "clock"]
    times = [event["t_ns"] for event in session.events]
    assert times == sorted(times)
    memory.flush()
    assert len(session.events) == 3


def test_without_a_clock_the_next_sample_writes_an_old_one(
    memory, session, monkeypatch
):
    now_ns = [10]
    monkeypatch.setattr("reprobundle.recorder.memory.monotonic_ns", lambda: now_ns[0])
    memory.sample("step 1")
    now_ns[0] += 500_000_000
    memory.sample("step 2")
    assert points(session) == []
    now_ns[0] += 1
    memory.sample("step 3")
    assert points(session) == ["step 1", "step 2", "step 3"]
    memory.sample("step 4")
    memory.sample("end", whole=True)
    assert points(session)[-2:] == ["step 4", "end"]


def test_a_fork_does_not_write_the_samples_of_its_parent(memory, session):
    memory.sample("step 1")
    memory.continue_in_fork()
    memory.sample("end", whole=True)
    assert points(session) == ["end"]


@pytest.mark.linux
def test_the_memory_of_a_fork_is_its_own():
    block = bytearray(64 << 20)
    block[::4096] = b"x" * len(block[::4096])
    own = host_memory.process_counters(whole=False)["anonymous"]
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        del block
        seen = host_memory.process_counters(whole=False)["anonymous"]
        os.write(writing, str(seen).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert int(os.read(reading, 30)) < own - (32 << 20)


@pytest.mark.linux
def test_a_descriptor_that_a_script_closed_is_not_taken_for_ours(tmp_path):
    before = host_memory.process_counters(whole=False)
    descriptor = host_memory._statm._descriptor
    os.close(descriptor)
    other = os.open(tmp_path / "users", os.O_RDWR | os.O_CREAT)
    os.write(other, b"1 2 3 4 5 6 7")
    os.dup2(other, descriptor)
    after = host_memory.process_counters(whole=False)
    assert after["rss"] > before["rss"] // 2
    assert os.fstat(descriptor).st_size == 13
    os.close(other)
    os.close(descriptor)


@pytest.mark.linux
def test_a_process_knows_its_own_memory_and_that_of_the_system(session):
    few = host_memory.process_counters(whole=False)
    all_of_them = host_memory.process_counters(whole=True)
    assert 0 < few["anonymous"] < few["rss"]
    assert all_of_them["rss_peak"] >= few["rss"] // 2
    if Path("/proc/self/smaps_rollup").exists():
        assert 0 < all_of_them["pss"] <= all_of_them["rss_peak"]
    available = host_memory.system_counters()["system_available"]
    assert available > few["rss"] // 10
    if Path("/proc/pressure/memory").exists():
        assert 0 <= host_memory.pressure()["some_avg10_percent"] <= 100


class SystemLibrary:
    """As much of macOS's libSystem as is asked for, with these answers."""

    def __init__(self, answers):
        self._answers = answers

    def sysctlbyname(self, name, value, size, new, length):
        if name not in self._answers:
            return -1
        value._obj.value = self._answers[name]
        return 0


def test_the_pressure_on_a_mac_is_read_by_name_and_the_unknown_left_out(monkeypatch):
    level, free = b"kern.memorystatus_vm_pressure_level", b"kern.memorystatus_level"
    answers = {level: 2, free: 41}
    monkeypatch.setattr("ctypes.CDLL", lambda path: SystemLibrary(answers))
    monkeypatch.setattr("reprobundle.recorder.host_memory.sys.platform", "darwin")
    assert host_memory.pressure() == {"level": 2.0, "free_percent": 41.0}
    assert host_memory.system_counters() == {}
    del answers[free]
    assert host_memory.pressure() == {"level": 2.0}


def test_what_a_system_does_not_tell_is_left_out(tmp_path):
    assert host_memory._kibibytes(str(tmp_path / "absent"), {"a": "b"}) == {}
    (tmp_path / "odd").write_text("x: 1 kB\nMemAvailable:   12 kB\n")
    wanted = {"MemAvailable": "free", "SwapFree": "swap"}
    found = host_memory._kibibytes(str(tmp_path / "odd"), wanted)
    assert found == {"free": 12 * 1024}


def test_a_slow_beginning_is_warm_up_and_taken_from_the_median():
    total = Total("forward")
    for length in (9000, 500, 300, *(100 + n % 7 for n in range(40))):
        total.add(length)
    fields: dict[str, Any] = total.fields()
    assert (fields["warmup_count"], fields["warmup_ns"]) == (3, 9800)
    assert fields["median_ns"] == 103
    assert fields["p95_ns"] == 106
    assert (fields["count"], fields["longest_ns"]) == (43, 9000)


def test_an_even_but_slow_stretch_at_the_beginning_is_warm_up_too():
    assert first_steady([200] * 12 + [100] * 40) == 12


def test_quick_passes_between_slow_ones_are_no_steady_state_of_their_own():
    epochs = [100] * 30 + [20] * 10
    assert first_steady(epochs * 3) == 0
    assert first_steady([20] * 10 + epochs * 3) == 0


def test_no_steady_state_is_made_up():
    assert first_steady([900] + [100] * 18) is None
    getting_quicker = [2**n for n in range(40, 0, -1)]
    assert first_steady(getting_quicker) in (None, 20)
    every_other = [1000, 1] * 4 + [1] * 100
    assert first_steady(every_other) == 7
    steady_too_late = [1000] * 100 + [1000, 1, 1, 1] * 4 + [1] * 84
    assert first_steady(steady_too_late) is None


def test_few_entries_have_neither_a_warm_up_nor_a_percentile():
    total = Total("checkpoint")
    for length in (5, 1, 2):
        total.add(length)
    fields: dict[str, Any] = total.fields()
    assert (fields["warmup_count"], fields["p95_ns"]) == (None, None)
    assert fields["median_ns"] == 2


def test_the_warm_up_is_decided_before_durations_are_thrown_away():
    total = Total("forward")
    for length in [10**6] * 3 + [100] * 30_000:
        total.add(length)
    fields: dict[str, Any] = total.fields()
    assert (fields["warmup_count"], fields["warmup_ns"]) == (3, 3 * 10**6)
    assert fields["p95_ns"] == 100


def test_rounds_are_sampled_ever_more_rarely():
    rounds, sampled = Rounds(), []
    for step in range(1, 100_001):
        if step >= rounds.next:
            rounds.advance()
            sampled.append(step)
    assert sampled[:34] == [*range(1, 33), 34, 36]
    assert len(sampled) < 32 * 13
    assert sampled[-1] > 95_000


class Plain:
    def __init__(self, *shape):
        self.shape, self.dtype = shape, "torch.float32"


class Fake(Plain):
    """A subclass, as the compiler's stand-ins for tensors are."""


def counting(session: Any, *, tracing: object = None) -> Shapes:
    shapes = Shapes(session)
    state = SimpleNamespace(_get_tracing_state=lambda: tracing)
    torch: Any = SimpleNamespace(
        Tensor=Plain, nn=SimpleNamespace(Parameter=Plain), _C=state
    )
    shapes.use_torch(torch)
    return shapes


def test_input_shapes_are_counted_over_nested_arguments(session):
    shapes = counting(session)
    for _ in range(3):
        shapes.count((Plain(16, 20), {"mask": Plain(16)}), {})
    shapes.count(([Plain(8, 20)],), {"mask": Plain(8), "scale": 2})
    shapes.count(("text",), {})
    shapes.send()
    shapes.send()
    (event,) = session.events
    assert event["shapes"] == [
        {"shape": "float32[16, 20], float32[16]", "count": 3},
        {"shape": "float32[8, 20], float32[8]", "count": 1},
    ]
    assert (event["distinct"], event["other"]) == (2, 0)


def test_stand_ins_and_traced_tensors_are_not_looked_at(session):
    shapes = counting(session)
    shapes.count((Fake(1),), {})
    traced = counting(session, tracing=object())
    traced.count((Plain(1),), {})
    for counted in (shapes, traced):
        counted.send()
    assert session.events == []
    assert session.troubles == []


def test_only_so_many_shapes_are_kept(session):
    shapes = counting(session)
    for size in range(1200):
        shapes.count((Plain(size),), {})
    shapes.count((Plain(3),), {})
    shapes.send()
    (event,) = session.events
    assert len(event["shapes"]) == 50
    assert event["distinct"] == 1200
    assert sum(shape["count"] for shape in event["shapes"]) + event["other"] == 1201


class Moved:
    """A tensor that remembers where it was moved."""

    def __init__(self, kind):
        self.device = Device(kind)

    def to(self, *arguments, **named):
        return Moved(_kind(arguments[0] if arguments else named["device"]))

    def cpu(self):
        return Moved("cpu")

    def parameters(self):
        return iter([self])

    buffers = parameters

    load_state_dict = cuda = to


class Device:
    def __init__(self, kind):
        self.type = kind


def _kind(target):
    if isinstance(target, str) and target.startswith("broken"):
        raise LookupError("no such device")
    return target.partition(":")[0] if isinstance(target, str) else "cpu"


@pytest.fixture
def moving(session, clock):
    class Tensor(Moved):
        pass

    class Module(Moved):
        pass

    torch: Any = SimpleNamespace(
        compiler=SimpleNamespace(is_compiling=lambda: False),
        nn=SimpleNamespace(init=SimpleNamespace(), Module=Module),
        device=Device,
        Tensor=Tensor,
        _C=SimpleNamespace(_has_mps=False),
    )
    clock.waits = False
    models = Models(session, clock, Devices(session))
    models.install(torch)
    return models, torch


def test_a_move_between_device_types_is_a_transfer_and_nothing_else_is(
    moving, clock, session
):
    models, torch = moving
    module = torch.nn.Module("cpu")
    for target in ("cpu", "cuda:0", Device("mps")):
        module.to(target)
    module.to(device="cuda")
    tensor = torch.Tensor("cpu")
    tensor.to("cuda")
    assert totals(clock, session)["transfer"]["count"] == 3
    # Single tensors are watched only where there may be a device.
    models.watch_tensors()
    models.watch_tensors()
    tensor.to("cuda")
    tensor.to(torch.Tensor("cpu"))
    tensor.cpu()
    assert totals(clock, session)["transfer"]["count"] == 4


def test_a_transfer_that_fails_uses_no_device_and_fails_as_without_us(
    moving, clock, session
):
    _, torch = moving

    with pytest.raises(LookupError, match="no such device"):
        torch.nn.Module("cpu").to("broken:0")
    seen = [event for event in session.events if event["event"] == "device"]
    assert seen == []
    # One that has no device at all is its own affair.
    module = torch.nn.Module("cpu")
    module.parameters = None
    assert module.to("cuda").device.type == "cuda"
    assert session.troubles


def test_a_transfer_inside_a_step_belongs_to_the_step(moving, clock, session):
    _, torch = moving
    clock.begin("optimizer")
    torch.nn.Module("cpu").to("cuda")
    clock.end()
    assert set(totals(clock, session)) == {"optimizer"}
