"""Notebooks run headless: their kernel is entered, their cells are places."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from reprobundle.format.canonical import decode
from reprobundle.format.reader import open_bundle
from reprobundle.format.record import Record
from tests.cli.conftest import reprobundle

ACTIVATED = {"PATH": os.pathsep.join((str(Path(sys.executable).parent), os.defpath))}
RUN = ("jupyter", "execute", "analysis.ipynb", "--output=executed.ipynb")
CELLS = (
    ("markdown", "# Mean of three numbers"),
    ("code", "import random\nrandom.seed(3)"),
    ("code", "import part\nvalue = part.mean([1, 2, random.random()])"),
    ("code", "open('mean.txt', 'w').write(str(value))\nprint(value)"),
)
FAILING = (*CELLS, ("code", "# The last one.\npart.mean([])"))


def write_notebook(path, cells):
    document = {
        "cells": [
            {
                "cell_type": kind,
                "id": f"cell{number}",
                "metadata": {},
                "source": source.splitlines(keepends=True),
                **({"outputs": [], "execution_count": None} if kind == "code" else {}),
            }
            for number, (kind, source) in enumerate(cells)
        ],
        "metadata": {
            "kernelspec": {
                "name": "python3",
                "display_name": "Python 3",
                "language": "python",
            }
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    path.write_text(json.dumps(document))


def make(folder, cells):
    folder.mkdir()
    write_notebook(folder / "analysis.ipynb", cells)
    (folder / "part.py").write_text(
        "def mean(values):\n    return sum(values) / len(values)\n"
    )
    return folder


def pack(project, *options, command=RUN):
    target = project.parent / f"{project.name}.rpb.zip"
    done = reprobundle(
        "pack", "-q", "-o", target, *options, "--", *command, cwd=project, env=ACTIVATED
    )
    assert done.status == 0, done.err
    with open_bundle(target) as bundle:
        data = bundle.read("runs/1/record.json")
    return target, decode(data, Record, where="record", rule="test")


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    return pack(make(tmp_path_factory.mktemp("good") / "project", CELLS))


def test_the_kernel_is_entered_and_known_as_one(executed):
    _, record = executed
    kernels = [p for p in record.processes if "ipykernel_launcher" in p.argv]
    assert [(p.entered, p.part) for p in kernels] == [(True, "kernel")]
    assert "part.py" in record.sources


def test_a_seed_is_placed_in_its_cell(executed):
    _, record = executed
    (call,) = record.randomness.calls
    assert call.where == "{project}/analysis.ipynb, cell 2:2"


def test_an_executed_notebook_repeats_but_for_its_clock_readings(executed):
    bundle, record = executed
    assert {output.name for output in record.outputs} == {"executed.ipynb", "mean.txt"}
    done = reprobundle("replay", bundle, "--yes", "-q", "--passes", "measured")
    assert done.status == 0, done.out


def test_an_error_is_placed_in_its_cell_and_in_the_module_it_came_from(tmp_path):
    _, record = pack(
        make(tmp_path / "project", FAILING), "--expect-failure", "--passes=measured"
    )
    error = record.outcome.error
    assert (error.type, error.message) == ("ZeroDivisionError", "division by zero")
    assert error.where == (
        "{project}/part.py:2, from {project}/analysis.ipynb, cell 5:2"
    )
    assert 'File "{project}/analysis.ipynb, cell 5", line 2' in error.traceback


def test_a_failed_cell_behind_status_zero_is_a_finding(tmp_path):
    _, record = pack(
        make(tmp_path / "project", (*CELLS, ("code", "1 / 0"))),
        "--passes=measured",
        command=(*RUN, "--allow-errors"),
    )
    assert record.outcome.exit_status == 0
    (remark,) = [r for r in record.remarks if r.id == "cell-failed"]
    assert remark.where == "{project}/analysis.ipynb, cell 5:1"
    assert "ZeroDivisionError" in remark.text


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(("papermill", "analysis.ipynb", "executed.ipynb"), id="papermill"),
        pytest.param(
            (
                *("jupyter", "nbconvert", "--to=notebook", "--execute"),
                *("analysis.ipynb", "--output=executed.ipynb"),
            ),
            id="nbconvert",
        ),
    ],
)
def test_other_runners_are_entered_and_placed_alike(tmp_path, command):
    _, record = pack(
        make(tmp_path / "project", FAILING),
        *("--expect-failure", "--passes=measured"),
        command=command,
    )
    assert "kernel" in {process.part for process in record.processes if process.entered}
    (call,) = record.randomness.calls
    assert call.where == "{project}/analysis.ipynb, cell 2:2"
    error = record.outcome.error
    assert error.where == (
        "{project}/part.py:2, from {project}/analysis.ipynb, cell 5:2"
    )
