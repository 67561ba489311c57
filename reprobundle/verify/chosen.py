"""Which replays the caller asks about, and which record belongs to which."""

from __future__ import annotations

from collections.abc import Sequence

from reprobundle.errors import BadCallError
from reprobundle.format.record import Record
from reprobundle.verify.claims import Replay

SHORTEST_ID = 8


def named(replays: Sequence[Replay], wanted: str | None) -> list[Replay]:
    """Return the replay whose id is `wanted` or starts so; without a wish, all.

    Raises:
        BadCallError: None or several do, or `wanted` has fewer than eight digits.
    """
    if wanted is None:
        return list(replays)
    found = [one for one in replays if one.id.startswith(wanted.lower())]
    if len(wanted) < SHORTEST_ID or len(found) != 1:
        known = ", ".join(one.id[:12] for one in replays) or "none"
        raise BadCallError(
            f"{len(found)} replays match {wanted!r}",
            advice=f"give at least {SHORTEST_ID} digits of one of: {known}",
        )
    return found


def records_before(replays: Sequence[Replay], one: Replay) -> list[Record]:
    """Return the records that were attached before `one`, in the order of `replays`."""
    ids = [other.id for other in replays]
    earlier = replays[: ids.index(one.id)]
    return [other.record for other in earlier]


def traced_with(replays: Sequence[Replay], one: Replay) -> Record | None:
    """Return the evidence pass of the same file and occasion as `one`."""
    for other in replays:
        is_evidence = other.record.pass_name == "evidence"
        if is_evidence and other.group == one.group and other.source is one.source:
            return other.record
    return None
