"""What a float64 run promoted, and what it did not reach."""

import msgspec

from reprobundle.run.events.base import Event


class LeftEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Calls that were not promoted; fields as in `record.LeftOperator`."""

    operator: str
    why: str
    count: int


class Promoted(Event, frozen=True, tag="promoted"):
    """The account of one process so far; the last such event of a process counts."""

    operators: int
    entered: int
    draws: int
    left: tuple[LeftEvent, ...] = ()
