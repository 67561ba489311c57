"""What a float64 run promoted, from the events of its processes."""

from __future__ import annotations

from reprobundle.format.record import LeftOperator, Promotion
from reprobundle.run.events import EventFile, Promoted


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
    return Promotion(
        operators=sum(one.operators for one in accounts),
        entered=sum(one.entered for one in accounts),
        draws=sum(one.draws for one in accounts),
        left=tuple(
            LeftOperator(operator=operator, why=why, count=count)
            for (operator, why), count in sorted(left.items())
        ),
    )


def _last(file: EventFile) -> Promoted | None:
    events = [event for event in file.events if isinstance(event, Promoted)]
    return events[-1] if events else None
