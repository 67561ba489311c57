"""Where a run's tensors were, and what was seen of CPU fallback."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from reprobundle.format.record import (
    BadIndex,
    Devices,
    Fact,
    Fallback,
    MappedCall,
    OperatorUse,
    Transfer,
    Witness,
)
from reprobundle.run.device_limits import float64_search, operator_forms
from reprobundle.run.events import (
    Device,
    EventFile,
    FallbackEvent,
    IndexRange,
    MappedEvent,
    OperatorEvent,
    TransferEvent,
    WarningEvent,
    WitnessEvent,
)
from reprobundle.run.facts import events_of
from reprobundle.run.paths_in_text import replace_all

DeviceMapping = Literal["", "cuda=cpu", "cuda=mps"]
FallbackState = Literal["none-possible", "none-seen", "seen", "not-checked"]
Hide = list[tuple[str, str]]

# The sentence of aten/src/ATen/mps/MPSFallback.mm, unchanged from torch 2.0 to 2.15.
FALLBACK_WARNING = re.compile(
    r"The operator '(?P<op>[^']+)' is not current(ly)? supported on the MPS backend "
    r"and will fall back"
)
IN_KERNEL_FALLBACK = re.compile(
    r"falling back (to|on) (the )?CPU.*Triggered internally at",
    re.IGNORECASE | re.DOTALL,
)
WITNESSES = ("warnings", "profiler", "census")
LARGEST_STDERR_BYTES = 16 << 20


def devices(
    files: tuple[EventFile, ...],
    facts: dict[str, Fact],
    requested: str,
    *,
    stderr: Path,
    hide: Hide,
    mapping: DeviceMapping = "",
) -> Devices:
    """Return where tensors were seen, and what that says about CPU fallback.

    Args:
        files: Events of all processes.
        facts: Facts of the environment.
        requested: The device asked for.
        stderr: What the command printed; an operator that is called directly warns
            there and nowhere else.
        hide: Pairs of text and replacement applied to every place.
        mapping: As in `Devices`.
    """
    observed = sorted({event.device for _, event in events_of(files, Device)})
    witnesses = tuple(_witnesses(files))
    fallbacks = tuple(_fallbacks(files, stderr, hide))
    state, reason = _state(facts, observed, witnesses, fallbacks)
    return Devices(
        requested=requested,
        observed=tuple(observed),
        fallback=state,
        reason=reason,
        standin=any(name.endswith("-standin") for name in observed)
        or bool(_value(facts, "torch.mps.standin")),
        witnesses=witnesses,
        fallbacks=fallbacks,
        operators=tuple(
            OperatorUse(
                operator=event.operator,
                device=event.device,
                phase=event.phase,
                count=event.count,
                bytes=event.bytes,
                steps=event.steps,
                where=replace_all(event.where, hide),
                refused=event.refused,
                out_of_memory=event.out_of_memory,
            )
            for _, event in events_of(files, OperatorEvent)
        ),
        transfers=tuple(
            Transfer(
                kind=event.kind,
                where=replace_all(event.where, hide),
                non_blocking=event.non_blocking,
                count=event.count,
                bytes=event.bytes,
            )
            for _, event in events_of(files, TransferEvent)
        ),
        bad_indices=tuple(
            BadIndex(
                operator=event.operator,
                where=replace_all(event.where, hide),
                low=event.low,
                high=event.high,
                size=event.size,
            )
            for _, event in events_of(files, IndexRange)
        ),
        float64=float64_search(files, hide),
        forms=operator_forms(files, hide),
        mapping=mapping,
        mapped=tuple(_mapped(files, hide)),
    )


def _mapped(files: tuple[EventFile, ...], hide: Hide) -> Iterator[MappedCall]:
    """Yield the mapped calls of all processes, by place."""
    largest: dict[tuple[int, str, str, str, str], int] = {}
    for pid, event in events_of(files, MappedEvent):
        place = replace_all(event.where, hide)
        key = (pid, event.call, event.asked, event.became, place)
        largest[key] = max(largest.get(key, 0), event.count)
    totals: dict[tuple[str, str, str, str], int] = {}
    for (_, *rest), count in largest.items():
        call, asked, became, where = rest
        totals[call, asked, became, where] = (
            totals.get((call, asked, became, where), 0) + count
        )
    for (call, asked, became, where), count in totals.items():
        yield MappedCall(
            call=call, asked=asked, became=became, where=where, count=count
        )


def _witnesses(files: tuple[EventFile, ...]) -> Iterator[Witness]:
    """Yield each witness once: of several processes, the one with most steps.

    A process whose census is not whole stands before those whose census is.
    """
    best: dict[str, WitnessEvent] = {}
    for file in files:
        events = [event for event in file.events if isinstance(event, WitnessEvent)]
        # The last word counts: a census says at its beginning that it owes one.
        for event in {event.name: event for event in events}.values():
            known = best.get(event.name)
            if known is None or _weight(event) > _weight(known):
                best[event.name] = event
    for name in WITNESSES:
        if name in best:
            event = best[name]
            yield Witness(
                name=event.name,
                looked=event.looked,
                steps=event.steps,
                total_steps=event.total_steps,
                reason=event.reason,
            )


def _weight(event: WitnessEvent) -> tuple[bool, bool, int]:
    counts = event.name == "census"
    return counts and not event.looked, counts and bool(event.reason), event.total_steps


def _fallbacks(
    files: tuple[EventFile, ...], stderr: Path, hide: Hide
) -> Iterator[Fallback]:
    found: dict[tuple[int, str, str, str, str], int] = {}
    for pid, event in events_of(files, FallbackEvent):
        key = (pid, event.witness, event.operator, event.where, event.phase)
        found[key] = max(found.get(key, 0), event.count)
    heard = {operator for _, witness, operator, _, _ in found if witness == "warnings"}
    for (_, witness, operator, where, phase), count in found.items():
        yield Fallback(
            witness="warnings" if witness == "warnings" else "profiler",
            operator=operator,
            count=count,
            where=replace_all(where, hide),
            phase=phase,
        )
    shown = {**_warned(files), **_printed(stderr)}
    for operator, count in sorted(shown.items()):
        if operator not in heard:
            yield Fallback(witness="warnings", operator=operator, count=count)


def _warned(files: tuple[EventFile, ...]) -> dict[str, int]:
    """Return what ordinary warnings name, where the witness itself did not listen."""
    counts: dict[str, int] = {}
    for _, event in events_of(files, WarningEvent):
        match = FALLBACK_WARNING.search(event.message)
        if match or IN_KERNEL_FALLBACK.search(event.message):
            name = match["op"] if match else event.message[:200]
            counts[name] = counts.get(name, 0) + 1
    return counts


def _printed(stderr: Path) -> dict[str, int]:
    with stderr.open("rb") as file:
        text = file.read(LARGEST_STDERR_BYTES).decode(errors="replace")
    counts: dict[str, int] = {}
    for match in FALLBACK_WARNING.finditer(text):
        counts[match["op"]] = counts.get(match["op"], 0) + 1
    return counts


def _state(
    facts: dict[str, Fact],
    observed: list[str],
    witnesses: tuple[Witness, ...],
    fallbacks: tuple[Fallback, ...],
) -> tuple[FallbackState, str]:
    if fallbacks:
        names = dict.fromkeys(one.operator for one in fallbacks)
        return "seen", ", ".join(names)[:300]
    on_mps = any(name.startswith("mps") for name in observed)
    if on_mps or _value(facts, "torch.mps.available"):
        looked = {witness.name for witness in witnesses if witness.looked}
        idle = [name for name in WITNESSES if name not in looked]
        if idle:
            return "not-checked", f"did not look in this pass: {', '.join(idle)}"
        return "none-seen", "warnings, profiler and census looked"
    if "torch.version" not in facts:
        return "none-possible", "torch was not imported"
    cause = _value(facts, "torch.mps.missing_cause")
    why = f": {cause}" if cause else ""
    return "none-possible", f"no device with automatic CPU fallback was there{why}"


def _value(facts: dict[str, Fact], name: str) -> object:
    fact = facts.get(name)
    return fact.value if fact else None
