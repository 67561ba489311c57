"""Ask the user's interpreter whether a device can be used, before anything runs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from reprobundle.format.record import Outcome
from reprobundle.run.launch import recorder_folder

# Importing torch from a cold disk takes tens of seconds.
PROBE_SECONDS = 300
_STOPS: dict[str, Literal["cuda_required", "platform"]] = {
    "cuda": "cuda_required",
    "mps": "platform",
}


def obstacle(
    python: Path, device: str, environment: Mapping[str, str]
) -> Outcome | None:
    """Return the outcome of a run that cannot have its device; None if it can.

    Where the question cannot be answered, nothing is claimed: the run itself shows.

    Args:
        python: The interpreter the command will run with.
        device: ``as-is`` or a device type.
        environment: Variables of the run.
    """
    if device not in _STOPS:
        return None
    answer = _asked(python, device, environment)
    if not answer.get("cause"):
        return None
    return Outcome(
        exit_status=0,
        completed=False,
        stop=_STOPS[device],
        stop_detail=f"{device} was asked for: {answer['cause']}; {answer['remedy']}",
    )


def _asked(python: Path, device: str, environment: Mapping[str, str]) -> dict[str, str]:
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
