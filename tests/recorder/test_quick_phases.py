"""The quick way to measure a phase says what the general one says."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reprobundle.recorder import phases, training
from reprobundle.recorder.devices import Devices
from reprobundle.recorder.hardware.cuda import Cuda
from reprobundle.recorder.phases import Clock
from reprobundle.recorder.shapes import Shapes
from reprobundle.recorder.training import Training

NAMES = ("data", "forward", "backward", "optimizer")


class Heard:
    def __init__(self):
        self.events = []

    def emit(self, event, **fields):
        self.events.append({"event": event, **fields})

    def trouble(self, part, error):
        raise AssertionError(f"{part}: {error}")

    def attempt(self, part, action, *arguments):
        return action(*arguments)


class Measured:
    """A clock on a time of its own, driven in one of the two ways."""

    def __init__(self, *, quick):
        self.session = Heard()
        self.state = {"_initialized": False}
        session: Any = self.session
        self.clock = Clock(session, self._wait)
        self.clock.waits = False
        self.clock.starting = self.state
        self.pairs = {name: self._pair(name, quick=quick) for name in NAMES}
        self.opened: list[str] = []

    def _wait(self):
        return "cuda" if self.state["_initialized"] else "cpu"

    def _pair(self, name, *, quick):
        if quick:
            return self.clock.measure(name)
        return (lambda: self.clock.begin(name)), self.clock.end

    def begin(self, name):
        opens = self.pairs[name][0]()
        if opens:
            self.opened.append(name)
        return opens

    def end(self):
        if self.opened:
            self.pairs[self.opened.pop()][1]()
        return self.clock.open_phase

    def leave(self):
        """Forget the innermost span, as an optimizer step that raises does."""
        if self.opened and self.opened[-1] == "optimizer":
            self.opened.pop()

    def fork(self):
        # The functions that were running go on in the child and close their spans.
        self.clock.continue_in_fork()
        while self.opened:
            self.end()

    def start_device(self):
        self.state["_initialized"] = True

    def wait_always(self):
        self.clock.waits = True

    def totals(self):
        self.clock.flush()
        return self.session.events[-1:]


STEPS = st.one_of(
    st.tuples(st.just("begin"), st.sampled_from(NAMES)),
    st.tuples(
        st.sampled_from(["end", "end", "leave", "fork", "start_device", "wait_always"])
    ),
)


@pytest.fixture
def time(monkeypatch):
    now = [0]
    monkeypatch.setattr(phases, "monotonic_ns", lambda: now[0])
    return now


@settings(max_examples=60)
@given(st.lists(STEPS, max_size=60))
def test_both_ways_give_the_same_totals(steps):
    now = [0]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(phases, "monotonic_ns", lambda: now[0])
        quick, general = Measured(quick=True), Measured(quick=False)
        for number, (name, *arguments) in enumerate(steps):
            now[0] += number * number
            answers = [getattr(one, name)(*arguments) for one in (quick, general)]
            assert answers[0] == answers[1]
        assert quick.totals() == general.totals()


def test_a_usual_step_takes_the_quick_way(time, monkeypatch):
    one = Measured(quick=True)
    for name in NAMES:
        assert one.begin(name)
        one.end()
    monkeypatch.setattr(Clock, "_begin", None)
    monkeypatch.setattr(Clock, "end", None)
    for name in NAMES:
        assert one.begin(name)
        time[0] += 5
        one.end()
    (event,) = one.totals()
    assert {p["name"]: (p["count"], p["total_ns"]) for p in event["phases"]} == (
        dict.fromkeys(NAMES, (2, 5))
    )


def test_a_device_that_starts_inside_a_phase_is_waited_for_at_its_end(time):
    one = Measured(quick=True)
    for _ in range(2):
        one.begin("forward")
        one.end()
    one.begin("forward")
    one.start_device()
    one.end()
    one.begin("forward")
    one.end()
    (phase,) = one.totals()[0]["phases"]
    assert (phase["synchronized"], phase["synchronizations"]) == ("cuda", 3)


def test_cuda_is_known_to_have_started_by_the_name_that_torch_keeps():
    session: Any = Heard()
    cuda: Any = SimpleNamespace(_initialized=False)
    cuda.is_initialized = lambda: cuda._initialized
    version = SimpleNamespace(cuda="13.0", hip=None)
    torch: Any = SimpleNamespace(cuda=cuda, version=version, mps=None)
    heard: list[Any] = []
    devices = Devices(session)
    devices.on_possible = lambda: heard.append("wait always")
    devices.on_startable = heard.append
    devices.use_torch(torch)
    (starting,) = heard
    assert not starting["_initialized"]
    cuda._initialized = True
    assert starting["_initialized"]
    del cuda._initialized
    devices.use_torch(torch)
    assert heard[1:] == ["wait always"]


@pytest.mark.torch
def test_torch_keeps_that_name():
    torch: Any = pytest.importorskip("torch")
    starting = Cuda(torch).starting
    assert starting is not None
    assert starting["_initialized"] is torch.cuda.is_initialized()
    assert "_initialized" in torch.cuda.is_initialized.__code__.co_names


def test_equal_inputs_in_a_row_are_counted_like_any_others():
    session: Any = Heard()
    shapes = Shapes(session)
    kind = type("Plain", (), {"dtype": "float32"})
    torch: Any = SimpleNamespace(
        Tensor=kind,
        nn=SimpleNamespace(Parameter=kind),
        _C=SimpleNamespace(_get_tracing_state=lambda: None),
    )
    shapes.use_torch(torch)
    for extent in (2, 2, 3, 2, 2, 2, 3):
        tensor = kind()
        tensor.shape = (extent,)
        shapes.count((tensor,), {})
        shapes.count((), {})
    shapes.send()
    (event,) = session.events
    assert event["distinct"] == 2
    assert [(one["shape"], one["count"]) for one in event["shapes"]] == [
        ("float32[2]", 5),
        ("float32[3]", 2),
    ]


def test_a_fork_reports_what_came_after_it_alone(time):
    one = Measured(quick=True)
    for _ in range(3):
        one.begin("forward")
        one.end()
    one.fork()
    one.begin("forward")
    time[0] += 7
    one.end()
    (phase,) = one.totals()[0]["phases"]
    assert (phase["count"], phase["total_ns"]) == (1, 7)


def test_passes_inside_a_step_are_taken_from_its_time(time):
    one = Measured(quick=True)
    for name in NAMES:
        one.begin(name)
        one.end()
    for _ in range(3):
        one.begin("optimizer")
        time[0] += 1
        one.begin("forward")
        time[0] += 10
        one.end()
        time[0] += 2
        one.end()
    totals = {phase["name"]: phase["total_ns"] for phase in one.totals()[0]["phases"]}
    assert totals == {"data": 0, "forward": 30, "backward": 0, "optimizer": 9}


class Torchs:
    """As ``torch.nn.Module`` passes a call on."""

    _compiled_call_impl: Any = None

    def _wrapped_call_impl(self, *arguments, **named):
        if self._compiled_call_impl is not None:
            return self._compiled_call_impl(*arguments, **named)
        return self._call_impl(*arguments, **named)

    def _call_impl(self, *arguments, **named):
        return self.forward(*arguments, **named)

    def forward(self, *arguments, **named):
        return ("forward", arguments, named)


def watched(call):
    """Return a class of modules whose calls are watched, and the events' session."""
    kind: Any = type(
        "Module", (Torchs,), {"__call__": call, "parameters": lambda _: ()}
    )
    session: Any = Heard()
    clock = Clock(session, lambda: "cpu")
    clock.waits = False
    state = SimpleNamespace(_get_tracing_state=lambda: True)
    devices: Any = SimpleNamespace(note_tensors=lambda *_: None)
    memory: Any = SimpleNamespace(sample=lambda *_, **__: None)
    shapes: Any = SimpleNamespace(count=lambda *_: None)
    torch: Any = SimpleNamespace(
        compiler=SimpleNamespace(is_compiling=lambda: False),
        nn=SimpleNamespace(Module=kind),
        _C=state,
    )
    Training(session, clock, devices, memory, shapes)._watch_forward(torch)
    return kind, clock, session


def passing_on(self, *arguments, **named):
    return ("own", Torchs._wrapped_call_impl(self, *arguments, **named))


@pytest.mark.parametrize("call", [Torchs._wrapped_call_impl, passing_on])
def test_modules_inside_others_are_called_as_without_us(call):
    kind, clock, session = watched(call)
    plain: Any = type("Plain", (Torchs,), {"__call__": call})

    def called(base):
        inner, compiled = base(), base()
        compiled._compiled_call_impl = lambda *given, **named: ("fast", given, named)
        outer = type("Outer", (base,), {})()
        outer.forward = lambda x: [inner(x), inner(x, y=1), compiled(x, y=2)]
        return outer(0)

    assert called(kind) == called(plain)
    clock.flush()
    assert session.events[-1]["phases"][0]["count"] == 1


@pytest.mark.torch
def test_the_call_of_the_installed_torch_is_the_usual_one():
    torch: Any = pytest.importorskip("torch")
    call = torch.nn.Module.__call__
    assert training._only_passes_on(getattr(call, "__wrapped__", call))
    assert not training._only_passes_on(passing_on)
    assert not training._only_passes_on(len)
