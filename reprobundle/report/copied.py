"""Every place of a copy that this machine knows, for people and programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from reprobundle.handoff.state import State, known
from reprobundle.report import text
from reprobundle.report.handed import is_overdue
from reprobundle.run.copies import Copy, Log


def states_of(bundle: str) -> tuple[State, ...]:
    """Return the hand-offs of one bundle, or all if it is empty."""
    return tuple(one for one in known() if bundle in {"", one.bundle})


def is_any_overdue(log: Log, states: Iterable[State], day: str) -> bool:
    """Whether a copy is there after the last day on which it may be."""
    late = any(one.is_overdue(day) for one in log.copies)
    return late or any(map(is_overdue, states))


def render_copies(log: Log, states: Sequence[State], day: str) -> str:
    """Return one line for each copy, by bundle, those of hand-offs too."""
    lines = list(_lines(log, states, day))
    return "\n".join(text.safe(line) for line in lines)


def _lines(log: Log, states: Sequence[State], day: str) -> Iterator[str]:
    bundles = dict.fromkeys(
        [*(one.bundle for one in log.copies), *(one.bundle for one in states)]
    )
    if not bundles:
        yield "no copy is known: none was noted on this machine"
    for bundle in bundles:
        mine = [one for one in log.copies if one.bundle == bundle]
        kinds = dict.fromkeys(one.data_class for one in mine)
        yield f"bundle {bundle[: text.SHORT_DIGEST]}  {', '.join(kinds)}".rstrip()
        for one in mine:
            yield f"  {one.kind} in {one.where}, made {one.made}: {_state(one, day)}"
            if one.overridden:
                yield f"    policy overridden: {one.overridden}"
        for state in states:
            if state.bundle == bundle:
                yield from _handed(state)
    if log.unread:
        yield f"NOT READ: {text.plural(log.unread, 'line')} of the log"
    yield (
        "not known here: copies that were made by other programs, by other accounts, "
        "or on other machines without handoff"
    )


def _state(one: Copy, day: str) -> str:
    if not one.is_traced:
        return "where it went is not known"
    if one.removed:
        return f"gone since {one.removed}"
    if not one.is_there:
        return "not there any more (removed or moved: not known)"
    if one.is_overdue(day):
        return f"there, and OVERDUE: it had to be gone by {one.delete_by}"
    return f"there, to be gone by {one.delete_by}" if one.delete_by else "there"


def _handed(state: State) -> Iterator[str]:
    for place in state.places:
        end = f"gone since {place.removed}" if place.removed else "there when last seen"
        yield f"  {place.kind} in {place.where}, made {place.made}: {end}"
    if is_overdue(state):
        yield f"    OVERDUE: they had to be gone by {state.delete_by}; reprobundle "
        yield f"    handoff clean {state.name}"


def copies_json(log: Log, states: Iterable[State], day: str) -> str:
    """Return the same for programs."""
    here = [
        {
            "bundle": one.bundle,
            "kind": one.kind,
            "where": one.where,
            "made": one.made,
            "data_class": one.data_class,
            "delete_by": one.delete_by,
            "policy_overridden": one.overridden,
            "removed": one.removed,
            "there": one.is_there if one.is_traced else None,
            "overdue": one.is_overdue(day),
        }
        for one in log.copies
    ]
    document = {"here": here, "handoffs": list(map(_handed_json, states))}
    return json.dumps({**document, "unread_lines": log.unread}, indent=1)


def _handed_json(state: State) -> dict[str, Any]:
    return {
        "name": state.name,
        "bundle": state.bundle,
        "data_class": state.data_class,
        "delete_by": state.delete_by,
        "overdue": is_overdue(state),
        "places": [
            {"kind": one.kind, "where": one.where, "made": one.made}
            | {"removed": one.removed}
            for one in state.places
        ],
    }
