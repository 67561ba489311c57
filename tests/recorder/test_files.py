"""Which opened files are reported."""

import pytest

from reprobundle.run.events import End, Network, Open

READS_AND_WRITES = """
import os, pathlib, shutil, sqlite3

open('config.json').read()
open('config.json').read()
pathlib.Path('data/a.csv').read_text()
os.close(os.open('data/b.csv', os.O_RDONLY))
open('out.txt', 'w').write('x')
open('log.txt', 'a').write('x')
os.replace('out.txt', 'renamed.txt')
shutil.copy('data/a.csv', 'copied.csv')
sqlite3.connect('base.db').close()
os.chdir('data')
open('c.csv').read()
os.listdir('.')
try:
    open('absent.csv')
except FileNotFoundError:
    pass
open('/dev/null').close()
os.link('c.csv', '../linked.csv')
open(b'../bytes.txt', 'wb').close()
"""

PROJECT = {
    "run.py": READS_AND_WRITES,
    "config.json": "{}",
    "log.txt": "before",
    "data/a.csv": "1",
    "data/b.csv": "2",
    "data/c.csv": "3",
}


@pytest.fixture(scope="module")
def run(launch):
    return launch(["python", "run.py"], PROJECT)


def test_reads_are_reported_however_they_are_made(run):
    assert (run.status, run.stderr) == (0, "")
    inputs = {"run.py", "config.json", "data/a.csv", "data/b.csv", "data/c.csv"}
    # Appending keeps what was there: the old content is an input.
    assert run.opened("read") == inputs | {"log.txt"}
    assert run.troubles() == []


def test_writes_are_reported_however_they_are_made(run):
    assert run.opened("write") == {
        "out.txt",
        "log.txt",
        "renamed.txt",
        "copied.csv",
        "base.db",
        "linked.csv",
        "bytes.txt",
    }


def test_each_file_and_mode_is_reported_once(run):
    pairs = [(event.path, event.mode) for event in run.of(Open)]
    assert len(pairs) == len(set(pairs))


@pytest.mark.linux
def test_packages_and_pseudo_files_are_left_out(launch):
    run = launch(["python", "-c", "import click; open('/proc/self/stat').close()"])
    assert run.status == 0
    assert [event.path for event in run.of(Open)] == []


def test_reads_outside_the_project_are_reported(launch, tmp_path):
    outside = tmp_path / "weights.bin"
    outside.write_bytes(b"w")
    run = launch(["python", "-c", f"open({str(outside)!r}, 'rb').read()"])
    assert (str(outside), "read") in {(e.path, e.mode) for e in run.of(Open)}


def test_an_environment_inside_the_project_is_no_part_of_it(launch):
    project = launch.project({"lib/site-packages/p.py": "", "q.py": ""})
    code = "import sys; sys.path.insert(0, 'lib/site-packages'); import p, q"
    run = launch(["python", "-c", code], project=project)
    assert run.status == 0
    assert {name for name in run.opened("read") if name.endswith(".py")} == {"q.py"}
    (end,) = run.of(End)
    assert end.sources == (str(project / "q.py"),)


def test_a_name_that_is_no_text_is_reported_readably(launch):
    code = "open(b'caf\\xe9.txt', 'w').close()"
    run = launch(["python", "-c", code])
    assert run.status == 0
    assert run.opened("write") == {"caf?.txt"}
    assert run.files[0].damaged_lines == 0


def test_a_file_that_appears_later_is_reported_then(launch):
    code = (
        "import os\n"
        "try: open('late.txt')\n"
        "except OSError: pass\n"
        "os.system('echo x > late.txt')\n"
        "open('late.txt').read()\n"
    )
    run = launch(["python", "-c", code])
    assert run.opened("read") == {"late.txt"}


def test_forks_do_not_repeat_what_their_siblings_reported(launch):
    script = (
        "import os\n"
        "for epoch in range(3):\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        open('image.png').close()\n"
        "        os._exit(0)\n"
        "    os.waitpid(pid, 0)\n"
    )
    run = launch(["python", "run.py"], {"run.py": script, "image.png": ""})
    assert len(run.starts) == 4
    reads = [event.path for event in run.of(Open) if event.path.endswith("image.png")]
    assert reads == [str(run.project / "image.png")]


def test_network_targets_are_reported_once(launch):
    code = (
        "import socket\n"
        "for _ in range(2):\n"
        "    s = socket.socket()\n"
        "    try: s.connect(('127.0.0.1', 1))\n"
        "    except OSError: pass\n"
        "socket.socketpair()\n"
    )
    run = launch(["python", "-c", code])
    assert [event.target for event in run.of(Network)] == ["127.0.0.1:1"]


def test_the_users_error_is_not_touched_by_the_audit_hook(launch):
    run = launch(["python", "-c", "open('a\\0b')"], recorded=True)
    assert "embedded null" in run.stderr
    assert run.status == 1
