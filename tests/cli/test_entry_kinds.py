"""Commands of every kind, and what the record says about their processes."""

from __future__ import annotations

import sys

import pytest

from reprobundle.format.canonical import decode
from reprobundle.format.reader import open_bundle
from reprobundle.format.record import Record
from tests.cli.conftest import reprobundle

WRITE = "import pathlib; pathlib.Path('out.txt').write_text('done')"


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    (folder / "package").mkdir(parents=True)
    (folder / "package/__init__.py").write_text("")
    (folder / "package/run.py").write_text(f"from package import part\n{WRITE}\n")
    (folder / "package/part.py").write_text("import random\nrandom.seed(4)\n")
    (folder / "a.py").write_text(f"{WRITE}\nprint(42)\n")
    (folder / "b.py").write_text(
        "import sys, pathlib\npathlib.Path('b.txt').write_text(sys.stdin.read())\n"
    )
    (folder / "fail.py").write_text("import sys\nprint(1)\nsys.exit(3)\n")
    return folder


def record_of(project, *command, options=(), status=0):
    target = project.parent / "x.rpb.zip"
    done = reprobundle(
        "pack",
        "-o",
        target,
        "-q",
        "--passes",
        "measured",
        *options,
        "--",
        *command,
        cwd=project,
    )
    assert done.status == status, done.err
    with open_bundle(target) as bundle:
        data = bundle.read("runs/1/record.json")
    return decode(data, Record, where="record", rule="test")


def remarks(record):
    return {remark.id for remark in record.remarks}


def test_a_module_is_entered_and_its_sources_are_known(project):
    record = record_of(project, "python", "-m", "package.run")
    assert {"package/part.py", "package/run.py"} <= set(record.sources)
    assert [(c.function, c.value) for c in record.randomness.calls] == [
        ("random.seed", "4")
    ]


def test_both_pythons_of_a_shell_pipeline_are_entered(project):
    record = record_of(project, "bash", "-c", "python a.py | python b.py")
    assert [p.entered for p in record.processes] == [True, True]
    assert {output.name for output in record.outputs} == {"out.txt", "b.txt"}


def test_a_python_that_failed_inside_a_pipeline_is_not_masked_by_status_zero(project):
    record = record_of(project, "bash", "-c", "python fail.py | python b.py")
    assert record.outcome.exit_status == 0
    assert "masked-failure" in remarks(record)


def test_a_bare_system_exit_inside_a_pipeline_is_not_masked_either(project):
    (project / "fail.py").write_text("print(1)\nraise SystemExit(3)\n")
    record = record_of(project, "bash", "-c", "python fail.py | python b.py")
    assert "masked-failure" in remarks(record)
    assert {process.exit_status for process in record.processes} == {0, 3}


def test_the_exit_status_of_the_command_itself_is_known(project):
    record = record_of(project, "python", "a.py")
    assert record.processes[0].exit_status == 0
    assert "exit-status-unknown" not in remarks(record)


@pytest.mark.parametrize(
    "how", ["python -I -S", "env -i $(command -v python)", "PYTHONPATH= python -I"]
)
@pytest.mark.skipif(
    sys.platform != "linux", reason="the process tree is read from /proc"
)
def test_a_python_that_shut_the_recorder_out_is_a_finding(project, how):
    # Long enough for the watch even on a busy machine; tests/run/test_watch.py is about
    # how short a process may be.
    with (project / "b.py").open("a") as script:
        script.write("\nsum(range(10_000_000))\n")
    record = record_of(project, "bash", "-c", f"python a.py; {how} b.py < a.py")
    assert [p.entered for p in record.processes].count(False) == 1
    assert "python-not-entered" in remarks(record)


def test_a_command_without_any_entered_python_is_a_failure(project):
    record = record_of(project, "bash", "-c", "echo done > out.txt")
    assert "nothing-entered" in remarks(record)


def test_a_script_read_from_standard_input_is_entered(project):
    record = record_of(project, "bash", "-c", "cat a.py | python -")
    assert record.processes[0].entered


def test_a_console_script_is_entered(project):
    record = record_of(
        project, "bash", "-c", "python a.py && pip --version > version.txt"
    )
    assert [p.entered for p in record.processes] == [True, True]


def test_a_script_may_leave_by_os_exit(project):
    (project / "a.py").write_text(f"{WRITE}\nimport os\nos._exit(0)\n")
    record = record_of(project, "python", "a.py")
    assert record.outcome.exit_status == 0
    assert record.processes[0].entered


def test_a_script_may_change_directory_and_clear_its_environment(project):
    (project / "a.py").write_text(
        f"{WRITE}\nimport os, subprocess, sys\nos.chdir('/')\nos.environ.clear()\n"
        "subprocess.run([sys.executable, '-c', 'pass'], check=True)\n"
    )
    record = record_of(project, "python", "a.py")
    assert {output.name for output in record.outputs} == {"out.txt"}
    assert [p.entered for p in record.processes].count(False) == 1


def test_a_killed_script_is_an_expected_failure_with_its_signal(project):
    (project / "a.py").write_text(f"{WRITE}\nimport os\nos.kill(os.getpid(), 9)\n")
    record = record_of(project, "python", "a.py", options=["--expect-failure"])
    assert record.outcome.exit_status == -9
    assert "process-without-end" in remarks(record)


def test_a_file_outside_the_project_is_included_with_its_origin(project, tmp_path):
    data = tmp_path / "elsewhere.csv"
    data.write_text("1\n")
    (project / "a.py").write_text(f"{WRITE}\nopen({str(data)!r}).read()\n")
    record = record_of(project, "python", "a.py")
    (read,) = [r for r in record.reads if r.path.startswith("external:")]
    assert read.member == "external/1/elsewhere.csv"
    assert "read-outside-project" in remarks(record)


def test_a_write_into_the_original_project_is_a_failure(project):
    (project / "a.py").write_text(
        f"{WRITE}\nopen({str(project / 'stray.txt')!r}, 'w').write('x')\n"
    )
    record = record_of(project, "python", "a.py")
    assert "wrote-original-project" in remarks(record)


def test_a_checkpoint_that_is_resumed_keeps_both_states(project):
    (project / "state.bin").write_bytes(b"old")
    (project / "a.py").write_text(
        "data = open('state.bin', 'rb').read()\n"
        "open('state.bin', 'wb').write(data + b'new')\n"
    )
    target = project.parent / "x.rpb.zip"
    done = reprobundle("pack", "-o", target, "-q", "--", "python", "a.py", cwd=project)
    assert done.status == 0, done.err
    with open_bundle(target) as bundle:
        assert bundle.read("inputs/state.bin") == b"old"
        assert bundle.read("runs/1/outputs/state.bin") == b"oldnew"
        record = decode(bundle.read("runs/1/record.json"), Record, where="", rule="")
    assert record.outputs[0].replaced_input


def test_a_git_commit_and_its_difference_are_recorded(project):
    import subprocess

    def git(*arguments):
        subprocess.run(
            [
                "git",
                "-C",
                project,
                "-c",
                "user.name=a",
                "-c",
                "user.email=a@b",
                *arguments,
            ],
            check=True,
            capture_output=True,
        )

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "x")
    (project / "a.py").write_text(f"{WRITE}\nprint(43)\n")
    record = record_of(project, "python", "a.py")
    assert record.environment["git.dirty"].value is True
    assert len(str(record.environment["git.commit"].value)) == 40
    with open_bundle(project.parent / "x.rpb.zip") as bundle:
        assert b"+print(43)" in bundle.read("lock/git.diff")


def test_tokens_in_the_environment_are_not_recorded(project):
    target = project.parent / "x.rpb.zip"
    done = reprobundle(
        "pack",
        "-o",
        target,
        "-q",
        "--",
        "python",
        "a.py",
        cwd=project,
        env={"HF_TOKEN": "hf_verysecretvalue"},
        online=True,
    )
    assert done.status == 0, done.err
    with open_bundle(target) as bundle:
        assert all(
            b"hf_verysecretvalue" not in bundle.read(name) for name in bundle.members
        )


def test_recorded_values_are_outputs_without_our_package_being_installed(project):
    (project / "a.py").write_text(
        "import reprobundle\nwith reprobundle.phase('work'):\n"
        "    reprobundle.record('accuracy', 0.5)\n"
    )
    record = record_of(project, "python", "a.py")
    assert [output.name for output in record.outputs] == ["record:accuracy"]
    assert "work" in {phase.name for phase in record.phases}


def test_an_editable_install_of_the_project_is_redirected_to_the_copy(
    project, tmp_path
):
    """What the command imports must be the copy, or the bundle shows other code."""
    import subprocess
    import venv

    environment = tmp_path / "environment"
    venv.create(environment, with_pip=False, symlinks=True)
    python = environment / "bin/python"
    purelib = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    (project / "src/thing").mkdir(parents=True)
    (project / "src/thing/__init__.py").write_text("VALUE = 1\n")
    info = tmp_path / purelib / "thing-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n")
    (info / "direct_url.json").write_text(
        f'{{"url": "file://{project}", "dir_info": {{"editable": true}}}}'
    )
    (info / "RECORD").write_text("__editable__.thing.pth,,\n")
    (info.parent / "__editable__.thing.pth").write_text(f"{project}/src\n")
    (project / "a.py").write_text(
        f"import thing, pathlib\n{WRITE}\nprint(thing.__file__)\n"
    )
    record = record_of(project, str(python), "a.py")
    assert "src/thing/__init__.py" in record.sources
    assert "read-original-project" not in remarks(record)
