"""What is told about random draws before a replay starts."""

import sys
from pathlib import Path

import msgspec
import pytest

from reprobundle.format.record import Fact, Randomness
from reprobundle.replay import draws
from reprobundle.replay.draws import compare_draws, expected_draws
from reprobundle.run import launch as launch_module
from reprobundle.run.events import Generators, read_events
from tests.verify.builder import Run

PYTHON = Path(sys.executable)


@pytest.fixture
def record(tmp_path):
    base, _ = Run().build(tmp_path)

    def of(**draws):
        names = {name.replace("__", "."): value for name, value in draws.items()}
        return msgspec.structs.replace(base, randomness=Randomness(draws=names))

    return of


def told(record, tmp_path, python=PYTHON):
    return list(compare_draws((record,), python, tmp_path / "draws"))


def recorded(tmp_path):
    """Return what this interpreter draws, from a run of its own."""
    empty = tmp_path / "own"
    empty.mkdir()
    session = launch_module.make_session(
        tmp_path / "session", empty, seed=None, device="as-is"
    )
    launch_module.launch(
        (str(PYTHON), "-c", "import random"),
        session=session,
        working_directory=empty,
        environment={},
    )
    (events,) = read_events(session.events)
    return {
        name: value
        for event in events.events
        if isinstance(event, Generators) and event.when == "draws"
        for name, value in event.fingerprints.items()
    }


def test_equal_draws_are_named(record, tmp_path):
    mine = recorded(tmp_path)["python.Random"]
    assert told(record(python__Random=mine), tmp_path) == [
        "random draws: equal to the reference for python.Random"
    ]


def test_other_draws_are_a_warning_that_says_what_it_means(record, tmp_path):
    (line,) = told(record(python__Random="0" * 16), tmp_path)
    assert line.startswith("random draws differ: python.Random: another Python")


def test_other_draws_of_torch_name_both_capabilities(record, tmp_path):
    fact = Fact(value="AVX2", source="x")
    other = record(torch__cpu="0" * 16)
    other = msgspec.structs.replace(other, environment={"torch.cpu_capability": fact})
    (line,) = told(other, tmp_path)
    assert line.startswith("random draws differ: torch.cpu: one seed gives randn other")
    assert "(reference AVX2, here " in line
    assert "here unknown" not in line


def test_a_module_that_is_not_there_is_not_compared(record, tmp_path, monkeypatch):
    monkeypatch.setitem(draws._MODULES, "numpy.default_rng", "no_such_module")
    (line,) = told(record(numpy__default_rng="0" * 16), tmp_path)
    assert line.endswith("not compared for numpy.default_rng: not loadable here")


def test_an_interpreter_that_cannot_start_is_no_comparison(record, tmp_path):
    absent = tmp_path / "python"
    (line,) = told(record(python__Random="0" * 16), tmp_path, absent)
    assert line.startswith("random draws: not compared, the command")


def test_a_reference_without_draws_needs_no_run(record, tmp_path):
    assert told(record(), tmp_path) == []
    assert not (tmp_path / "draws").exists()


def test_draws_on_an_accelerator_are_left_to_the_run_itself(record):
    cuda = {"torch__cuda:0": "1" * 16}
    assert expected_draws([record(**cuda)]) == {}
