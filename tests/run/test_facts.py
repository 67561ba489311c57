from __future__ import annotations

from pathlib import Path

from reprobundle.format.record import Fact
from reprobundle.run import facts
from reprobundle.run.events import (
    Child,
    End,
    Error,
    EventFile,
    FactEvent,
    Phases,
    PhaseTotals,
    Start,
    read_events,
)
from reprobundle.run.launch import Launched, Session
from reprobundle.run.paths_in_text import replace_all
from reprobundle.run.watch import SeenProcess


def start(pid=1, parent_pid=0, kind="main", argv=("train.py",)):
    return Start(
        t_ns=pid,
        pid=pid,
        parent_pid=parent_pid,
        kind=kind,
        argv=argv,
        executable="python",
        working_directory="/",
    )


def process(*events, **fields):
    first = start(**fields)
    return EventFile(start=first, events=(first, *events), damaged_lines=0)


def launched(*, pid=0, exit_status=0, watched=True, pythons=()):
    return Launched(
        session=Session(Path("/nowhere")),
        pid=pid,
        exit_status=exit_status,
        started="2026-01-01T00:00:00Z",
        start_ns=0,
        elapsed_ns=1,
        interrupted=False,
        watched=watched,
        pythons=pythons,
    )


def fact(name, value=None, unknown=""):
    return FactEvent(t_ns=1, name=name, value=value, unknown=unknown)


def test_a_fact_of_the_main_process_wins():
    files = (
        process(fact("torch.version", "2.13.0")),
        process(fact("torch.version", "2.9.0"), pid=2),
    )
    assert facts.environment(files)["torch.version"] == Fact(value="2.13.0")


def test_a_fact_that_the_main_process_could_not_read_is_taken_from_another():
    files = (
        process(fact("torch.version", unknown="torch was not imported")),
        process(fact("torch.version", "2.13.0"), pid=2),
    )
    assert facts.environment(files)["torch.version"].value == "2.13.0"


def test_a_python_that_left_no_events_is_recorded_as_not_entered():
    seen = (
        SeenProcess(pid=1, parent_pid=0, argv=("python", "train.py")),
        SeenProcess(pid=9, parent_pid=1, argv=("python", "-I", "x.py")),
    )
    found = facts.processes((process(),), launched(pythons=seen))
    assert [(p.pid, p.entered) for p in found] == [(1, True), (9, False)]


def test_where_nothing_is_watched_child_events_stand_in():
    child = Child(t_ns=1, argv=("python", "-I", "x.py"), executable="/usr/bin/python3")
    found = facts.processes((process(child),), launched(watched=False))
    assert [p.entered for p in found] == [True, False]


def test_where_nothing_is_watched_an_entered_child_is_not_missed():
    child = Child(t_ns=1, argv=("python", "x.py"), executable="/usr/bin/python3")
    files = (process(child), process(pid=2, parent_pid=1, kind="python"))
    found = facts.processes(files, launched(watched=False))
    assert all(p.entered for p in found)


def test_a_killed_process_did_not_end():
    files = (process(End(t_ns=2, exit_status=0, sources=())), process(pid=2))
    found = facts.processes(files, launched())
    assert [(p.ended, p.exit_status) for p in found] == [(True, 0), (False, None)]


def test_phases_are_those_of_the_process_that_did_most_steps():
    def totals(steps, name):
        phase = PhaseTotals(
            name=name,
            count=1,
            total_ns=1,
            median_ns=1,
            longest_ns=1,
            synchronized="cpu",
        )
        return Phases(t_ns=steps, phases=(phase,), steps=steps)

    files = (process(totals(0, "import")), process(totals(9, "forward"), pid=2))
    found, steps = facts.phases(files)
    assert [phase.name for phase in found] == ["forward"]
    assert steps == 9


def test_the_error_of_the_main_process_is_reported_and_paths_are_hidden():
    def error(message):
        return Error(
            t_ns=1,
            type="RuntimeError",
            message=message,
            where="/scratch/train.py:9",
            traceback=f'File "/scratch/train.py"\n{message}',
            steps=6,
        )

    files = (process(error("main")), process(error("worker"), pid=2))
    found = facts.error(files, [("/scratch", "{project}")])
    assert found is not None
    assert (found.message, found.where, found.steps) == (
        "main",
        "{project}/train.py:9",
        6,
    )
    assert "/scratch" not in found.traceback


def test_a_cut_line_is_skipped_and_counted(tmp_path):
    whole = (
        b'{"event":"start","t_ns":1,"pid":1,"parent_pid":0,"kind":"main","argv":[],'
        b'"executable":"p","working_directory":"/"}\n'
    )
    (tmp_path / "1-1.jsonl").write_bytes(whole + b'{"event":"seed","t_ns"')
    (found,) = read_events(tmp_path)
    assert found.damaged_lines == 1
    assert len(found.events) == 1


def test_a_process_whose_first_line_is_cut_does_not_count_as_entered(tmp_path):
    (tmp_path / "1-1.jsonl").write_bytes(b'{"event":"start"')
    assert read_events(tmp_path) == ()


def test_the_exit_status_of_the_command_itself_comes_from_the_launcher():
    files = (process(End(t_ns=2, exit_status=None, sources=()), pid=5),)
    (found,) = facts.processes(files, launched(pid=5, exit_status=3))
    assert found.exit_status == 3


def test_only_whole_path_components_are_replaced():
    pairs = [("/tmp/nb", "{project}"), ("/tmp", "{tmp}")]
    text = "/tmp/nb/a.py /tmp/nbenv/bin /tmp/tmpx.json '/tmp/nb'"
    assert replace_all(text, pairs) == (
        "{project}/a.py {tmp}/nbenv/bin {tmp}/tmpx.json '{project}'"
    )
