"""How a run ended, and what a reader must know of it."""

from typing import Literal

import msgspec

from reprobundle.format.record.values import Count


class ErrorReport(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """The error that ended the run.

    Attributes:
        type: Qualified class name, such as ``RuntimeError``.
        message: As raised.
        masked: The message with addresses, process ids, sizes in memory and paths
            replaced by ``#``; two runs of one failure agree in it.
        where: ``path:line`` of the innermost frame inside the project.
        traceback: Whole text.
        steps: Optimizer steps made before it.
    """

    type: str
    message: str
    masked: str
    where: str
    traceback: str
    steps: Count = 0


class Outcome(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the run ended.

    Attributes:
        exit_status: Of the command; negative for the signal that ended it.
        completed: False when the run was interrupted or never finished.
        expected_failure: Whether failing was the result to record.
        error: What the failing Python process reported.
        stop: Reason why a replay stopped before or during the run: ``operator``,
            ``memory``, ``cuda_required``, ``dtype``, ``platform``, ``data``,
            ``interrupted``; empty otherwise.
        stop_detail: One line about it.
    """

    exit_status: int
    completed: bool = True
    expected_failure: bool = False
    error: ErrorReport | None = None
    stop: Literal[
        "",
        "operator",
        "memory",
        "cuda_required",
        "dtype",
        "platform",
        "data",
        "interrupted",
    ] = ""
    stop_detail: str = ""


class Remark(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something the run showed that a reader must know.

    Attributes:
        id: Stable name, such as ``python-not-entered`` or ``read-outside-project``.
        severity: ``gap`` (a fact is missing), ``warning`` (may change the result),
            ``failure`` (the run cannot be trusted as it is).
        where: File, process or member concerned.
        text: One sentence.
    """

    id: str
    severity: Literal["gap", "warning", "failure"]
    where: str = ""
    text: str


class Restart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run that was stopped after a checkpoint and started again.

    Attributes:
        checkpoint: Project file that had just been saved.
        steps_before: Optimizer steps of the stopped process.
        steps_after: Optimizer steps of the resumed one.
        command: What resumed it, as a record stores arguments; empty for the same
            command.
        reason: Why it shows nothing about resuming; empty if it does.
    """

    checkpoint: str = ""
    steps_before: Count = 0
    steps_after: Count = 0
    command: tuple[str, ...] = ()
    reason: str = ""
