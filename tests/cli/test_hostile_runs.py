"""Scripts that leave odd things behind or end oddly: what is said, and what is kept.

docs/faults.md has the table of all cases.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from reprobundle.format.canonical import decode
from reprobundle.format.reader import open_bundle
from reprobundle.format.record import Record
from tests.cli.conftest import Result, reprobundle

ODD = """\
import os, signal, socket, subprocess, sys, threading

open("out.txt", "w").write("1.5")
os.mkfifo("pipe")
socket.socket(socket.AF_UNIX).bind("socket")
os.symlink("/etc/hostname", "away")
os.symlink("nowhere", "lost")
os.symlink("out.txt", "latest.txt")

def fail():
    raise ValueError("boom")

thread = threading.Thread(target=fail)
thread.start()
thread.join()
open(b"/tmp/reprobundle-test-\\xff", "w").write("x")
os.remove(b"/tmp/reprobundle-test-\\xff")
# The workers of a pool are ended by whoever started them.
for option in ([], ["--multiprocessing-fork"]):
    kill = "import os; os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", kill, *option])
"""


def pack(folder, script, *options, command=("python", "train.py")):
    """Pack a project of one script; return how it ended and the record, if any."""
    project = folder / "project"
    project.mkdir(exist_ok=True)
    (project / "train.py").write_text(script)
    target = folder / "x.rpb.zip"
    done = reprobundle(
        "pack",
        *("-o", target, "-q", "--passes", "measured", "--offline", *options),
        *("--", *command),
        cwd=project,
    )
    assert "Traceback" not in done.err
    if done.status:
        assert not target.exists()
        return done, None
    with open_bundle(target) as bundle:
        data = bundle.read("runs/1/record.json")
    return done, decode(data, Record, where="record.json", rule="R-7.2")


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    done, record = pack(tmp_path_factory.mktemp("odd"), ODD)
    assert record is not None, done.err
    return record


def remarks(record, name):
    return [one for one in record.remarks if one.id == name]


def test_pipes_sockets_and_links_are_no_outputs_and_are_told(odd):
    assert [output.name for output in odd.outputs] == ["out.txt"]
    told = {one.where: one.text for one in remarks(odd, "left-aside")}
    assert set(told) == {"pipe", "socket", "away", "lost"}
    assert "leads out of the project" in told["away"]
    assert {one.severity for one in remarks(odd, "left-aside")} == {"gap"}


def test_a_thread_that_died_behind_status_zero_is_a_warning(odd):
    (failed,) = remarks(odd, "thread-failed")
    assert failed.severity == "warning"
    assert "boom, and the command ended with status 0" in failed.text
    assert not [one for one in odd.remarks if "ThreadException" in one.text]


def test_a_killed_python_behind_status_zero_is_a_warning_but_for_workers(odd):
    killed = remarks(odd, "process-without-end")
    assert {"--multiprocessing-fork" in one.where: one.severity for one in killed} == {
        False: "warning",
        True: "gap",
    }


def test_a_file_whose_name_is_not_utf8_is_told_once(odd):
    (told,) = [one for one in remarks(odd, "recorder-trouble") if one.where == "files"]
    assert "not UTF-8" in told.text
    assert "udcff" in told.text


def test_without_an_output_what_was_left_elsewhere_is_named(tmp_path):
    script = f"open({str(tmp_path / 'elsewhere.txt')!r}, 'w').write('1')"
    done, _ = pack(tmp_path, script)
    assert done.status == 20
    assert "elsewhere.txt (outside the project)" in done.err


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("open(b'a\\xff.txt', 'w')", "'outputs/a\\udcff.txt' is not UTF-8"),
        ("import os; os.kill(os.getpid(), 9)", "the command was ended by SIGKILL"),
        (
            "import sys; print('=' * 9, file=sys.stderr); raise SystemExit(3)",
            "ended with status 3: =====",
        ),
    ],
)
def test_a_run_that_cannot_be_packed_is_one_line(tmp_path, script, words):
    done, record = pack(tmp_path, script)
    assert record is None
    assert words in done.err.splitlines()[-1]


def test_a_launcher_that_closes_with_a_ruler_is_told_by_the_first_error(tmp_path):
    script = (
        "import subprocess, sys\n"
        "subprocess.run([sys.executable, '-c', 'raise ValueError(\"rank one\")'])\n"
        "print('=' * 9, file=sys.stderr)\n"
        "sys.exit(1)\n"
    )
    done, _ = pack(tmp_path, script)
    assert "ended with status 1: ValueError: rank one; nothing" in done.err


def test_a_project_file_whose_name_is_not_utf8_is_named(tmp_path):
    (tmp_path / "project").mkdir()
    Path(os.fsdecode(os.fsencode(tmp_path / "project") + b"/b\xff.txt")).write_text("1")
    done, _ = pack(tmp_path, "")
    assert done.status == 20
    assert done.err.startswith("reprobundle: the name of 'b\\udcff.txt' is not UTF-8")


def test_links_to_folders_around_the_project_are_not_followed(tmp_path):
    project = tmp_path / "project"
    (project / "inside").mkdir(parents=True)
    for name in ("up", "self", "inside/up"):
        (project / name).symlink_to(".." if "up" in name else ".")
    (tmp_path / "neighbour.txt").write_text("not ours")
    for arguments in (("init", "-q"), ("add", "-A")):
        subprocess.run(["git", *arguments], cwd=project, check=True)
    _, record = pack(tmp_path, "open('out.txt', 'w').write('1')")
    assert record is not None
    with open_bundle(tmp_path / "x.rpb.zip") as bundle:
        assert [name for name in bundle.members if name.startswith("project/")] == [
            "project/train.py"
        ]


def test_a_linked_folder_is_named_and_taken_with_input(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/x").write_text("1")
    (tmp_path / "project").mkdir()
    (tmp_path / "project/d").symlink_to(tmp_path / "data")
    script = "open('out.txt', 'w').write(open('d/x').read())"
    done, _ = pack(tmp_path, script)
    assert "the linked folder d was not copied: add --input d" in done.err
    _, record = pack(tmp_path, script, "--input", "d")
    assert record is not None
    assert "project:d/x" in [read.path for read in record.reads]


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_request_to_end_ends_the_command_and_cleans_up(tmp_path, name):
    project, temporary = tmp_path / "project", tmp_path / "tmp"
    project.mkdir()
    temporary.mkdir()
    ready = tmp_path / "ready"
    os.mkfifo(ready)
    script = (
        "import os, time\n"
        f"open({str(ready)!r}, 'w').write(str(os.getpid()))\n"
        "time.sleep(600)\n"
    )
    (project / "train.py").write_text(script)
    done = _ended_by(getattr(signal, name), project, temporary, ready)
    assert (done.status, done.out) == (20, "")
    assert done.err.endswith("reprobundle: interrupted; no bundle was written\n")
    assert list(temporary.iterdir()) == []
    assert sorted(one.name for one in project.iterdir()) == ["train.py"]


def _ended_by(number, project, temporary, ready):
    """Return how a pack ends that gets a signal while its command runs."""
    options = (
        "-q",
        "--passes",
        "measured",
        "--offline",
        "-o",
        project.parent / "x.rpb.zip",
    )
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "reprobundle", "pack"),
            *map(str, options),
            *("--", "python", "train.py"),
        ],
        cwd=project,
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    # Open for writing too, so that a command that never comes to its line is no hang.
    pipe = os.open(ready, os.O_RDWR)
    try:
        if not select.select([pipe], [], [], 60)[0]:
            process.kill()
            pytest.fail(f"the command did not start: {process.communicate()}")
        command = int(os.read(pipe, 100))
    finally:
        os.close(pipe)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    with pytest.raises(ProcessLookupError):
        os.kill(command, 0)
    return Result(process.returncode, out, err)


DENYING = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (
            "import os; os.mkdir('d'); open('d/x', 'w'); os.chmod('d', 0)",
            "'d', which the command left, cannot be read: permission denied",
        ),
        (
            "import os; os.mkdir('d'); open('d/x', 'w'); os.chmod('d', 0o400)",
            "'x', which the command left, cannot be read: permission denied",
        ),
        (
            "import os; open('x', 'w'); os.chmod('x', 0)",
            "output 'x' cannot be read: permission denied",
        ),
    ],
)
def test_what_nobody_may_read_is_not_left_out_in_silence(tmp_path, script, words):
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text(f"open('out', 'w').write('1')\n{script}\n")
    done = _without_override(tmp_path)
    assert done.returncode == 20, done.stderr
    assert words in done.stderr


def test_a_read_that_was_denied_is_told_and_does_not_stop_the_pack(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("1")
    secret.chmod(0)
    (tmp_path / "project").mkdir()
    (tmp_path / "project/train.py").write_text(
        f"open('out', 'w').write('1')\ntry:\n    open({str(secret)!r})\n"
        "except PermissionError:\n    pass\n"
    )
    done = _without_override(tmp_path)
    assert done.returncode == 0, done.stderr
    with open_bundle(tmp_path / "x.rpb.zip") as bundle:
        data = bundle.read("runs/1/record.json")
    record = decode(data, Record, where="record.json", rule="R-7.2")
    assert "missing:secret" in [read.path for read in record.reads]
    assert [one.severity for one in remarks(record, "read-outside-project")] == [
        "warning"
    ]


def _without_override(folder):
    """Pack as somebody whom permissions bind; the superuser gives his rights up."""
    prefix = DENYING if os.geteuid() == 0 else []
    try:
        return subprocess.run(
            [
                *prefix,
                *(sys.executable, "-m", "reprobundle", "pack", "-q", "--offline"),
                *("--passes", "measured", "-o", str(folder / "x.rpb.zip")),
                *("--", "python", "train.py"),
            ],
            cwd=folder / "project",
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        pytest.skip("setpriv is missing, and this is the superuser")
