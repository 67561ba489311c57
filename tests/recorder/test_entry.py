"""Which processes are entered, and as what."""

import os
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from reprobundle.run.events import Child, End, Error, Open, Start

from .conftest import RECORDER, plain_environment


def test_a_script_is_entered_as_main_and_prints_what_it_prints_alone(launch):
    files = {"run.py": "import sys\nprint('out', sys.argv[1:], sys.path[0])\n"}
    plain = launch(["python", "run.py", "x"], files, recorded=False)
    run = launch(["python", "run.py", "x"], project=plain.project)
    assert (run.status, run.stdout, run.stderr) == (0, plain.stdout, "")
    (start,) = run.starts
    assert start.kind == "main"
    assert start.argv[1:] == ("run.py", "x")
    assert start.working_directory == str(run.project)
    assert plain.files == ()


def test_the_search_path_is_the_one_the_script_has_alone(launch):
    files = {"run.py": "import sys; print(sys.path)"}
    plain = launch(["python", "run.py"], files, recorded=False)
    assert launch(["python", "run.py"], project=plain.project).stdout == plain.stdout


@pytest.mark.parametrize(
    ("argv", "stdin"),
    [
        (["python", "-m", "package.module"], ""),
        (["python", "-c", "import package.module"], ""),
        (["python"], "import package.module\n"),
        (["sh", "-c", "python -m package.module | cat"], ""),
    ],
    ids=["module", "text", "stdin", "shell"],
)
def test_every_way_to_start_python_is_entered(launch, argv, stdin):
    files = {"package/__init__.py": "", "package/module.py": "print('here')\n"}
    run = launch(argv, files, stdin=stdin)
    assert (run.status, run.stdout) == (0, "here\n")
    assert [start.kind for start in run.starts] == ["main"]
    assert "package/module.py" in run.opened("read")
    (end,) = run.of(End)
    assert str(run.project / "package" / "module.py") in end.sources


def test_both_pythons_of_a_pipeline_are_entered(launch):
    command = "python -c 'print(1)' | python -c 'print(input() + str(2))'"
    run = launch(["sh", "-c", command])
    assert run.stdout == "12\n"
    assert sorted(start.kind for start in run.starts) == ["main", "python"]


def test_the_failure_hidden_in_a_pipeline_is_seen(launch):
    run = launch(["sh", "-c", "python -c \"raise ValueError('lost')\" | cat"])
    assert run.status == 0
    (error,) = run.of(Error)
    assert (error.type, error.message) == ("ValueError", "lost")


def test_a_sitecustomize_of_the_site_still_runs(launch):
    files = {
        "site/sitecustomize.py": "import builtins\nbuiltins.customised = __file__\n",
        "run.py": "import sys, sitecustomize as s; print(customised, s.__file__)",
    }
    project = launch.project(files)
    plain = launch(
        ["python", "run.py"],
        project=project,
        recorded=False,
        variables={"PYTHONPATH": str(project / "site")},
    )
    session = launch.session(project, seed=None, device="as-is")
    path = os.pathsep.join((str(session / "enter"), str(project / "site")))
    variables = {"PYTHONPATH": path, "REPROBUNDLE_SESSION": str(session)}
    chained = launch(["python", "run.py"], project=project, variables=variables)
    assert chained.status == 0, chained.stderr
    assert chained.stdout == plain.stdout
    assert list((session / "events").iterdir())


def test_an_error_in_the_sites_sitecustomize_is_still_reported(launch):
    project = launch.project({"site/sitecustomize.py": "1/0\n"})
    session = launch.session(project, seed=None, device="as-is")
    path = os.pathsep.join((str(session / "enter"), str(project / "site")))
    run = launch(
        ["python", "-c", "print('goes on')"],
        project=project,
        variables={"PYTHONPATH": path, "REPROBUNDLE_SESSION": str(session)},
    )
    assert run.stdout == "goes on\n"
    assert "ZeroDivisionError" in run.stderr


def test_a_broken_session_does_not_touch_the_run(launch):
    project = launch.project({})
    session = launch.session(project, seed=None, device="as-is")
    (session / "config.json").write_text("no json")
    run = launch(
        ["python", "-c", "print('fine')"],
        project=project,
        variables={
            "PYTHONPATH": str(session / "enter"),
            "REPROBUNDLE_SESSION": str(session),
        },
    )
    assert (run.status, run.stdout, run.stderr) == (0, "fine\n", "")


def test_forks_write_to_files_of_their_own(launch):
    script = (
        "import os\n"
        "pid = os.fork()\n"
        "open('child.txt' if pid == 0 else 'parent.txt', 'w').close()\n"
        "os._exit(7) if pid == 0 else os.waitpid(pid, 0)\n"
    )
    run = launch(["python", "run.py"], {"run.py": script})
    main, fork = run.files
    assert (main.start.kind, fork.start.kind) == ("main", "fork")
    assert fork.start.parent_pid == main.start.pid
    writes = [
        [
            Path(e.path).name
            for e in f.events
            if isinstance(e, Open) and e.mode == "write"
        ]
        for f in (main, fork)
    ]
    assert writes == [["parent.txt"], ["child.txt"]]
    (end,) = (event for event in fork.events if isinstance(event, End))
    assert end.exit_status == 7


def test_a_fork_that_only_prepares_another_program_leaves_no_file(launch):
    script = "import os, subprocess\nsubprocess.run(['true'], preexec_fn=os.setsid)\n"
    run = launch(["python", "run.py"], {"run.py": script})
    assert [start.kind for start in run.starts] == ["main"]
    (child,) = run.of(Child)
    assert (child.executable, child.argv) == ("true", ("true",))


def test_exec_ends_one_file_and_begins_the_next_in_one_process(launch):
    script = (
        "import os, sys\nos.execv(sys.executable, [sys.executable, '-c', 'pass'])\n"
    )
    run = launch(["python", "run.py"], {"run.py": script})
    before, after = run.files
    assert before.start.pid == after.start.pid
    assert [start.kind for start in run.starts] == ["main", "python"]
    assert isinstance(before.events[-1], End)


SPAWN = """
import multiprocessing as mp, sys

def work(name):
    open(name, 'w').close()

if __name__ == '__main__':
    context = mp.get_context(sys.argv[1])
    process = context.Process(target=work, args=('made.txt',))
    process.start()
    process.join()
    sys.exit(process.exitcode)
"""


@pytest.mark.parametrize(
    ("method", "kinds"),
    [
        ("fork", ["main", "fork"]),
        ("spawn", ["main", "helper", "python"]),
        ("forkserver", ["main", "helper", "helper", "fork"]),
    ],
)
def test_workers_are_entered_and_service_processes_told_apart(launch, method, kinds):
    run = launch(["python", "run.py", method], {"run.py": SPAWN})
    assert (run.status, run.stderr) == (0, "")
    assert sorted(start.kind for start in run.starts) == sorted(kinds)
    assert run.opened("write") == {"made.txt"}
    assert run.troubles() == []
    # What multiprocessing starts raises no audit event; it is reported all the same.
    assert len(run.of(Child)) == len([k for k in kinds if k not in ("main", "fork")])


def test_clearing_the_environment_does_not_lose_this_process(launch):
    script = (
        "import os, subprocess, sys\n"
        "os.environ.clear()\n"
        "open('late.txt', 'w').close()\n"
        "subprocess.run([sys.executable, '-c', 'pass'])\n"
    )
    run = launch(["python", "run.py"], {"run.py": script})
    assert run.opened("write") == {"late.txt"}
    assert len(run.starts) == 1
    # The child was not entered, but it was counted.
    assert [child.executable for child in run.of(Child)] == [sys.executable]


def test_a_child_without_our_variable_is_entered_through_its_path(launch):
    script = (
        "import os, subprocess, sys\n"
        "del os.environ['REPROBUNDLE_SESSION']\n"
        "subprocess.run([sys.executable, '-c', 'pass'])\n"
    )
    run = launch(["python", "run.py"], {"run.py": script})
    assert [start.kind for start in run.starts] == ["main", "python"]


def test_closing_all_descriptors_never_damages_a_file_of_the_script(launch):
    script = (
        "import os\n"
        "os.closerange(3, 4096)\n"
        "files = [os.open(f'own-{n}', os.O_WRONLY | os.O_CREAT) for n in range(300)]\n"
        "open('after.txt', 'w').close()\n"
    )
    run = launch(["python", "run.py"], {"run.py": script})
    assert run.status == 0, run.stderr
    sizes = {(run.project / f"own-{n}").stat().st_size for n in range(300)}
    assert sizes == {0}
    assert "after.txt" in run.opened("write")
    assert run.of(End)


def test_user_files_get_the_descriptors_they_get_alone(launch):
    files = {"run.py": "import os; print(os.open('f', os.O_WRONLY | os.O_CREAT))"}
    plain = launch(["python", "run.py"], files, recorded=False)
    assert launch(["python", "run.py"], project=plain.project).stdout == plain.stdout


@pytest.mark.parametrize("option", ["-I", "-E"])
def test_a_pth_file_enters_interpreters_that_ignore_the_path(launch, tmp_path, option):
    environment = tmp_path / "env"
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", environment], check=True
    )
    python = environment / "bin" / "python"
    variables = {"base": str(environment), "platbase": str(environment)}
    packages = Path(sysconfig.get_path("purelib", vars=variables))
    pth = RECORDER / "entry" / "reprobundle_entry.pth"
    (packages / pth.name).write_text(pth.read_text())
    run = launch([str(python), option, "-c", "print('x')"])
    assert (run.stdout, run.stderr) == ("x\n", "")
    assert [start.kind for start in run.starts] == ["main"]
    # With the path in force too, it still starts once.
    assert len(launch([str(python), "-c", "pass"]).starts) == 1
    # Without a session it does nothing.
    alone = subprocess.run(
        [
            python,
            option,
            "-c",
            "import sys; print('_reprobundle_recorder' in sys.modules)",
        ],
        capture_output=True,
        text=True,
        check=True,
        env=plain_environment(),
    )
    assert (alone.stdout, alone.stderr) == ("False\n", "")


def test_a_process_killed_by_a_signal_keeps_its_exit_and_its_events(launch):
    script = (
        "import os, signal, time\n"
        "open('before.txt', 'w').close()\n"
        "os.kill(os.getpid(), signal.SIGTERM)\n"
        "time.sleep(60)\n"
    )
    run = launch(["python", "run.py"], {"run.py": script})
    assert run.status == -signal.SIGTERM
    assert run.opened("write") == {"before.txt"}
    # It did not end by itself, and nothing says that it did.
    assert run.of(End) == []


def test_importing_the_package_starts_nothing():
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "before = set(sys.meta_path)\n"
        "import reprobundle.recorder as r\n"
        "assert not r.is_active() and not r.enter()\n"
        "print(set(sys.meta_path) == before, 'torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(RECORDER.parents[1])],
        capture_output=True,
        text=True,
        check=True,
        env=plain_environment(),
    )
    assert done.stdout == "True False\n"


def test_modules_of_the_project_win_over_standard_ones_the_recorder_could_load(launch):
    names = (
        "json",
        "re",
        "random",
        "platform",
        "subprocess",
        "locale",
        "enum",
        "traceback",
    )
    files = {f"{name}.py": f"print('own {name}')\n" for name in names}
    imports = "\n".join(f"import {name}" for name in names)
    project = launch.project({**files, "run.py": imports})
    plain = launch(["python", "-S", "run.py"], project=project, recorded=False)
    run = launch(["python", "run.py"], project=project)
    alone = launch(["python", "run.py"], project=project, recorded=False)
    assert plain.status == 0
    assert run.stdout == alone.stdout


def test_start_events_come_first(launch):
    run = launch(["python", "-c", "pass"])
    assert all(isinstance(file.events[0], Start) for file in run.files)
    assert all(file.damaged_lines == 0 for file in run.files)


def test_strict_interpreters_find_nothing_to_complain_about(launch):
    script = (
        "import multiprocessing as mp, os, random, threading, warnings\n"
        "import numpy as np\n"
        "random.seed(1); np.random.seed(1)\n"
        "if __name__ == '__main__':\n"
        "    with mp.get_context('spawn').Pool(1) as pool:\n"
        "        print(pool.map(abs, [-1]))\n"
    )
    run = launch(["python", "-X", "dev", "-W", "error", "run.py"], {"run.py": script})
    assert (run.status, run.stdout, run.stderr) == (0, "[1]\n", "")
    assert run.troubles() == []


def test_a_test_runner_works_as_ever(launch):
    files = {
        "test_it.py": (
            "import warnings\n"
            "def test_passes(tmp_path): (tmp_path / 'x').write_text('')\n"
            "def test_warns(): warnings.warn('seen')\n"
            "def test_fails(): assert 1 == 2\n"
        )
    }
    argv = ["python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"]
    run = launch(argv, files)
    assert run.status == 1
    assert "1 failed, 2 passed, 1 warning" in run.stdout
    assert "_reprobundle_recorder" not in run.stdout


def test_endless_recursion_fails_as_it_does_alone(launch):
    files = {"run.py": "def f(n): return f(n + 1)\nf(0)\n"}
    plain = launch(["python", "run.py"], files, recorded=False)
    run = launch(["python", "run.py"], project=plain.project)
    assert (run.status, run.stderr) == (plain.status, plain.stderr)
    assert run.of(Error)[0].type == "RecursionError"


RANKS = """
import torch, torch.distributed as dist
dist.init_process_group('gloo')
total = torch.full((1,), dist.get_rank() + 1.0)
dist.all_reduce(total)
# One write each: two ranks share the pipe.
print(f"{dist.get_rank()} {total.item()}\\n", end="", flush=True)
dist.destroy_process_group()
"""


@pytest.mark.slow
@pytest.mark.torch
def test_every_rank_of_a_distributed_run_is_entered(launch):
    argv = ["torchrun", "--standalone", "--nproc-per-node", "2", "run.py"]
    run = launch(argv, {"run.py": RANKS})
    assert run.status == 0, run.stderr
    assert sorted(run.stdout.split()) == ["0", "1", "3.0", "3.0"]
    assert sorted(start.kind for start in run.starts) == ["main", "python", "python"]
    agent = run.starts[0].pid
    assert {start.parent_pid for start in run.starts[1:]} == {agent}
    assert run.troubles() == []
