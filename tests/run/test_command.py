from __future__ import annotations

from pathlib import Path

import pytest

from reprobundle.run.command import (
    recorded_argv,
    recorded_environment,
    replay_base,
    run_environment,
    runnable_argv,
)
from reprobundle.run.watch import is_python


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("python", True),
        ("python3", True),
        ("/opt/env/bin/python3.11", True),
        ("python3.13t", True),
        ("pypy3.10", True),
        ("/usr/bin/python3.11 (deleted)", True),
        ("python-config", False),
        ("pythonista", False),
        ("bash", False),
    ],
)
def test_tells_interpreters_by_name(name, expected):
    assert is_python(name) is expected


def test_an_interpreter_path_is_stored_by_its_plain_name(tmp_path):
    assert recorded_argv(("/opt/env/bin/python3.11", "train.py"), tmp_path) == (
        "python",
        "train.py",
    )


def test_paths_inside_the_project_are_stored_relative_to_it(tmp_path):
    argv = (
        "python",
        str(tmp_path / "a/train.py"),
        f"--data={tmp_path}/d.csv",
        "/etc/x",
    )
    assert recorded_argv(argv, tmp_path) == (
        "python",
        "{project}/a/train.py",
        "--data={project}/d.csv",
        "/etc/x",
    )


def test_a_recorded_command_runs_with_the_given_interpreter_in_the_scratch_folder():
    argv = runnable_argv(
        ("python", "{project}/train.py", "--device", "{device}"),
        Path("/scratch"),
        Path("/env/bin/python"),
        device="cpu",
    )
    assert argv == ("/env/bin/python", "/scratch/train.py", "--device", "cpu")


def test_a_shell_command_keeps_its_program():
    argv = runnable_argv(
        ("bash", "-c", "python a.py | python b.py"), Path("/s"), Path("/e/python")
    )
    assert argv == ("bash", "-c", "python a.py | python b.py")


def test_a_seed_fixes_string_hashing_too():
    recorded = recorded_environment({"HOME": "/h"}, seed=2**32 + 5, import_paths=[])
    assert recorded == {"PYTHONHASHSEED": "5"}


def test_numeric_settings_belong_to_the_command_and_tokens_do_not():
    variables = {"OMP_NUM_THREADS": "3", "HF_TOKEN": "secret", "PATH": "/bin"}
    assert recorded_environment(variables, seed=None, import_paths=[]) == {
        "OMP_NUM_THREADS": "3"
    }


def test_a_replay_sees_no_variable_outside_the_allow_list():
    base = replay_base({"HF_TOKEN": "secret", "PATH": "/bin", "LC_ALL": "C"})
    assert base == {"PATH": "/bin", "LC_ALL": "C"}


def test_the_interpreters_folder_comes_first_on_the_path():
    variables = run_environment(
        {"PATH": "/bin"},
        {"PYTHONPATH": "{project}/src"},
        scratch=Path("/scratch"),
        python=Path("/env/bin/python"),
        device="cpu",
    )
    assert variables["PATH"] == "/env/bin:/bin"
    assert variables["PYTHONPATH"] == "/scratch/src"
    assert variables["REPROBUNDLE_DEVICE"] == "cpu"


def test_a_run_on_the_cpu_hides_cuda_devices():
    variables = run_environment(
        {"PATH": "/bin", "CUDA_VISIBLE_DEVICES": "0"},
        {},
        scratch=Path("/s"),
        python=Path("/e/bin/python"),
        device="cpu",
    )
    assert variables["CUDA_VISIBLE_DEVICES"] == ""
