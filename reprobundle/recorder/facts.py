"""Send facts: a value with its source, or the reason why it is unknown."""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from .session import Session

    # Name, source, and what reads the value.
    Probe = tuple[str, str, Callable[[], Any]]

_LONGEST_TEXT = 4000
_MOST_ITEMS = 256


class UnknownFactError(Exception):
    """A probe found out why its fact cannot be known here."""


def send(session: Session, probes: Iterable[Probe]) -> dict[str, object]:
    """Send one fact for each probe, in one write, and return the known values.

    Where the probes themselves cannot be had any more, those before are sent, and the
    session is told.
    """
    events: list[dict[str, object]] = []
    try:
        # What was read before one fails stays in the list.
        events.extend(_event(*probe) for probe in probes)
    except Exception as error:
        session.trouble("facts", error)
    if events:
        session.emit_all(events)
    return {
        str(event["name"]): event["value"]
        for event in events
        if event["value"] is not None
    }


def _event(name: str, source: str, read: Callable[[], Any]) -> dict[str, object]:
    value, unknown = measured(read)
    return {
        "event": "fact",
        "name": name,
        "value": value,
        "unknown": unknown,
        "source": source,
    }


def measured(read: Callable[[], Any]) -> tuple[object, str]:
    """Return the value of a probe, or None and one line that says why not."""
    try:
        value = _plain(read())
    except UnknownFactError as error:
        return None, str(error)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        # Not only exceptions proper: a panic in a Rust extension is none of them.
        line = " ".join(f"{type(error).__qualname__}: {error}".split())
        return None, line[:300]
    return (value, "") if value is not None else (None, "not available here")


def _plain(value: Any) -> object:
    """Return `value` in a form a fact may have."""
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, int):
        # The reader takes 64 bits; larger numbers stay exact as text.
        return int(value) if -(2**63) <= value < 2**63 else str(value)
    if isinstance(value, (list, tuple)):
        return [str(item)[:_LONGEST_TEXT] for item in value[:_MOST_ITEMS]]
    return str(value)[:_LONGEST_TEXT]
