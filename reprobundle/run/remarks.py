"""What a run showed that a reader must know before trusting its record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from reprobundle.format.record import Process, Remark, is_chosen_seed
from reprobundle.run.accessed import Accesses
from reprobundle.run.events import (
    CellError,
    EventFile,
    FactEvent,
    Network,
    Seed,
    Trouble,
    WarningEvent,
)
from reprobundle.run.facts import events_of
from reprobundle.run.launch import Launched
from reprobundle.run.paths_in_text import replace_all

MOST_OF_ONE_KIND = 20

_THREAD_FAILED = "ThreadException"


def of_run(
    files: tuple[EventFile, ...],
    launched: Launched,
    processes: tuple[Process, ...],
    access: Accesses,
    hide: list[tuple[str, str]],
    *,
    seed: int | None,
) -> tuple[Remark, ...]:
    """Return all remarks about a run, most serious kinds first.

    Args:
        files: Events of all processes.
        launched: How the command ended.
        processes: As recorded.
        access: Files read and written.
        hide: Pairs of text and replacement applied to every text.
        seed: Seed that was set before the user's code, or None.
    """
    found = [
        *limited(_not_entered(processes, launched)),
        *limited(_masked_failures(processes, launched)),
        *limited(_failed_cells(files, launched)),
        *limited(_failed_threads(files, launched)),
        *limited(_wrote_elsewhere(access)),
        *limited(_read_elsewhere(access)),
        *_left_out(access),
        *limited(_network(files)),
        *limited(_without_end(processes, launched)),
        *limited(_incomplete_processes(files, processes)),
        *limited(_troubles(files)),
        *limited(_warnings(files)),
        *_without_effect(files),
    ]
    chosen = any(
        is_chosen_seed(event.function, event.value, event.where, event.drawn)
        for _, event in events_of(files, Seed)
    )
    if seed is None and not chosen:
        found.append(
            Remark(
                id="no-seed",
                severity="gap",
                text="no seed was set by the command or with --seed",
            )
        )
    return tuple(
        Remark(
            id=remark.id,
            severity=remark.severity,
            where=replace_all(remark.where, hide),
            text=replace_all(remark.text, hide),
        )
        for remark in found
    )


def limited(remarks: Iterable[Remark]) -> Iterator[Remark]:
    """Yield the first remarks of one kind, and how many more there are."""
    kept = list(remarks)
    yield from kept[:MOST_OF_ONE_KIND]
    if len(kept) > MOST_OF_ONE_KIND:
        yield Remark(
            id=kept[0].id,
            severity=kept[0].severity,
            text=f"and {len(kept) - MOST_OF_ONE_KIND} more of this kind",
        )


def _not_entered(
    processes: tuple[Process, ...], launched: Launched
) -> Iterator[Remark]:
    for process in processes:
        if not process.entered:
            yield Remark(
                id="python-not-entered",
                severity="warning",
                where=" ".join(process.argv)[:200],
                text="a Python process ran without the recorder; what it read, seeded "
                "and warned about is not known",
            )
    if not any(process.entered for process in processes):
        yield Remark(
            id="nothing-entered",
            severity="failure",
            text="the recorder entered no Python process of the command",
        )
    if not launched.watched:
        yield Remark(
            id="processes-not-watched",
            severity="gap",
            text="this system offers no way to watch the process tree; Python "
            "processes started by other programs are not counted",
        )


def _masked_failures(
    processes: tuple[Process, ...], launched: Launched
) -> Iterator[Remark]:
    if launched.exit_status != 0:
        return
    for process in processes:
        if process.exit_status and process.kind in {"main", "python"}:
            yield Remark(
                id="masked-failure",
                severity="warning",
                where=" ".join(process.argv)[:200],
                text=f"the command ended with status 0 although this Python process "
                f"ended with status {process.exit_status}",
            )


def _failed_cells(files: tuple[EventFile, ...], launched: Launched) -> Iterator[Remark]:
    if launched.exit_status != 0:
        return
    for _, event in events_of(files, CellError):
        yield Remark(
            id="cell-failed",
            severity="warning",
            where=event.where,
            text=f"a notebook cell ended with {event.type}: {event.message}, and the "
            "command with status 0"[:400],
        )


def _failed_threads(
    files: tuple[EventFile, ...], launched: Launched
) -> Iterator[Remark]:
    if launched.exit_status != 0:
        return
    for _, event in events_of(files, WarningEvent):
        if event.category == _THREAD_FAILED:
            yield Remark(
                id="thread-failed",
                severity="warning",
                where=event.where,
                text=f"{event.message}, and the command ended with status 0"[:400],
            )


def _wrote_elsewhere(access: Accesses) -> Iterator[Remark]:
    for path in sorted(access.wrote_original):
        yield Remark(
            id="wrote-original-project",
            severity="failure",
            where=str(path),
            text="the run wrote into the original project instead of its copy",
        )
    for path in sorted(access.wrote_outside):
        yield Remark(
            id="wrote-outside-project",
            severity="warning",
            where=_home(path),
            text="the run wrote outside the project; this file is not part of the "
            "outputs",
        )


def _read_elsewhere(access: Accesses) -> Iterator[Remark]:
    for path in sorted(access.read_original):
        yield Remark(
            id="read-original-project",
            severity="warning",
            where=str(path),
            text="the run read from the original project by an absolute path",
        )
    for path in sorted(access.read_outside):
        yield Remark(
            id="read-outside-project",
            severity="warning",
            where=_home(access.opened_as.get(path, path)),
            text="the run read a file outside the project",
        )


def _left_out(access: Accesses) -> Iterator[Remark]:
    """Yield how many files of tools were read: no inputs, but said."""
    if access.left_out:
        folders = sorted({_home(path.parent) for path in access.left_out})
        more = f" and {len(folders) - 3} more folders" if len(folders) > 3 else ""
        yield Remark(
            id="tool-files-left-out",
            severity="gap",
            where=f"{', '.join(folders[:3])}{more}",
            text=f"files read: {len(access.left_out)}; they are a tool's own cache, "
            "settings or credentials by their names, and are not recorded as inputs",
        )


def _network(files: tuple[EventFile, ...]) -> Iterator[Remark]:
    for target in sorted({event.target for _, event in events_of(files, Network)}):
        yield Remark(
            id="network-used",
            severity="warning",
            where=target,
            text="the run used the network; what it fetched is not in the bundle",
        )


def _without_end(
    processes: tuple[Process, ...], launched: Launched
) -> Iterator[Remark]:
    """Yield the processes that were killed, or still ran when the command ended.

    Behind a success that is a warning, but for the workers of a pool, which whoever
    started them ends so.
    """
    masked = launched.exit_status == 0
    for process in processes:
        if process.entered and not process.ended and process.kind in {"main", "python"}:
            is_worker = "--multiprocessing-fork" in process.argv
            yield Remark(
                id="process-without-end",
                severity="warning" if masked and not is_worker else "gap",
                where=" ".join(process.argv)[:200],
                text="this Python process did not report its end"
                + (", and the command ended with status 0" if masked else "")
                + "; what it would have reported there is missing",
            )


def _incomplete_processes(
    files: tuple[EventFile, ...], processes: tuple[Process, ...]
) -> Iterator[Remark]:
    unknown = [
        process
        for process in processes
        if process.ended
        and process.exit_status is None
        and process.kind in {"main", "python"}
        # One that went on as another program has no end of its own.
        and [other.pid for other in processes].count(process.pid) == 1
    ]
    for process in unknown:
        yield Remark(
            id="exit-status-unknown",
            severity="gap",
            where=" ".join(process.argv)[:200],
            text="this Python process ended without an error that was seen, and "
            "whoever started it knows its exit status, not the recorder",
        )
    for file in files:
        if file.damaged_lines:
            yield Remark(
                id="events-damaged",
                severity="gap",
                where=" ".join(file.start.argv)[:200],
                text=f"{file.damaged_lines} event lines could not be read",
            )


def _troubles(files: tuple[EventFile, ...]) -> Iterator[Remark]:
    for _, event in events_of(files, Trouble):
        yield Remark(
            id="recorder-trouble",
            severity="gap",
            where=event.part,
            text=f"a part of the recorder failed: {event.message}"[:400],
        )


def _warnings(files: tuple[EventFile, ...]) -> Iterator[Remark]:
    seen = set()
    for _, event in events_of(files, WarningEvent):
        key = (event.category, event.message, event.where)
        if key not in seen and event.category != _THREAD_FAILED:
            seen.add(key)
            yield Remark(
                id="python-warning",
                severity="gap",
                where=event.where,
                text=f"{event.category}: {event.message}"[:400],
            )


# Named in pull requests and answers, read by no release of torch (pytorch#182648).
_READ_BY_NOBODY = ("PYTORCH_MPS_ALLOC_CONF", "PYTORCH_MPS_GRAPH_CACHE_POLICY")


def _without_effect(files: tuple[EventFile, ...]) -> Iterator[Remark]:
    known = {
        event.name
        for _, event in events_of(files, FactEvent)
        if event.value is not None
    }
    for name in _READ_BY_NOBODY:
        if f"env.{name}" in known:
            yield Remark(
                id="variable-without-effect",
                severity="gap",
                where=name,
                text="it is set, and no release of torch reads it",
            )


def _home(path: Path) -> str:
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)
