"""How the random draws of a run were made, from the events of its processes."""

from __future__ import annotations

from pathlib import Path

from reprobundle.format.record import Drawn
from reprobundle.run.events import DrawnEvent, EventFile

MEMBER = "draws.safetensors"
FINGERPRINTS = "fingerprints.jsonl"


def drawn(files: tuple[EventFile, ...]) -> Drawn:
    """Return how draws were made: the first process's account, sums over all.

    Args:
        files: Events of all processes, oldest first.
    """
    accounts = [found for found in map(_last, files) if found is not None]
    if not accounts:
        return Drawn()
    first = accounts[0]
    return Drawn(
        mode=first.mode,
        moved=sum(one.moved for one in accounts),
        followed=first.followed,
        taken=first.taken,
        differing=first.differing,
        missing=first.missing,
        stopped=first.stopped,
        kept=first.kept,
        complete=first.complete,
        member=MEMBER if first.file else "",
        on_device=tuple(sorted({name for one in accounts for name in one.on_device})),
    )


def kept_draws(files: tuple[EventFile, ...], values: Path) -> dict[str, Path]:
    """Return the member with the kept draws and its file, if there is one.

    Args:
        files: Events of all processes, oldest first.
        values: Folder of the files that the recorder wrote.
    """
    accounts = [found for found in map(_last, files) if found is not None]
    if not accounts or not accounts[0].file:
        return {}
    return {MEMBER: values / accounts[0].file}


def fingerprints(values: Path) -> dict[str, Path]:
    """Return the member with the fingerprints of a traced run, if there is one."""
    path = values / FINGERPRINTS
    return {FINGERPRINTS: path} if path.is_file() else {}


def _last(file: EventFile) -> DrawnEvent | None:
    events = [event for event in file.events if isinstance(event, DrawnEvent)]
    return events[-1] if events else None
