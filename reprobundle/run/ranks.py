"""The ranks of a distributed run, from the events of its processes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from reprobundle.format.record import Rank
from reprobundle.run.events import (
    AnyEvent,
    Cell,
    End,
    EventFile,
    FactEvent,
    Open,
    Parameters,
    Phases,
    RankEvent,
    Seed,
    Value,
)

E = TypeVar("E", bound=AnyEvent)


def rank_files(files: tuple[EventFile, ...]) -> dict[int, EventFile]:
    """Return the process of each rank, by rank.

    What a rank starts inherits its variables: of several processes that name one
    rank, the one that joined the process group counts, else the first.
    """
    found: dict[int, EventFile] = {}
    for file in files:
        told = _rank(file)
        if told is None:
            continue
        known = found.get(told.rank)
        if known is None or (_joined(file) and not _joined(known)):
            found[told.rank] = file
    return dict(sorted(found.items()))


def ranks(files: tuple[EventFile, ...], scratch: Path) -> tuple[Rank, ...]:
    """Return what each rank did, by rank.

    Args:
        files: Events of all processes.
        scratch: Outputs are named relative to it.
    """
    found = rank_files(files)
    return tuple(
        _described(file, scratch, several=len(found) > 1) for file in found.values()
    )


def value_names(files: tuple[EventFile, ...]) -> dict[tuple[int, str], str]:
    """Return the output name of each recorded value, by process id and given name.

    Ranks run one script and record under one name: theirs become ``rank0/loss``,
    ``rank1/loss``. Other processes that happen to use one name are told apart by a
    number, as within one process.
    """
    found = rank_files(files)
    number = {file.start.pid: rank for rank, file in found.items()}
    names: dict[tuple[int, str], str] = {}
    used: set[str] = set()
    for file in files:
        for event in _all(file, Value):
            own = event.name
            if file.start.pid in number and len(found) > 1:
                own = f"rank{number[file.start.pid]}/{own}"
            unique, count = own, 1
            while unique in used:
                count += 1
                unique = f"{own}@{count}"
            used.add(unique)
            names[file.start.pid, event.name] = unique
    return names


def part_of(
    file: EventFile, files: tuple[EventFile, ...], found: dict[int, EventFile]
) -> str:
    """Return what a process was for, as in `Process`."""
    ranked = [other.start for other in found.values()]
    if any(start.pid == file.start.pid for start in ranked):
        return "rank"
    if any(start.parent_pid == file.start.pid for start in ranked):
        return "agent"
    return "kernel" if any(_all(file, Cell)) else ""


def _described(file: EventFile, scratch: Path, *, several: bool) -> Rank:
    told = _rank(file)
    assert told is not None  # noqa: S101 - rank_files chose this file by it
    parameters = list(_all(file, Parameters))
    last = parameters[-1] if parameters else None
    phases = list(_all(file, Phases))
    return Rank(
        rank=told.rank,
        world_size=told.world_size,
        local_rank=told.local_rank,
        pid=file.start.pid,
        joined=_joined(file),
        ended=any(_all(file, End)),
        steps=phases[-1].steps if phases else 0,
        torch_version=_torch_version(file),
        parameters={event.when: event.digest for event in parameters if event.digest},
        parameters_reason=last.reason if last else "it reported none",
        seeds=tuple(f"{seed.function}({seed.value})" for seed in _all(file, Seed)),
        outputs=(*_written(file, scratch), *_recorded(file, told, several=several)),
    )


def _written(file: EventFile, scratch: Path) -> tuple[str, ...]:
    names = {
        Path(event.path).relative_to(scratch).as_posix()
        for event in _all(file, Open)
        if event.mode == "write" and Path(event.path).is_relative_to(scratch)
    }
    return tuple(sorted(name for name in names if (scratch / name).is_file()))


def _recorded(file: EventFile, told: RankEvent, *, several: bool) -> tuple[str, ...]:
    prefix = f"rank{told.rank}/" if several else ""
    return tuple(f"record:{prefix}{event.name}" for event in _all(file, Value))


def _torch_version(file: EventFile) -> str:
    known = [
        event.value
        for event in _all(file, FactEvent)
        if event.name == "torch.version" and not event.unknown
    ]
    return str(known[0]) if known else ""


def _rank(file: EventFile) -> RankEvent | None:
    told = list(_all(file, RankEvent))
    return told[-1] if told else None


def _joined(file: EventFile) -> bool:
    return any(event.how == "process group" for event in _all(file, RankEvent))


def _all(file: EventFile, kind: type[E]) -> Iterable[E]:
    return (event for event in file.events if isinstance(event, kind))
