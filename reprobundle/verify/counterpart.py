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
from reprobundle.verify.sealed import REFERENCE_RUN, Sealed


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
    if named is None or named.role not in ("reference", "counterpart"):
        return Against(replay.runs if named else 0, named, found)
    by_device = {REFERENCE_RUN: sealed.reference, **dict(sealed.counterparts)}
    used = device_of(replay)
    number = next(
        (one for one, run in by_device.items() if device_of(run) == used),
        REFERENCE_RUN,
    )
    record = by_device[number]
    if len(by_device) == 1:
        return Against(number, record, found)
    kind = device_of(record)
    note = f"judged against the sealed run on {kind}"
    if kind != used:
        note = f"no run on {used} is sealed: {note}"
    return Against(
        number,
        record,
        finding("same-run", "pass", note, where=f"runs/{number}", got=kind),
    )
