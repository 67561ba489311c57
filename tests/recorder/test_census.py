"""What the census of operators owes, and where it did not look."""

import threading
from typing import Any

import pytest

from reprobundle.recorder import census
from reprobundle.recorder.census import Census
from reprobundle.recorder.operators import OperatorCall, OperatorStream, _mode_class

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")


class Clock:
    steps = 0
    open_phase = ""


class Session:
    project = "/nowhere"

    def __init__(self):
        self.events = []

    def attempt(self, part, action, *arguments):
        return action(*arguments)

    def emit(self, event, **fields):
        self.events.append({"event": event, **fields})

    def emit_all(self, events):
        self.events += events

    def witnesses(self):
        return [one for one in self.events if one["event"] == "witness"]


class Bench:
    """Counts what a function gives the device; tensors on `meta` stand for its own."""

    def __init__(self):
        session: Any = Session()
        clock: Any = Clock()
        self.session, self.clock = session, clock
        self.census = Census(session)
        self.stream = OperatorStream(session, clock, self.see)
        self.stream.refused = self.refuse

    def see(self, call: OperatorCall) -> None:
        self.census.operator(call)

    def refuse(self, call: OperatorCall) -> None:
        self.census.refused(call)

    def run(self, action):
        from torch.utils._python_dispatch import TorchDispatchMode

        with _mode_class(TorchDispatchMode, self.stream)():
            return action()

    def rows(self, device):
        self.census.finish()
        return {
            (one["operator"], one["phase"]): one
            for one in self.session.events
            if one["event"] == "operator" and one["device"] == device
        }


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.setattr(census, "_HOST", ("cpu",))
    made = Bench()
    made.census.start(torch)
    return made


def on_device():
    return torch.ones(3, device="meta") + 1


def test_a_process_that_used_the_device_owes_a_report_until_its_end(bench):
    bench.run(on_device)
    (owed,) = bench.session.witnesses()
    assert (owed["name"], owed["looked"]) == ("census", False)
    assert owed["reason"] == "a process that used the device did not report its end"
    bench.census.finish()
    assert bench.session.witnesses()[-1] == {
        "event": "witness",
        "name": "census",
        "looked": True,
        "steps": [[1, 1]],
        "total_steps": 0,
        "reason": "",
    }


def test_a_process_that_kept_off_the_device_owes_nothing(bench):
    bench.run(lambda: torch.nn.Linear(2, 2)(torch.ones(1, 2)).sum().backward())
    bench.census.finish()
    assert bench.session.events == []


def test_a_fork_begins_anew_and_owes_its_own_report(bench):
    bench.run(on_device)
    assert bench.census.continue_in_fork()
    bench.session.events.clear()
    bench.census.finish()
    assert bench.session.events == []
    bench.run(on_device)
    assert [one["looked"] for one in bench.session.witnesses()] == [False]


def test_a_thread_that_was_there_before_torch_makes_the_census_a_part(monkeypatch):
    monkeypatch.setattr(census, "_HOST", ("cpu",))
    done = threading.Event()
    older = threading.Thread(target=done.wait, name="older")
    older.start()
    try:
        bench = Bench()
        bench.census.start(torch)
        bench.run(on_device)
        bench.census.finish()
    finally:
        done.set()
        older.join()
    reason = bench.session.witnesses()[-1]["reason"]
    assert reason == "threads that were there before torch are not seen: older"


def test_threads_that_serve_a_notebook_compute_nothing():
    done = threading.Event()

    def serve():
        done.wait()

    serve.__module__ = "ipykernel.iostream"
    service = threading.Thread(target=serve)
    service.start()
    try:
        assert census._is_service(service)
        assert not census._is_service(threading.main_thread())
    finally:
        done.set()
        service.join()


def test_a_refused_float64_is_a_refusal(bench):
    def refuse():
        raise TypeError(
            "Cannot convert a MPS Tensor to float64 dtype as the MPS framework "
            "doesn't support float64. Please use float32 instead."
        )

    one = torch.ones(2, device="meta")
    with pytest.raises(TypeError, match="float64") as caught:
        refuse()
    operator = torch.ops.aten._to_copy.default
    bench.stream.report_raised(caught.value, operator, (one,), {})
    bench.stream.report_raised(TypeError("another"), operator, (one,), {})
    (row,) = bench.rows("meta").values()
    assert (row["count"], row["refused"]) == (1, 1)


def test_a_models_work_on_the_cpu_is_counted_where_a_device_was_used(bench):
    model = torch.nn.Linear(3, 2)
    scale = torch.nn.Parameter(torch.ones(1))

    def work():
        on_device()
        bench.clock.open_phase = "forward"
        # An augmentation, and a single number, are no model.
        out = model(torch.ones(4, 3).flip(0)) * scale
        bench.clock.open_phase = "backward"
        out.sum().backward()

    bench.run(work)
    rows = bench.rows("cpu")
    assert {name for name, phase in rows if phase == "forward"} == {
        "aten.t.default",
        "aten.addmm.default",
    }
    assert ("aten.mm.default", "backward") in rows
