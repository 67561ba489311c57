"""Ask the user's interpreter whether a device can be used, before anything runs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from reprobundle.format.record import Fact, Outcome
from reprobundle.run.launch import recorder_folder

# Importing torch from a cold disk takes tens of seconds.
PROBE_SECONDS = 300
_ASKED_FOR = ("cuda", "mps")


class Obstacle(NamedTuple):
    """Why nothing is run.

    Attributes:
        outcome: Of a run that cannot have its device.
        facts: The cause, as a run of its own would record it.
    """

    outcome: Outcome
    facts: Mapping[str, Fact] = MappingProxyType({})


def obstacle(
    python: Path, device: str, environment: Mapping[str, str]
) -> Obstacle | None:
    """Return why a run cannot have its device; None if it can.

    Where the question cannot be answered, nothing is claimed: the run itself shows.

    Args:
        python: The interpreter the command will run with.
        device: ``as-is`` or a device type.
        environment: Variables of the run.
    """
    if device not in _ASKED_FOR:
        return None
    answer = asked(python, device, environment)
    if not answer.get("cause"):
        return None
    outcome = Outcome(
        exit_status=0,
        completed=False,
        # Not `cuda_required`: whether the command itself names CUDA is not known.
        stop="platform",
        stop_detail=f"{device} was asked for: {answer['cause']}; {answer['remedy']}",
    )
    return Obstacle(outcome, _facts(device, answer))


def _facts(device: str, answer: Mapping[str, str]) -> dict[str, Fact]:
    words = {"key": "", "cause": "_cause", "remedy": "_remedy"}
    return {
        f"torch.{device}.missing{suffix}": Fact(
            value=str(answer.get(word, "")), source="asked before the replay"
        )
        for word, suffix in words.items()
    }


def asked(python: Path, device: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return what an interpreter says about a device; empty if it cannot be asked.

    Args:
        python: The interpreter.
        device: A device type.
        environment: The variables to ask it with.

    Returns:
        ``key``, ``cause`` and ``remedy``, all empty if the device can be used.
    """
    script = recorder_folder() / "entry" / "ask_device.py"
    try:
        done = subprocess.run(
            [str(python), str(script), device],
            env=dict(environment),
            capture_output=True,
            check=False,
            timeout=PROBE_SECONDS,
        )
        answer = json.loads(done.stdout)
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return {}
    return answer if isinstance(answer, dict) else {}
