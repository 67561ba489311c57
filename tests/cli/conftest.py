"""A small project, and one bundle of it that all command line tests share."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

SCRIPT = """\
import csv, json, os, random
from pathlib import Path

import model

rows = [float(row["x"]) for row in csv.DictReader(open("data/points.csv"))]
weight = model.fit(rows)
Path("out").mkdir(exist_ok=True)
json.dump({"weight": weight, "rows": len(rows)}, open("out/metrics.json", "w"))
with open("out/curve.csv", "w") as curve:
    curve.write("step,loss\\n")
    for step in range(5):
        curve.write(f"{step},{1 / (step + 1) + random.random() * 1e-3!r}\\n")
print("final weight", weight)
"""

MODEL = """\
def fit(rows):
    return sum(rows) / len(rows)
"""


@dataclass(frozen=True)
class Result:
    """How a call of the command line ended."""

    status: int
    out: str
    err: str


def reprobundle(*arguments, cwd=None, env=None, timeout=120, online=False):
    """Run the command line in a process of its own.

    ``pack`` asks no package index unless the test says `online`: resolving a lock for
    other systems costs 4 s of CPU time, many times what most commands here take.
    """
    if arguments[:1] == ("pack",) and not online and "--offline" not in arguments:
        arguments = ("pack", "--offline", *arguments[1:])
    variables = {**os.environ, **(env or {})}
    variables.pop("PYTHONPATH", None)
    done = subprocess.run(
        [sys.executable, "-m", "reprobundle", *map(str, arguments)],
        cwd=cwd,
        env=variables,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return Result(done.returncode, done.stdout, done.stderr)


def make_project(folder: Path) -> Path:
    (folder / "data").mkdir(parents=True)
    (folder / "train.py").write_text(SCRIPT)
    (folder / "model.py").write_text(MODEL)
    (folder / "data/points.csv").write_text("x\n1.5\n2.5\n3.5\n")
    return folder


NOISE_BYTES = 40_000


@pytest.fixture
def project(tmp_path):
    return make_project(tmp_path / "project")


@pytest.fixture(scope="session")
def packed(tmp_path_factory):
    """Return a bundle that must not be changed; use `bundle` for one that may."""
    folder = tmp_path_factory.mktemp("packed")
    project = make_project(folder / "project")
    target = folder / "points.rpb.zip"
    done = reprobundle(
        "pack",
        "-o",
        target,
        "--seed",
        "7",
        "-q",
        "--",
        "python",
        "train.py",
        cwd=project,
        online=True,
    )
    assert done.status == 0, done.err
    return target


@pytest.fixture(scope="session")
def replayed(packed, tmp_path_factory):
    """Return a bundle with one attached replay; not to be changed."""
    target = tmp_path_factory.mktemp("replayed") / "points.rpb.zip"
    shutil.copy(packed, target)
    done = reprobundle("replay", target, "--yes", "-q")
    assert done.status == 0, done.out + done.err
    return target


@pytest.fixture(scope="session")
def too_long(tmp_path_factory):
    """Return a replayed bundle that is too long for an issue, but for one result.

    It is packed offline: a lock for other systems is large.
    """
    folder = tmp_path_factory.mktemp("too_long")
    project = make_project(folder / "project")
    with (project / "train.py").open("a") as script:
        noise = f"random.Random(1).randbytes({NOISE_BYTES})"
        script.write(f"Path('out/noise.bin').write_bytes({noise})\n")
    target = folder / "points.rpb.zip"
    options = ("--seed", "7", "-q")
    done = reprobundle(
        *("pack", "-o", target, *options, "--", "python", "train.py"), cwd=project
    )
    assert done.status == 0, done.err
    done = reprobundle("replay", target, "--yes", "-q")
    assert done.status == 0, done.out + done.err
    return target


@pytest.fixture
def bundle(packed, tmp_path):
    target = tmp_path / "points.rpb.zip"
    shutil.copy(packed, target)
    return target
