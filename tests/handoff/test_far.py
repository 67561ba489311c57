"""What is sent to the other machine, run here: the states of a run, files, wheels."""

from __future__ import annotations

import ast
import fcntl
import io
import json
import os
import signal
import subprocess
import sys
import threading
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from reprobundle.handoff.far import agent, files, job, machine, packages, standing
from reprobundle.handoff.findings import findings
from reprobundle.handoff.sent import agent_source

pytestmark = [
    pytest.mark.linux,
    # The agent ends at once after it started what keeps watch; here it does not.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
WAIT = "import sys, time; print('on', flush=True)\nwhile True: time.sleep(0.05)"


@pytest.fixture
def place(tmp_path):
    """A folder of a hand-off, with the agent in it."""
    folder = tmp_path / "h" / "x"
    folder.mkdir(parents=True)
    (folder / "agent.py").write_bytes(agent_source())
    yield SimpleNamespace(
        folder=folder, request={"root": str(tmp_path / "h"), "name": "x"}
    )
    standing.cancel({"root": str(tmp_path / "h"), "name": "x"})


def started(place, code, **more):
    request = {
        "argv": [sys.executable, "-c", code],
        "options": [],
        "python": "",
        "bundle": "0" * 64,
        "before": [],
        "remove": [],
    }
    return job.start({**place.request, **request, **more})


def ended(place):
    """Wait for the end by following the log, as a reader does."""
    sink = io.TextIOWrapper(io.BytesIO())
    before, sys.stdout = sys.stdout, sink
    try:
        standing.logs({**place.request, "offset": 0, "follow": True})
    finally:
        sys.stdout = before
    return standing.status(place.request)


def altered(place, name, **changed):
    path = place.folder / "job" / name
    path.write_text(json.dumps({**json.loads(path.read_text()), **changed}))


def names(status):
    return [one.name for one in findings(status)]


def test_an_old_python_can_read_it_and_it_needs_nothing_of_ours():
    source = agent_source().decode()
    tree = ast.parse(source, feature_version=(3, 6))
    top = {
        name.partition(".")[0]
        for node in ast.walk(tree)
        for name in (
            [one.name for one in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert top <= set(sys.stdlib_module_names) - {"__future__"}


def test_two_starts_make_one_run_and_its_end_is_told(place):
    answers = []
    threads = [
        threading.Thread(target=lambda: answers.append(started(place, "print('x')")))
        for _ in range(3)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sorted(one["started"] for one in answers) == [False, False, True]
    found = ended(place)
    assert found["state"] == "finished"
    assert found["log_tail"] == "x\n"
    assert names(found) == []


@pytest.mark.parametrize(
    ("code", "state", "name"),
    [
        ("raise SystemExit(20)", "failed", "no-verdict"),
        ("import os; os.kill(os.getpid(), 9)", "killed", "process-killed"),
    ],
)
def test_an_end_without_a_verdict_is_never_a_finish(place, code, state, name):
    started(place, code)
    found = ended(place)
    assert found["state"] == state
    assert names(found) == [name]


def test_a_command_that_is_not_there_says_so(place):
    started(place, "", argv=["/nowhere/python"])
    found = ended(place)
    assert found["state"] == "failed"
    assert "cannot be started" in findings(found)[0].text


def test_what_watches_killed_with_the_run_is_a_crash(place):
    started(place, WAIT)
    assert standing.standing(str(place.folder))["state"] == "running"
    for name in ("keeper.json", "job.json"):
        process = json.loads((place.folder / "job" / name).read_text())
        os.kill(process["pid"], signal.SIGKILL)
    found = ended(place)
    assert found["state"] == "crashed"
    assert names(found) == ["process-vanished"]


def test_another_boot_is_a_reboot_and_no_crash(place, monkeypatch):
    started(place, WAIT)
    standing.cancel(place.request)
    standing.settle(str(place.folder))
    for name in ("exit.json", "cancelled.json"):
        (place.folder / "job" / name).unlink()
    for name in ("keeper.json", "job.json"):
        altered(place, name, boot="an earlier one")
    found = standing.status(place.request)
    assert found["state"] == "rebooted"
    assert names(found) == ["host-rebooted"]


def test_after_a_broken_run_only_again_starts_another_and_says_so(place):
    started(place, "raise SystemExit(20)", notes=[])
    ended(place)
    altered(place, "request.json", environment={**machine.environment(""), "os": "old"})
    assert not started(place, "print(1)")["started"]
    ids = [one["id"] for one in started(place, "print(1)", again=True)["notes"]]
    assert ids == ["handoff-interrupted", "handoff-environment-changed"]
    found = ended(place)
    assert found["attempts"] == 1
    assert found["state"] == "finished"


def test_an_environment_that_changed_while_it_ran_is_a_finding(place):
    started(place, "print(1)")
    ended(place)
    altered(place, "request.json", environment={**machine.environment(""), "os": "old"})
    found = standing.status(place.request)
    assert names(found) == ["environment-changed"]
    assert "os was old, is" in findings(found)[0].text


def test_a_cancelled_run_is_gone_with_its_children(place):
    child = "import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', "
    code = f"{child}'import time; time.sleep(600)']).pid, flush=True)\n{WAIT}"
    started(place, code)
    assert standing.cancel(place.request) == {"cancelled": True}
    found = standing.status(place.request)
    assert found["state"] == "cancelled"
    assert names(found) == ["cancelled"]


def test_a_running_one_is_not_cleaned_away(place):
    started(place, WAIT)
    with pytest.raises(files.Refused, match="cancel it first"):
        agent.clean(place.request)
    standing.cancel(place.request)
    assert agent.clean(place.request)["exists"] is False
    assert not place.folder.exists()


def test_a_keeper_that_hangs_after_the_end_is_ended(place, monkeypatch):
    started(place, "raise SystemExit(20)")
    ended(place)
    standing.settle(str(place.folder))
    hanging = subprocess.Popen([sys.executable, "-c", WAIT], stdout=subprocess.DEVNULL)
    token = machine.start_token(hanging.pid)
    altered(place, "keeper.json", pid=hanging.pid, process_start=token)
    monkeypatch.setattr(standing, "SETTLE_SECONDS", 0.0)
    assert agent.clean(place.request)["exists"] is False
    assert hanging.wait() == -signal.SIGKILL


def test_a_plain_file_is_there_only_while_it_runs(place):
    make = [sys.executable, "-c", f"open({str(place.folder / 'plain')!r}, 'w')"]
    look = f"import os; print(os.path.exists({str(place.folder / 'plain')!r}))"
    started(place, look, before=[make], remove=["plain"])
    assert ended(place)["log_tail"] == "True\n"
    assert not (place.folder / "plain").exists()


def test_a_full_disk_is_a_finding_by_its_words_and_by_its_bytes(place):
    started(place, "raise SystemExit('OSError: No space left on device')")
    found = ended(place)
    assert names(found) == ["no-verdict", "disk-full"]
    started(place, "print(1)", again=True)
    ended(place)
    altered(place, "exit.json", least_free_bytes=1000)
    told = names(standing.status(place.request))
    assert told == ["disk-full", "handoff-interrupted"]


def test_a_part_that_is_not_the_beginning_is_never_gone_on_with(place):
    one = {"path": "a/b", "sha256": "f" * 64}
    part = files.part_of(str(place.folder / "a/b"), one["sha256"])
    (place.folder / "a").mkdir()
    Path(part).write_bytes(b"half")
    found = files.have({**place.request, "files": [one]})["files"]["a/b"]
    assert (found["state"], found["size"]) == ("part", 4)
    assert found["sha256"] == files.digest_of(part)
    assert files.finish(str(place.folder / "a/b"), one["sha256"]).startswith(
        "its digest"
    )
    assert not Path(part).exists()


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../../x"])
def test_no_name_leads_out_of_the_folder(place, name):
    with pytest.raises(files.Refused, match="outside"):
        files.inside(str(place.folder), name)


def test_a_wheel_cannot_write_beside_its_folder(place):
    wheel = place.folder / "bad.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("../../escaped.py", "")
    site = place.folder / "site"
    with pytest.raises(files.Refused, match="outside"):
        packages.unpack(str(wheel), str(site), str(place.folder / "venv"))


@pytest.fixture
def copier(place):
    """A process that holds the copying, writes, and comes to no end."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        held = (place.folder / "copy.lock").open("w")
        fcntl.flock(held, fcntl.LOCK_EX)
        held.write(f"{os.getpid()} {machine.start_token(os.getpid())}")
        held.flush()
        os.write(writer, b"x")
        signal.pause()
    os.read(reader, 1)
    return child


def test_a_copy_that_hangs_is_taken_over(place, copier):
    with files.copying(str(place.folder)):
        pass
    assert os.WTERMSIG(os.waitpid(copier, 0)[1]) == signal.SIGTERM


def test_what_is_there_is_told_once_nobody_writes_it(place, copier):
    assert files.have({**place.request, "files": []}) == {"files": {}}
    assert os.WTERMSIG(os.waitpid(copier, 0)[1]) == signal.SIGTERM
