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

from reprobundle.port.forecast.judged import ON_MPS
from reprobundle.verify.mps_operators import base_name

PROGRAM = Path(__file__).parent / "small_programs.py"
# Moves between devices are no work; the CPU has none to make.
MOVES = {"_to_copy", "copy", "detach", "lift_fresh", "alias"}
# Programs whose operators differ by more than an alias, each with the reason.
DIFFERENT = {
    "gru": "a view is written otherwise on the CPU; both forms are composite",
    "silu": "the stand-in has no kernel for silu_backward and splits it; MPS has one",
    "ctc": "the stand-in refuses lengths on the CPU before an operator runs",
    "svd": "linalg_svd goes to the CPU as a whole; the forecast has a rule for it",
    "index_put": "a number that is assigned becomes a tensor on the device first",
}
FEWEST_PROGRAMS = 70


def operators(python, device):
    variables = {**os.environ, "OMP_NUM_THREADS": "1"}
    variables["PYTORCH_ENABLE_MPS_FALLBACK"] = "1"
    done = subprocess.run(
        [python, PROGRAM, device],
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
