"""What a float64 run promoted, from the events of its processes."""

from __future__ import annotations

from reprobundle.format.record import LeftOperator, Promotion
from reprobundle.run.events import EventFile, FactEvent, Promoted, Trouble


def promotion(files: tuple[EventFile, ...]) -> Promotion:
    """Return the sum over all processes of a float64 run.

    Args:
        files: Events of all processes, oldest first.
    """
    accounts = [found for found in map(_last, files) if found is not None]
    left: dict[tuple[str, str], int] = {}
    for one in (left for account in accounts for left in account.left):
        key = (one.operator, one.why)
        left[key] = left.get(key, 0) + one.count
    for why in filter(None, map(_unpromoted, files)):
        left["", why] = left.get(("", why), 0) + 1
    return Promotion(
        operators=sum(one.operators for one in accounts),
        entered=sum(one.entered for one in accounts),
        draws=sum(one.draws for one in accounts),
        left=tuple(
            LeftOperator(operator=operator, why=why, count=count)
            for (operator, why), count in sorted(left.items())
        ),
    )


def _unpromoted(file: EventFile) -> str:
    """Return why a process that loaded torch promoted nothing; empty if it did."""
    for event in file.events:
        if isinstance(event, Trouble) and event.part in ("truth", "torch"):
            return f"the promotion failed: {event.message}"[:200]
    loaded = any(
        isinstance(event, FactEvent) and event.name == "torch.version"
        for event in file.events
    )
    if loaded and _last(file) is None:
        return "a process loaded torch and promoted nothing"
    return ""


def _last(file: EventFile) -> Promoted | None:
    events = [event for event in file.events if isinstance(event, Promoted)]
    return events[-1] if events else None
