"""Ask an interpreter for the facts that `doctor` judges."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from reprobundle.run.launch import RECORDER_NAME, recorder_folder
from reprobundle.temporary.guarded import owned_folder

# Importing torch from a cold disk takes tens of seconds.
SECONDS = 300
_CALL = (
    "import sys; sys.path.insert(0, sys.argv.pop()); "
    f"from {RECORDER_NAME}.examination import main; main()"
)


@dataclass(frozen=True)
class Facts:
    """What an interpreter said.

    Attributes:
        found: Fact → value, reason why it is unknown, source.
    """

    found: Mapping[str, tuple[object, str, str]]

    def value(self, name: str) -> object:
        """Return a fact's value, or None where it is not known."""
        return self.found.get(name, (None, "", ""))[0]

    def text(self, name: str) -> str:
        """Return a fact's value as text, empty where it is not known."""
        value = self.value(name)
        return "" if value is None else str(value)

    def why(self, name: str) -> str:
        """Return why a fact is not known."""
        return self.found.get(name, (None, "it was not asked", ""))[1]


def ask(python: Path, environment: Mapping[str, str]) -> Facts:
    """Return what `python` says; where it cannot be asked, each fact says why.

    Args:
        python: The interpreter.
        environment: Variables of the process that is started.
    """
    try:
        with owned_folder("reprobundle-doctor-") as folder:
            ignored = shutil.ignore_patterns("__pycache__", "*.pyc")
            copy = folder / RECORDER_NAME
            shutil.copytree(recorder_folder(), copy, ignore=ignored)
            done = subprocess.run(
                [str(python), "-c", _CALL, str(folder)],
                env={**environment, "PYTHONDONTWRITEBYTECODE": "1"},
                capture_output=True,
                check=False,
                timeout=SECONDS,
                stdin=subprocess.DEVNULL,
            )
        lines = done.stdout.decode(errors="replace").splitlines()
        found = json.loads(lines[-1]) if lines else {}
        reason = f"{python.name} ended with status {done.returncode} and said nothing"
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        found, reason = {}, f"{python.name} could not be asked: {error}"
    if not isinstance(found, dict) or not found:
        return Facts({"python.version": (None, reason, "doctor")})
    return Facts({name: tuple(fact) for name, fact in found.items()})
