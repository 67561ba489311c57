"""Where the examples are, and how to run one."""

import os
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run_example(
    script: str, *arguments: str | Path, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `script`, a path below examples/, in a fresh interpreter."""
    environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
    return subprocess.run(
        [sys.executable, EXAMPLES / script, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def train_digits(out: Path, *arguments: str) -> Path:
    """Train the digits example on the CPU into `out` and return it."""
    script = "digits/train.py"
    ended = run_example(script, "--device", "cpu", "--out", out, *arguments)
    assert ended.returncode == 0, ended.stderr
    return out
