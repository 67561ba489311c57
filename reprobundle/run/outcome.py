"""How a finished run ended, as its record says it."""

from __future__ import annotations

from reprobundle.format.record import Outcome
from reprobundle.run import facts
from reprobundle.run.events import EventFile
from reprobundle.run.finished import FinishedRun
from reprobundle.run.stops import StopReason, stop_of


def outcome(
    run: FinishedRun,
    files: tuple[EventFile, ...],
    *,
    expected_failure: bool,
    may_stop: bool,
) -> Outcome:
    """Return exit status, error and, if `may_stop`, the known reason of a stop.

    Args:
        run: The finished run.
        files: The events of its processes.
        expected_failure: Whether failing is the result to record.
        may_stop: Whether an error may be one of the known reasons why a replay
            stops; a failing reference never has one.
    """
    launched = run.launched
    if launched.interrupted:
        return Outcome(
            exit_status=launched.exit_status,
            completed=False,
            stop="interrupted",
            stop_detail="the run was interrupted from the keyboard",
        )
    failed = launched.exit_status != 0
    error = facts.error(files, run.hide) if failed else None
    stop: StopReason = ""
    detail = ""
    if error is not None and may_stop:
        stop, detail = stop_of(error)
    return Outcome(
        exit_status=launched.exit_status,
        expected_failure=expected_failure,
        error=error,
        stop=stop,
        stop_detail=detail,
    )
