"""The profile that sees CPU fallback: its windows, and that it harms no run."""

from typing import Any

import pytest

from reprobundle.recorder import profiler_witness
from reprobundle.recorder.operators import OperatorCall

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")
record_function = torch.autograd.profiler.record_function
CALL: Any = OperatorCall(None, (), {}, None, 0, "")


class Session:
    def __init__(self):
        self.events = []

    def emit(self, event, **fields):
        self.events.append((event, fields))

    def attempt(self, part, action, *arguments):
        return action(*arguments)


@pytest.fixture
def make(monkeypatch):
    """Return a witness on this torch, as if it had been built for MPS."""
    profiles = torch.autograd.profiler.profile
    monkeypatch.setattr(torch.backends.mps, "is_built", lambda: True)
    for name in ("__enter__", "_prepare_trace"):
        monkeypatch.setattr(profiles, name, getattr(profiles, name))

    def started():
        session: Any = Session()
        witness = profiler_witness.ProfilerWitness(session)
        witness.start(torch)
        return witness

    return started


def fall_back(name):
    """Leave what a fallback leaves in a profile."""
    with record_function(name):
        torch._to_cpu([torch.ones(1)])


def told(witness):
    witness.finish()
    events = witness._session.events
    counts = {f["operator"]: f["count"] for kind, f in events if kind == "fallback"}
    (report,) = [fields for kind, fields in events if kind == "witness"]
    return counts, report


def test_windows_are_the_first_steps_and_powers_of_two(make):
    witness = make()
    for number in range(1, 11):
        # A step ends inside a scope that torch opens around it: the profile that began
        # it must still be there when it ends.
        with record_function("Optimizer.step"):
            profile = witness._profiler
            witness.step(number)
        assert witness._profiler is profile is not None
        fall_back(f"after {number}")
    counts, report = told(witness)
    assert report["steps"] == [[1, 3], [4, 4], [8, 8]]
    assert (report["total_steps"], report["looked"], report["reason"]) == (10, True, "")
    # What comes after step 7 belongs to step 8.
    assert counts == dict.fromkeys(("after 1", "after 2", "after 3", "after 7"), 1)


def test_a_run_without_steps_is_seen_whole(make):
    witness = make()
    fall_back("only")
    assert told(witness) == (
        {"only": 1},
        {
            "name": "profiler",
            "looked": True,
            "steps": [[1, 1]],
            "total_steps": 0,
            "reason": "",
        },
    )


def test_a_window_that_was_cut_counts_no_step_it_saw_in_part(make, monkeypatch):
    monkeypatch.setattr(profiler_witness, "_MOST_IN_WINDOW", 2)
    witness = make()
    for _ in range(4):
        witness.operator(CALL)
    fall_back("unseen")
    counts, report = told(witness)
    assert counts == {}
    assert report["steps"] == [[0, 0]]
    assert report["looked"]
    assert report["reason"] == "a window ends after 2 operators"


def test_the_next_window_opens_after_one_that_was_cut(make, monkeypatch):
    monkeypatch.setattr(profiler_witness, "_MOST_IN_WINDOW", 2)
    witness = make()
    for number in range(1, 4):
        for _ in range(2):
            witness.operator(CALL)
        witness.step(number)
    fall_back("in step 4")
    witness.step(4)
    counts, report = told(witness)
    assert counts == {"in step 4": 1}
    assert report["steps"] == [[1, 1], [4, 4]]


def test_a_script_that_profiles_itself_gets_its_profile(make):
    witness = make()
    fall_back("before")
    outer = record_function("outer")
    outer.__enter__()
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU]
    ) as own:
        torch.ones(3).sin()
        # Its event went with our profile, so nothing may be written to it now.
        outer.__exit__(None, None, None)
    assert "aten::sin" in {event.name for event in own.events()}
    counts, report = told(witness)
    assert counts == {"before": 1}
    assert report["reason"] == "the script uses the profiler itself"
    assert report["steps"] == [[0, 0]]
