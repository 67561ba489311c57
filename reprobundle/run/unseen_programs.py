"""Programs of a run that are not Python: what they read, nobody sees."""

from __future__ import annotations

from collections.abc import Iterator

from reprobundle.format.record import Process, Remark
from reprobundle.run.events import Child, EventFile
from reprobundle.run.launch import Launched
from reprobundle.run.watch import is_python

LISTED = 8


def programs_not_seen(
    files: tuple[EventFile, ...],
    launched: Launched,
    processes: tuple[Process, ...],
    argv: tuple[str, ...],
) -> Iterator[Remark]:
    """Yield the gap that programs which are not Python leave in the record.

    Known are the command itself and what entered Python processes started; what such
    a program starts in turn is part of the same gap.

    Args:
        files: Events of all processes.
        launched: How the command ended.
        processes: As recorded.
        argv: The command as recorded.
    """
    found = {
        _name(event.executable)
        for file in files
        for event in file.events
        if isinstance(event, Child)
        and not is_python(event.executable)
        and not _became_python(event, file.start.pid, processes)
    }
    pids = {process.pid for process in processes}
    if argv and launched.pid not in pids and not is_python(argv[0]):
        found.add(_name(argv[0]))
    if found:
        names = sorted(found)
        more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
        yield Remark(
            id="programs-not-seen",
            severity="gap",
            where=f"{', '.join(names[:LISTED])}{more}",
            text="started, and not Python: the files that such a program reads are "
            "not seen, and are no inputs of this record",
        )


def _became_python(event: Child, parent: int, processes: tuple[Process, ...]) -> bool:
    """Tell whether a started script, such as ``torchrun``, was seen as a Python."""
    name = _name(event.executable)
    return any(
        process.parent_pid == parent
        and any(_name(part) == name for part in process.argv[:2])
        for process in processes
    )


def _name(program: str) -> str:
    return program.rpartition("/")[2]
