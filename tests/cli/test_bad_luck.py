"""What goes wrong around a run: a killed recorder, a full disk."""

from __future__ import annotations

import errno
import os

from reprobundle.cli.group import run
from reprobundle.format.canonical import decode
from reprobundle.format.reader import open_bundle
from reprobundle.format.record import Record
from tests.cli.conftest import reprobundle

KILLED = """\
import os, signal, subprocess, sys
child = "import os, signal; open('half.txt', 'w').write('a'); " \\
        "os.kill(os.getpid(), signal.SIGKILL)"
subprocess.run([sys.executable, "-c", child])
open("out.txt", "w").write("done")
"""

FULL = """\
import resource
open("out.txt", "w").write("done")
# From here on every file that grows beyond what there is refuses to: a full disk.
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
try:
    open("large.txt", "w").write("x" * 100_000)
except OSError as error:
    seen = error.errno
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
print("the script saw it too:", seen)
"""


def packed(tmp_path, script):
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text(script)
    target = tmp_path / "x.rpb.zip"
    options = ("-q", "--passes", "measured", "--offline")
    command = ("--", "python", "train.py")
    done = reprobundle("pack", "-o", target, *options, *command, cwd=project)
    assert done.status == 0, done.err
    with open_bundle(target) as bundle:
        data = bundle.read("runs/1/record.json")
    return decode(data, Record, where="record.json", rule="R-7.2")


def test_after_kill_9_the_results_stay_and_the_record_says_what_is_missing(tmp_path):
    record = packed(tmp_path, KILLED)
    assert {output.name for output in record.outputs} == {"half.txt", "out.txt"}
    assert record.outcome.exit_status == 0
    (killed,) = [one for one in record.processes if not one.ended]
    assert killed.entered
    remarks = [one for one in record.remarks if one.id == "process-without-end"]
    assert [one.severity for one in remarks] == ["warning"]


def test_a_disk_that_is_full_for_the_recorder_does_not_change_the_run(tmp_path):
    record = packed(tmp_path, FULL)
    assert record.outcome.exit_status == 0
    assert {output.name for output in record.outputs} >= {"out.txt"}
    (main,) = [one for one in record.processes if one.kind == "main"]
    assert main.ended
    assert not [one for one in record.remarks if one.severity == "failure"]


def test_an_error_of_the_system_anywhere_is_one_line(monkeypatch, capsys):
    def full(*arguments, **options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/data/x")

    monkeypatch.setattr("reprobundle.cli.group.cli.main", full)
    assert run(["verify", "x"]) == 20
    assert capsys.readouterr().err == (
        "reprobundle: /data/x: no space left on device; check the free space and "
        "permissions there\n"
    )


def test_an_error_of_a_write_that_names_no_file_says_where_to_look(monkeypatch, capsys):
    def full(*arguments, **options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("reprobundle.cli.group.cli.main", full)
    assert run(["verify", "x"]) == 20
    assert capsys.readouterr().err == (
        "reprobundle: no space left on device; check the free space and permissions of "
        "the folder for temporary files (TMPDIR) and of the folder that is written to\n"
    )
