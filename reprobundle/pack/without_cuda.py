"""Tell an author whose command does not get its CUDA why, and the ways on."""

from __future__ import annotations

import os

from reprobundle.run.availability import asked
from reprobundle.run.events import read_events
from reprobundle.run.finished import FinishedRun
from reprobundle.run.outcome import outcome

# Where nobody could be asked: the command runs no Python, or its torch does not load.
_UNKNOWN = "take a build of torch with CUDA, on a machine with a GPU"
_THERE = (
    "torch can use CUDA here, so the command hides it or runs another Python: look at "
    "what sets CUDA_VISIBLE_DEVICES"
)


def needs_cuda(run: FinishedRun) -> bool:
    """Tell whether a pass failed for want of CUDA, in the words of torch."""
    files = read_events(run.launched.session.events)
    ended = outcome(run, files, expected_failure=False, may_stop=True)
    return ended.stop == "cuda_required"


def cuda_advice(run: FinishedRun) -> str:
    """Return the ways on for a command that does not get the CUDA it asks for."""
    if run.mapping:
        return f"what only CUDA can do is not mapped; {_way_to_cuda(run)}"
    if run.device == "cuda":
        return f"{_way_to_cuda(run)}; or leave cuda out of --device"
    return f"{_way_to_cuda(run)}; or have its calls mapped: --map-device cuda=cpu"


def _way_to_cuda(run: FinishedRun) -> str:
    """Return why the interpreter of the run has no CUDA, and the remedy."""
    if run.python is None:
        return _UNKNOWN
    environment = {**os.environ, **run.command.environment}
    answer = asked(run.python, "cuda", environment)
    if not answer:
        return _UNKNOWN
    if not answer.get("cause"):
        return _THERE
    return f"{answer['cause']}: {answer['remedy']}"
