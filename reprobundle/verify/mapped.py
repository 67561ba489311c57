"""Whether a run was made with CUDA's calls mapped to another device (V15)."""

from __future__ import annotations

from reprobundle.format.findings import Finding
from reprobundle.format.record import MappedCall, Record
from reprobundle.verify.checks import finding

MOST_NAMED = 3
_REFUSED = "refused"


def check_mapped(reference: Record, replay: Record) -> Finding:
    """Return whether either run was a mapped one, and what was mapped.

    Args:
        reference: The sealed run.
        replay: The replay.
    """
    sides = [
        (side, record)
        for side, record in (("the replay", replay), ("the reference", reference))
        if record.devices.mapping or record.devices.mapped
    ]
    if not sides:
        return finding("device-mapped", "pass")
    texts = [f"{side} was made with {_option(record)}" for side, record in sides]
    texts[0] += f": {_told(sides[0][1])}"
    mapped = replay.devices.mapped or reference.devices.mapped
    return finding(
        "device-mapped",
        "warn",
        "; ".join(texts),
        where=mapped[0].where if mapped else "",
        got=replay.devices.mapping or "not mapped",
        advice="replay on CUDA, or have the command take its device from {device}",
    )


def _option(record: Record) -> str:
    return f"--map-device {record.devices.mapping or '(not named)'}"


def _told(record: Record) -> str:
    """Return how many calls were mapped, and the most frequent of them."""
    mapped = record.devices.mapped
    if not mapped:
        return "no call named CUDA"
    calls = _counted(sum(one.count for one in mapped), "call")
    places = _counted(len({one.where for one in mapped}), "place")
    ordered = sorted(mapped, key=lambda one: (one.became != _REFUSED, -one.count))
    named = ", ".join(_call(one) for one in ordered[:MOST_NAMED])
    more = len(ordered) - MOST_NAMED
    rest = f" and {more} more" if more > 0 else ""
    return f"{calls} at {places} ({named}{rest})"


def _call(one: MappedCall) -> str:
    asked = f"({one.asked})" if one.asked else ""
    place = f" at {one.where}" if one.where else ""
    return (
        f"{one.call}{asked} became {one.became}{place}, {_counted(one.count, 'time')}"
    )


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
