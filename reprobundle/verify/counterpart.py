"""Which sealed run a replay is judged against, where there is one for each device.

A bundle may hold the main command's run on several devices. The verifier chooses by the
device that the replay used, whatever its record says: who may choose the reference may
choose the tolerance.
"""

from __future__ import annotations

from typing import NamedTuple

from reprobundle.format.findings import Finding
from reprobundle.format.record import Record
from reprobundle.verify.checks import finding
from reprobundle.verify.devices import device_of
from reprobundle.verify.protocol import sealed_counterpart
from reprobundle.verify.sealed import Sealed


class Against(NamedTuple):
    """The sealed run that a replay stands against.

    Attributes:
        number: Its number; 0 when there is none.
        record: Its record; None when there is none.
        found: The finding about that (V12).
    """

    number: int
    record: Record | None
    found: Finding


def against(replay: Record, sealed: Sealed) -> Against:
    """Return the sealed run of the replay's device, else the one that it names."""
    named, found = sealed_counterpart(replay, sealed.runs)
    if named is None:
        return Against(0, None, found)
    same_pass = _of_every_device(named, sealed)
    if len({device_of(run) for _, run in same_pass}) < 2:
        return Against(replay.runs, named, _elsewhere(replay, named, sealed) or found)
    used = device_of(replay)
    near = [one for one in same_pass if device_of(one[1]) == used] or same_pass[:1]
    chosen = (replay.runs, named)
    number, record = chosen if chosen in near else near[0]
    kind = device_of(record)
    note = f"judged against the sealed run on {kind}"
    if kind != used:
        note = f"no run on {used} is sealed: {note}"
    found = finding("same-run", "pass", note, where=f"runs/{number}", got=kind)
    return Against(number, record, found)


def _of_every_device(named: Record, sealed: Sealed) -> list[tuple[int, Record]]:
    """Return the same pass of the main command on each device, the first one first."""
    of_main = named.claim == sealed.reference.claim
    if named.role not in ("reference", "repeat", "counterpart") or not of_main:
        return []
    if named.pass_name == "measured":
        return list(sealed.mains)
    return [
        one for _, main in sealed.mains for one in sealed.fellows(main, named.pass_name)
    ]


def _elsewhere(replay: Record, named: Record, sealed: Sealed) -> Finding | None:
    """Return a note where only the main command has a run on this device."""
    used, kind = device_of(replay), device_of(named)
    if used == kind or used not in {device_of(one) for _, one in sealed.mains}:
        return None
    note = (
        f"claim {named.claim!r} has no sealed run on {used}: judged against the one "
        f"on {kind}"
    )
    return finding("same-run", "pass", note, where=f"runs/{replay.runs}", got=kind)
