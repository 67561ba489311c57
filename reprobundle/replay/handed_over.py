"""What a hand-off has to say in the records of a replay that it started.

`handoff` leaves a file of notes beside the run and names it in a variable: earlier
attempts that came to nothing, an environment that changed since, a policy that was
overridden.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from reprobundle.format.record import Remark

VARIABLE = "REPROBUNDLE_HANDOFF"
OVERRIDDEN = "handoff-policy-overridden"


class _Note(msgspec.Struct):
    id: str
    text: str
    where: str = ""


class _Notes(msgspec.Struct):
    notes: tuple[_Note, ...] = ()


def handoff_remarks(variables: Mapping[str, str]) -> tuple[Remark, ...]:
    """Return one remark for each note; without a hand-off there is none.

    Args:
        variables: Environment of this process.
    """
    path = variables.get(VARIABLE)
    if not path:
        return ()
    try:
        found = msgspec.json.decode(Path(path).read_bytes(), type=_Notes)
    except (OSError, msgspec.DecodeError) as error:
        lost = f"what the hand-off noted cannot be read: {type(error).__name__}"
        return (Remark(id="handoff-notes-lost", severity="gap", text=lost),)
    return tuple(
        Remark(
            id=one.id,
            severity="warning" if one.id == OVERRIDDEN else "gap",
            where=one.where,
            text=one.text,
        )
        for one in found.notes
    )
