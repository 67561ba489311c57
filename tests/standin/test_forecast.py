"""The CPU is asked for what a device of type mps is asked for, aliases aside.

`forecast` reads a run on the CPU. This holds its list of choices of the CPU against a
device of type mps, which goes through torch's own dispatcher; Metal is not involved.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from reprobundle.port.forecast.judged import ON_MPS, judge_operators
from reprobundle.port.forecast.judging import judge
from reprobundle.port.forecast.naming import names_mps
from reprobundle.port.forecast.subject import typed
from reprobundle.port.forecast.watching import watch
from reprobundle.run.events import SteeredOperatorEvent
from reprobundle.verify.mps_operators import base_name, table_of

PROGRAM = Path(__file__).parent / "small_programs.py"
# Moves between devices are no work; the CPU has none to make.
MOVES = {"_to_copy", "copy", "detach", "lift_fresh", "alias"}
# Programs whose operators differ by more than an alias, each with the reason.
DIFFERENT = {
    "gru": "the CPU projects all steps of the input at once (RNN.cpp, FullLayer), "
    "which takes one more view; both forms are composite",
    "silu": "the stand-in has no kernel for silu_backward, so torch's derived form "
    "takes its place (math_silu_backward); MPS has a kernel (native_functions.yaml)",
    "ctc_tensors": "under a dispatch mode ctc_loss divides by the lengths as they are "
    "given, on the CPU; without one it copies them first, and the program runs",
    "svd": "linalg_svd goes to the CPU as a whole; the forecast has a rule for it",
    "index_put": "a number that is assigned is made a tensor without the dispatcher on "
    "the CPU and by scalar_tensor elsewhere (TensorIndexing.h, scalarToTensor)",
}
# What these programs have done on the CPU before anything is moved: first weights are
# drawn there, and optimizers count their steps there. The last is a profiler's mark.
ON_THE_HOST = {
    "_local_scalar_dense",
    "empty",
    "fill",
    "normal",
    "profiler",
    "scalar_tensor",
    "uniform",
    "zero",
}
FEWEST_PROGRAMS = 70


def operators(python, device, *how):
    variables = {**os.environ, "OMP_NUM_THREADS": "1"}
    variables["PYTORCH_ENABLE_MPS_FALLBACK"] = "1"
    done = subprocess.run(
        [python, PROGRAM, device, *how],
        env=variables,
        capture_output=True,
        text=True,
        check=True,
        timeout=180,
    )
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def both(standin):
    standin.settings()
    return operators(sys.executable, "cpu"), operators(standin.python, "mps")


@pytest.fixture(scope="module")
def fallen_back(standin):
    """Return what torch's profiler saw fall back to the CPU, by program."""
    standin.settings()
    return operators(standin.python, "mps", "profiled")


@pytest.fixture(scope="module", params=["source", "value"])
def forecast(request, tmp_path_factory):
    """Return the forecast of all programs, run as one command.

    The file names MPS, so the device is known by its value. Where nothing names it, it
    is known by the source of the calls.
    """
    folder = tmp_path_factory.mktemp("programs")
    text = PROGRAM.read_text()
    if request.param == "source":
        text = text.replace("cpu|mps", "DEVICE")
    (folder / PROGRAM.name).write_text(text)
    assert names_mps(folder, (), {}) == (request.param == "value")
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    variables = {**os.environ, "OMP_NUM_THREADS": "1", "PATH": path}
    argv = ("python", PROGRAM.name, "{device}", "unwatched")
    watched = watch(typed(argv, folder, variables))
    assert watched.exit_status == 0, watched.last_words
    return judge(watched.processes, argv)


def bases(names):
    return {base_name(name) for name in names} - MOVES


def test_both_are_asked_for_the_same_but_for_named_choices_of_the_cpu(both):
    on_cpu, on_mps = both
    assert on_cpu.keys() == on_mps.keys()
    assert len(on_cpu) >= FEWEST_PROGRAMS
    different = {}
    for name in on_cpu:
        cpu, mps = bases(on_cpu[name]), bases(on_mps[name])
        if cpu & ON_MPS.keys():
            # What takes the place of a choice is made of several operators.
            assert not mps & ON_MPS.keys(), name
        elif cpu != mps:
            different[name] = (sorted(cpu - mps), sorted(mps - cpu))
    assert different.keys() == DIFFERENT.keys(), different


def test_no_program_failed_on_the_cpu(both):
    failed = {n: names for n, names in both[0].items() if names[0].startswith("error:")}
    assert failed == {}


def test_the_forecast_sees_the_operators_of_all_programs(both, forecast):
    seen = {base_name(one.operator) for one in forecast.operators} - MOVES
    called = set().union(*map(bases, both[0].values()))
    assert seen - called == set()
    assert called - seen == ON_THE_HOST


def leaves(one):
    """Tell whether an operator raises on MPS, or runs on the CPU in its place."""
    return one.place in {"missing", "always-cpu"}


def refused(names):
    """Return what the forecast refuses of the operators of one program on the CPU."""
    import torch

    table = table_of(torch.__version__)
    assert table is not None
    rows = [
        SteeredOperatorEvent(
            t_ns=0, operator=n, phase="", steered=True, count=1, steps=1, where=""
        )
        for n in names
    ]
    judged = judge_operators(rows, table, steered=True)
    return {one.on_mps or base_name(one.operator) for one in judged if leaves(one)}


def test_what_is_refused_is_what_the_profiler_sees_fall_back(both, fallen_back):
    """``aten::_to_cpu`` is the witness; no warning and no table is asked."""
    expected = {name: refused(names) for name, names in both[0].items()}
    seen = {name: set(map(base_name, names)) for name, names in fallen_back.items()}
    assert {n: names for n, names in seen.items() if names} == {
        n: names for n, names in expected.items() if names
    }
    assert sum(map(bool, seen.values())) >= 8


def test_the_forecast_as_a_whole_names_the_same(forecast, fallen_back):
    named = {
        one.on_mps or base_name(one.operator)
        for one in forecast.operators
        if leaves(one)
    }
    assert named == {base_name(n) for names in fallen_back.values() for n in names}


def test_no_program_is_said_to_mix_devices_or_to_need_float64(forecast, fallen_back):
    """All of them run on the stand-in, which refuses both."""
    errors = [n for n in fallen_back.values() if n and n[0].startswith("error:")]
    assert errors == []
    assert [o for o in forecast.crossings if o.kind == "mixed-devices"] == []
    assert forecast.float64 == ()
