"""Put together who seeded what, and what the random generators were like."""

from __future__ import annotations

from reprobundle.format.record import Loader, Randomness, SeedCall, StartTensor
from reprobundle.run.drawn import drawn
from reprobundle.run.events import (
    Absent,
    Began,
    Beginning,
    EventFile,
    FactEvent,
    Generators,
    LoaderPass,
    Seed,
)
from reprobundle.run.facts import events_of
from reprobundle.run.paths_in_text import replace_all

Hide = list[tuple[str, str]]

MOST_LOADERS = 20
MOST_TENSORS = 4096


def randomness(
    files: tuple[EventFile, ...], seed: int | None, hide: Hide, *, complete: bool
) -> Randomness:
    """Return who seeded what, and the fingerprints of the main process.

    Args:
        files: Events of all processes.
        seed: Seed that was set before the user's code, or None.
        hide: Pairs of text and replacement applied to the places.
        complete: Whether every Python process of the run was entered.
    """
    states = _states(files)
    return Randomness(
        seed=seed,
        calls=_calls(files, hide),
        python_hash_seed=_hash_seed(files),
        initial=states["initial"],
        final=states["final"],
        draws=states["draws"],
        absent=_absent(files) if complete else (),
        loaders=_loaders(files, hide),
        start=_start(files),
        drawn=drawn(files),
    )


def _states(files: tuple[EventFile, ...]) -> dict[str, dict[str, str]]:
    states: dict[str, dict[str, str]] = {"initial": {}, "final": {}, "draws": {}}
    for pid, event in events_of(files, Generators):
        if event.when == "final" and pid != files[0].start.pid:
            continue
        for name, fingerprint in event.fingerprints.items():
            if "#" in name and pid != files[0].start.pid:
                # Each process counts the generators that it makes by itself.
                continue
            states[event.when].setdefault(name, fingerprint)
    return states


def _calls(files: tuple[EventFile, ...], hide: Hide) -> tuple[SeedCall, ...]:
    return tuple(
        SeedCall(
            function=event.function,
            value=event.value,
            where=replace_all(event.where, hide),
            pid=pid,
            drawn=event.drawn,
        )
        for pid, event in events_of(files, Seed)
    )


def _hash_seed(files: tuple[EventFile, ...]) -> str:
    found = (
        event.value
        for _, event in events_of(files, FactEvent)
        if event.name == "env.PYTHONHASHSEED" and event.value is not None
    )
    return str(next(found, ""))


def _absent(files: tuple[EventFile, ...]) -> tuple[str, ...]:
    """Return the modules that every process says it never loaded.

    A process that was killed says nothing, and then nothing is known.
    """
    said: list[set[str]] = []
    for file in files:
        if file.start.kind == "helper":
            continue
        words = [event for event in file.events if isinstance(event, Absent)]
        said.append(set(words[-1].modules) if words else set())
    return tuple(sorted(set.intersection(*said))) if said else ()


def _loaders(files: tuple[EventFile, ...], hide: Hide) -> tuple[Loader, ...]:
    """Return the passes over data loaders of the process that made the first one."""
    for file in files:
        found = [event for event in file.events if isinstance(event, LoaderPass)]
        if found:
            return tuple(
                Loader(
                    where=replace_all(event.where, hide),
                    base_seed=event.base_seed,
                    workers=event.workers,
                    start_method=event.start_method,
                    batch_size=event.batch_size,
                    sampler=event.sampler,
                    generator_seed=event.generator_seed,
                )
                for event in found[:MOST_LOADERS]
            )
    return ()


def _start(files: tuple[EventFile, ...]) -> tuple[StartTensor, ...]:
    """Return what the run began with, each name once.

    The names of a distributed run hold the rank, so no two processes share one; of
    other runs the first process that has any counts.
    """
    found: dict[str, StartTensor] = {}
    plain_seen = False
    for file in files:
        began = [
            tensor
            for event in file.events
            if isinstance(event, Beginning)
            for tensor in event.tensors
        ]
        ranked = bool(began) and all(t.name.startswith("rank") for t in began)
        if not ranked and plain_seen:
            continue
        plain_seen = plain_seen or bool(began and not ranked)
        for tensor in began:
            found.setdefault(tensor.name, _start_tensor(tensor))
    return tuple(found.values())[:MOST_TENSORS]


def _start_tensor(began: Began) -> StartTensor:
    return StartTensor(
        name=began.name,
        kind=began.kind,
        dtype=began.dtype,
        shape=began.shape,
        fingerprint=began.fingerprint,
        sampled=began.sampled,
        l2=began.l2,
        reason=began.reason,
    )
