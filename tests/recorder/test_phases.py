"""Measuring phases: nesting, threads, devices, medians."""

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from reprobundle.recorder import phases
from reprobundle.recorder.devices import Devices
from reprobundle.recorder.memory import Memory
from reprobundle.recorder.phases import Clock, Total


class Heard:
    """A session that keeps what it is told."""

    def __init__(self):
        self.events = []
        self.troubles = []

    def emit(self, event, **fields):
        self.events.append({"event": event, **fields})

    def trouble(self, part, error):
        self.troubles.append((part, str(error)))

    def attempt(self, part, action, *arguments):
        try:
            return action(*arguments)
        except RuntimeError as error:
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
        self.initialized = False
        self.cuda = SimpleNamespace(
            is_initialized=lambda: self.initialized,
            is_current_stream_capturing=lambda: capturing,
            synchronize=synchronize,
            device_count=lambda: 2,
            memory_allocated=lambda n: 100 + n,
            memory_reserved=lambda n: 1000,
            max_memory_allocated=lambda n: 500,
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
    assert result.mps_in_use


def test_devices_that_hold_nothing_are_not_reported_at_the_end(session):
    devices(session, Torch()).look_at_end()
    assert session.events == []


def test_mps_on_another_system_is_a_stand_in(session, monkeypatch):
    for platform, name in (("linux", "mps-standin"), ("darwin", "mps")):
        monkeypatch.setattr("reprobundle.recorder.devices.sys.platform", platform)
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
    host = "reprobundle.recorder.memory.host_counters"
    monkeypatch.setattr(host, lambda *, peaks: {"rss": 1})
    torch = Torch()
    device = devices(session, torch)
    memory = Memory(session, device)
    memory.use_torch(torch)
    memory.sample("start")
    assert session.events[-1]["bytes"] == {"rss": 1}
    torch.initialized = True
    device.note("mps", "module input")
    memory.sample("end", peaks=True)
    assert session.events[-1]["bytes"] == {
        "rss": 1,
        "cuda_allocated": 201,
        "cuda_reserved": 2000,
        "cuda_peak_allocated": 1000,
        "mps_allocated": 7,
        "mps_driver": 9,
    }
