"""Turn the events of a run into the parts of its record that are plain facts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

import msgspec

from reprobundle.format.record import (
    ErrorReport,
    Fact,
    Phase,
    Process,
)
from reprobundle.run.events import (
    CellError,
    Child,
    End,
    Error,
    Event,
    EventFile,
    FactEvent,
    Phases,
)
from reprobundle.run.launch import Launched
from reprobundle.run.masking import mask
from reprobundle.run.paths_in_text import replace_all
from reprobundle.run.ranks import part_of, rank_files
from reprobundle.run.watch import is_python

E = TypeVar("E", bound=Event)

# nbclient's CellExecutionError and papermill's PapermillExecutionError.
NOTEBOOK_ERROR = "ExecutionError"


def events_of(files: Iterable[EventFile], kind: type[E]) -> Iterator[tuple[int, E]]:
    """Yield ``(pid, event)`` for every event of `kind`, process by process."""
    for file in files:
        for event in file.events:
            if isinstance(event, kind):
                yield file.start.pid, event


def environment(files: tuple[EventFile, ...]) -> dict[str, Fact]:
    """Return the facts of the main process, completed from the other ones.

    A launcher such as torchrun imports no torch itself, so a fact that only a later
    process could read is taken from there.
    """
    facts: dict[str, Fact] = {}
    for _, event in events_of(files, FactEvent):
        fact = Fact(value=event.value, unknown=event.unknown, source=event.source)
        known = facts.get(event.name)
        if known is None or (known.unknown and not fact.unknown):
            facts[event.name] = fact
    return dict(sorted(facts.items()))


def processes(files: tuple[EventFile, ...], launched: Launched) -> tuple[Process, ...]:
    """Return the processes that were entered, and the Pythons that were not."""
    ranks = rank_files(files)
    entered = [
        msgspec.structs.replace(
            _entered(file, launched), part=part_of(file, files, ranks)
        )
        for file in files
    ]
    known = {process.pid for process in entered}
    missed = [
        Process(
            pid=seen.pid,
            parent_pid=seen.parent_pid,
            argv=seen.argv,
            kind="python",
            entered=False,
        )
        for seen in launched.pythons
        if seen.pid not in known
    ]
    if not launched.watched:
        missed.extend(_missing_children(files))
    return (*entered, *missed)


def _entered(file: EventFile, launched: Launched) -> Process:
    ends = [event for event in file.events if isinstance(event, End)]
    # The launcher knows it of the command itself, the C library of most others. The
    # recorder alone cannot tell a bare ``raise SystemExit`` from a plain end.
    known = ends[-1].exit_status if ends else None
    if file.exit_status is not None:
        known = file.exit_status
    if file.start.pid == launched.pid:
        known = launched.exit_status
    return Process(
        pid=file.start.pid,
        parent_pid=file.start.parent_pid,
        kind=file.start.kind,
        argv=file.start.argv,
        entered=True,
        ended=bool(ends),
        exit_status=known,
    )


def _missing_children(files: tuple[EventFile, ...]) -> Iterator[Process]:
    """Yield the Pythons that entered processes started but that left no events."""
    for file in files:
        started = [
            event
            for event in file.events
            if isinstance(event, Child) and is_python(event.executable)
        ]
        arrived = sum(
            other.start.parent_pid == file.start.pid and other.start.kind != "fork"
            for other in files
        )
        for event in started[arrived:]:
            yield Process(
                pid=0, parent_pid=file.start.pid, argv=event.argv, entered=False
            )


def phases(files: tuple[EventFile, ...]) -> tuple[tuple[Phase, ...], int]:
    """Return the phases of the process that did most steps, and that number."""
    best: Phases | None = None
    for file in files:
        totals = [event for event in file.events if isinstance(event, Phases)]
        if totals and (best is None or totals[-1].steps > best.steps):
            best = totals[-1]
    if best is None:
        return (), 0
    return (
        tuple(Phase(**msgspec.structs.asdict(phase)) for phase in best.phases),
        best.steps,
    )


def error(
    files: tuple[EventFile, ...], hide: list[tuple[str, str]]
) -> ErrorReport | None:
    """Return the error that ended the run: the main process's, else the first one.

    Args:
        files: Events of all processes.
        hide: Pairs of text and replacement applied to every text, such as the
            scratch folder and ``{project}``.
    """
    found = list(events_of(files, Error))
    # What runs a notebook fails with a text about the cell; the cell's own error is
    # the one to compare.
    cells = list(events_of(files, CellError))
    if not found and not cells:
        return None
    main = files[0].start.pid
    own = next((event for pid, event in found if pid == main), None)
    if cells and (own is None or own.type.endswith(NOTEBOOK_ERROR)):
        return _error_report(cells[-1][1], hide)
    return _error_report(own or found[0][1], hide)


def _error_report(event: Error | CellError, hide: list[tuple[str, str]]) -> ErrorReport:
    message = replace_all(event.message, hide)
    return ErrorReport(
        type=event.type,
        message=message,
        masked=mask(message),
        where=replace_all(event.where, hide),
        traceback=replace_all(event.traceback, hide),
        steps=event.steps,
    )
