"""A bundle of a small training, which many tests read and none changes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "programs/packed.py"


@pytest.fixture(scope="session")
def packed(tmp_path_factory):
    """Return a bundle that was packed here."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("packed")
    (folder / "train.py").write_text(PROGRAM.read_text())
    target = tmp_path_factory.mktemp("bundle") / "small.rpb.zip"
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    options = ("--seed", "1", "--device", "cpu", "--passes", "measured", "-q", "--")
    command = ("--offline", *options, "python", "train.py", "{device}")
    subprocess.run(
        [sys.executable, "-m", "reprobundle", "pack", "-o", target, *command],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PATH": path},
        check=True,
        capture_output=True,
    )
    return target
