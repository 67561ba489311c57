"""The restart pass: stop after a checkpoint, start again, let it run to its end.

The second process starts in the folder as the first one left it. Its outputs are then
compared with those of a run that was never stopped: a resume that forgets the shuffle
order or a generator's state shows there.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from reprobundle.format.record import Restart
from reprobundle.run.events import EventFile, Open, Phases, Stopped, read_events
from reprobundle.run.execute import PassPlan, finished, launch_in, new_scratch
from reprobundle.run.facts import events_of
from reprobundle.run.finished import FinishedRun
from reprobundle.run.project import changed_files, snapshot

NEVER_STOPPED = (
    "the command saved no checkpoint inside the project that was followed by an "
    "optimizer step, so there is no place to stop it"
)
NOT_READ = (
    "the second process did not read the checkpoint: it began anew, and nothing was "
    "resumed"
)


def execute_restart(
    plan: PassPlan, folder: Path, resume: tuple[str, ...] = ()
) -> FinishedRun:
    """Run the command, stop it after a checkpoint, and run it again.

    Args:
        plan: Of the pass; its name is ``restart``.
        folder: New folder.
        resume: The command that resumes, as recorded; empty for the same one.

    Returns:
        The second run, whose `restart` says what was stopped; the first one if it
        came to its end without a stop.

    Raises:
        BadCallError: The command cannot be started.
    """
    scratch = new_scratch(plan, folder)
    before = snapshot(scratch)
    first = launch_in(plan, folder / "stopped", scratch)
    files = read_events(first.session.events)
    stops = [event for _, event in events_of(files, Stopped)]
    if not stops:
        run = finished(plan, folder, scratch, before=before, launched=first)
        return _with(run, Restart(reason=NEVER_STOPPED, command=resume))
    left = set(changed_files(scratch, before))
    second = launch_in(
        plan,
        folder / "resumed",
        scratch,
        argv=resume or plan.command.argv,
        pass_name="measured",
    )
    run = finished(plan, folder, scratch, before=before, launched=second)
    resumed = read_events(second.session.events)
    read = _read_first(resumed, scratch) & left
    checkpoint = _name(stops[0].checkpoint, scratch)
    return _with(
        run,
        Restart(
            checkpoint=checkpoint,
            steps_before=max(event.steps for event in stops),
            steps_after=_steps(resumed),
            command=resume,
            reason="" if read else NOT_READ,
        ),
    )


def _with(run: FinishedRun, restart: Restart) -> FinishedRun:
    return dataclasses.replace(run, restart=restart)


def _read_first(files: tuple[EventFile, ...], scratch: Path) -> set[str]:
    """Return the files that were read before the process wrote them itself."""
    found: set[str] = set()
    wrote: set[str] = set()
    for _, event in events_of(files, Open):
        name = _name(event.path, scratch)
        if event.mode == "write":
            wrote.add(name)
        elif name not in wrote:
            found.add(name)
    return found


def _name(path: str, scratch: Path) -> str:
    real = Path(path).resolve()
    return real.relative_to(scratch).as_posix() if real.is_relative_to(scratch) else ""


def _steps(files: tuple[EventFile, ...]) -> int:
    return max((event.steps for _, event in events_of(files, Phases)), default=0)
