"""A detached replay outlives its terminal, and only a written result is a success."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import reprobundle
from reprobundle.errors import (
    BadCallError,
    EnvironmentUnusableError,
    JobRunningError,
    UnknownJobError,
)
from reprobundle.replay import detach
from reprobundle.replay.jobs import (
    Job,
    JobDocument,
    JobStatus,
    cancel,
    find_job,
    jobs,
    report_progress,
    report_result,
    start_detached,
    status,
)

BUNDLE = "a" * 64
ENV = {**os.environ, "PYTHONPATH": str(Path(reprobundle.__file__).parents[1])}
DEADLINE_SECONDS = 30

# Waits until the test opens the other end, so no test depends on a duration.
REPLAY = """
import sys
from reprobundle.replay.jobs import report_progress, report_result
print("begun")
print("a warning", file=sys.stderr)
report_progress("measured pass", done=1, total=2)
order = open(sys.argv[1]).read()
if order == "finish":
    report_result(0, "REPRODUCED, bit-identical")
sys.exit(3)
"""
STUBBORN = """
import signal, subprocess, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"],
                         start_new_session=True)
open(sys.argv[1], "w").write(str(child.pid))
signal.pause()
"""
TERMINAL = """
import fcntl, pathlib, sys, termios
from reprobundle.replay.jobs import start_detached
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
start_detached([sys.executable, *sys.argv[2:]], name="digits", bundle="a" * 64,
               root=pathlib.Path(sys.argv[1]))
sys.stdin.read()
"""


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


@pytest.fixture
def replay(tmp_path):
    """Arguments of a command that acts as a replay, and the orders it waits for."""
    script = tmp_path / "replay.py"
    script.write_text(REPLAY)
    orders = tmp_path / "orders"
    os.mkfifo(orders)
    return [str(script), str(orders)], orders


@pytest.fixture
def running(tmp_path, replay):
    """A running job and the place for its orders; it is ended whatever happens."""
    arguments, orders = replay
    job = start_detached(
        [sys.executable, *arguments],
        name="digits",
        bundle=BUNDLE,
        root=tmp_path / "jobs",
        env=ENV,
    )
    description = (job.folder / "job.json").read_bytes()
    yield job, orders
    (job.folder / "job.json").write_bytes(description)
    cancel(job, grace_seconds=0)


def document_of(job: Job) -> JobDocument:
    document = status(job).document
    assert document is not None
    return document


def end(job: Job) -> JobStatus:
    wait_until(lambda: status(job).state != "running")
    return status(job)


def rewrite(job: Job, **changes: object) -> None:
    path = job.folder / "job.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_a_job_runs_in_a_session_of_its_own_with_init_as_parent(running):
    job, _ = running
    document = document_of(job)
    assert os.getsid(document.pid) != os.getsid(0)
    assert document.pid not in detach.descendants(os.getpid())
    assert os.getsid(document.pid) != document.pid, (
        "a leader could get a terminal again"
    )


def test_a_job_tells_its_step_while_it_runs(running):
    job, _ = running
    wait_until(lambda: status(job).progress is not None)
    assert status(job).state == "running"
    assert status(job).describe() == "digits-1: running, measured pass 1/2"


def test_a_finished_job_tells_its_verdict_and_keeps_all_output(running):
    job, orders = running
    orders.write_text("finish")
    found = end(job)
    assert found.state == "finished"
    assert found.describe() == (
        "digits-1: finished, exit status 0, REPRODUCED, bit-identical"
    )
    assert sorted(job.log.read_text().splitlines()) == ["a warning", "begun"]


def test_a_job_that_ends_without_a_result_has_crashed(running):
    job, orders = running
    orders.write_text("forget")
    assert end(job).state == "crashed"


def test_a_killed_job_has_crashed(running):
    job, _ = running
    os.kill(document_of(job).pid, signal.SIGKILL)
    found = end(job)
    assert found.state == "crashed"
    assert f"see {str(job.log)!r}" in found.describe()


def test_a_hang_up_does_not_end_a_job(running):
    job, orders = running
    wait_until(lambda: status(job).progress is not None)
    os.kill(document_of(job).pid, signal.SIGHUP)
    orders.write_text("finish")
    assert end(job).state == "finished"


def test_a_job_survives_the_terminal_it_was_started_from(tmp_path, replay):
    arguments, orders = replay
    main, terminal = os.openpty()
    starter = subprocess.Popen(
        [sys.executable, "-c", TERMINAL, str(tmp_path / "jobs"), *arguments],
        stdin=terminal,
        start_new_session=True,
        env=ENV,
    )
    os.close(terminal)
    wait_until(lambda: jobs(tmp_path / "jobs"))
    os.close(main)
    assert starter.wait(DEADLINE_SECONDS) == -signal.SIGHUP
    (found,) = jobs(tmp_path / "jobs")
    assert found.state == "running"
    orders.write_text("finish")
    assert end(found.job).state == "finished"


def test_another_process_with_the_same_id_is_not_the_job(running):
    job, _ = running
    pid = document_of(job).pid
    rewrite(job, pid=os.getpid())
    assert detach.start_token(os.getpid()) != ""
    assert status(job).state == "crashed"
    rewrite(job, pid=pid)
    assert status(job).state == "running"


@pytest.fixture
def bystander():
    """A process that began, measurably, before any job of the test."""
    process = subprocess.Popen(
        [sys.executable, "-c", "print('up', flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    yield process
    process.kill()
    process.communicate()


def test_cancel_leaves_a_process_alone_that_only_has_the_jobs_id(bystander, running):
    job, _ = running
    rewrite(job, pid=bystander.pid)
    assert cancel(job, grace_seconds=0).state == "crashed"
    bystander.communicate(b"\n")
    assert bystander.returncode == 0


def test_a_restart_of_the_machine_is_told_from_a_crash(running):
    job, _ = running
    rewrite(job, boot="00000000-0000-0000-0000-000000000000")
    assert status(job).state == "rebooted"
    assert "start it again" in status(job).describe()


def test_a_job_of_another_machine_is_not_judged_here(running):
    job, _ = running
    rewrite(job, host="elsewhere")
    assert status(job).state == "other-host"
    assert "it was started on elsewhere" in status(job).describe()


def test_a_result_counts_even_after_a_restart(running):
    job, orders = running
    orders.write_text("finish")
    end(job)
    rewrite(job, boot="00000000-0000-0000-0000-000000000000")
    assert status(job).state == "finished"


def test_a_second_job_of_a_running_bundle_is_refused_by_name(running, tmp_path):
    job, _ = running
    with pytest.raises(JobRunningError) as caught:
        start_detached(["true"], name="other", bundle=BUNDLE, root=tmp_path / "jobs")
    assert caught.value.job == job.name
    assert str(caught.value) == (
        "job 'digits-1' is replaying this bundle already; wait for it, or cancel it"
    )
    assert len(jobs(tmp_path / "jobs")) == 1


def test_after_the_end_the_same_bundle_may_start_again(running, tmp_path):
    job, orders = running
    orders.write_text("finish")
    end(job)
    again = start_detached(
        ["true"], name="digits", bundle=BUNDLE, root=tmp_path / "jobs"
    )
    assert again.name == "digits-2"
    end(again)


def test_cancel_interrupts_a_job(running):
    job, _ = running
    wait_until(lambda: status(job).progress is not None)
    assert cancel(job).state == "cancelled"
    assert "KeyboardInterrupt" in job.log.read_text()


def test_cancel_kills_a_job_that_goes_on_with_all_its_processes(tmp_path):
    told = tmp_path / "child"
    job = start_detached(
        [sys.executable, "-c", STUBBORN, str(told)],
        name="digits",
        bundle=BUNDLE,
        root=tmp_path / "jobs",
    )
    wait_until(lambda: told.exists() and told.read_text())
    child = int(told.read_text())
    assert child in detach.descendants(document_of(job).pid)
    assert cancel(job, grace_seconds=0.2).state == "cancelled"
    wait_until(lambda: detach.start_token(child) == "")


def test_cancel_of_a_finished_job_changes_nothing(running):
    job, orders = running
    orders.write_text("finish")
    end(job)
    assert cancel(job).state == "finished"
    assert not (job.folder / "cancelled.json").exists()


def test_a_command_that_does_not_exist_leaves_no_job(tmp_path):
    with pytest.raises(BadCallError) as caught:
        start_detached(["/no/such"], name="x", bundle=BUNDLE, root=tmp_path / "jobs")
    assert str(caught.value) == (
        "the command '/no/such' cannot be started: No such file or directory"
    )
    assert jobs(tmp_path / "jobs") == ()
    assert [path.name for path in (tmp_path / "jobs").iterdir()] == [".lock"]


def test_a_missing_working_directory_is_told_at_once(tmp_path):
    with pytest.raises(BadCallError, match="No such file or directory"):
        start_detached(
            ["true"],
            name="x",
            bundle=BUNDLE,
            root=tmp_path / "jobs",
            working_directory=tmp_path / "gone",
        )


def test_an_odd_name_becomes_a_plain_folder(tmp_path):
    job = start_detached(
        ["true"], name="../my run\n", bundle=BUNDLE, root=tmp_path / "jobs"
    )
    assert job.name == "my-run-1"
    assert job.folder.parent == tmp_path / "jobs"
    end(job)


def test_a_job_is_found_by_its_name_only(running, tmp_path):
    job, _ = running
    assert find_job("digits-1", tmp_path / "jobs") == job
    for name in ("digits-2", "../jobs/digits-1", ""):
        with pytest.raises(UnknownJobError):
            find_job(name, tmp_path / "jobs")


def test_a_damaged_description_is_said_so(tmp_path):
    folder = tmp_path / "jobs" / "x-1"
    folder.mkdir(parents=True)
    (folder / "job.json").write_text('{"name": "x')
    assert status(Job(folder)).state == "damaged"
    assert [one.state for one in jobs(tmp_path / "jobs")] == ["damaged"]


def test_a_result_that_was_cut_short_is_none(running):
    job, orders = running
    orders.write_text("forget")
    end(job)
    (job.folder / "result.json").write_text('{"exit_status": 0, "verd')
    assert status(job).state == "crashed"


def test_a_child_of_the_job_cannot_speak_for_it(running, monkeypatch):
    job, _ = running
    wait_until(lambda: status(job).progress is not None)
    monkeypatch.setenv("REPROBUNDLE_JOB", str(job.folder))
    report_result(0, "REPRODUCED, bit-identical")
    report_progress("something else")
    assert not (job.folder / "result.json").exists()
    progress = status(job).progress
    assert progress is not None
    assert progress.step == "measured pass"


def test_outside_a_job_nothing_is_reported(monkeypatch, tmp_path):
    monkeypatch.delenv("REPROBUNDLE_JOB", raising=False)
    monkeypatch.chdir(tmp_path)
    report_progress("a step")
    report_result(0, "REPRODUCED, bit-identical")
    assert list(tmp_path.iterdir()) == []


def test_a_result_that_cannot_be_written_is_an_error(tmp_path, monkeypatch):
    folder = tmp_path / "x-1"
    (folder / "result.json" / "in the way").mkdir(parents=True)
    document = {
        "name": "x-1",
        "bundle": BUNDLE,
        "argv": [],
        "working_directory": "/",
        "started": "2026-01-01T00:00:00Z",
        "host": "h",
        "pid": os.getpid(),
    }
    (folder / "job.json").write_text(json.dumps(document))
    monkeypatch.setenv("REPROBUNDLE_JOB", str(folder))
    with pytest.raises(EnvironmentUnusableError, match="result of job 'x-1' cannot be"):
        report_result(0, "REPRODUCED, bit-identical")


def test_processes_are_told_apart_through_ps_too(monkeypatch, tmp_path):
    parent = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    monkeypatch.setattr(detach, "PROC", tmp_path)
    token = detach.start_token(parent.pid)
    assert len(token.split()) == 5, "day, month, date, time, year"
    assert parent.pid in detach.descendants(os.getpid())
    parent.kill()
    wait_until(lambda: detach.start_token(parent.pid) == "")
    parent.communicate()
    assert detach.start_token(parent.pid) == ""
