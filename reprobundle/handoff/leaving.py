"""What a hand-off left on the other machine: list it, remove it, look again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reprobundle.errors import EnvironmentUnusableError
from reprobundle.handoff import state as known
from reprobundle.handoff.copying import Say, patiently
from reprobundle.handoff.hand import agent_of
from reprobundle.handoff.state import State
from reprobundle.handoff.wish import BUNDLE_NAME


@dataclass(frozen=True)
class Left:
    """One entry of the folder there.

    Attributes:
        path: Where it is.
        files: How many files it holds.
        size_bytes: Their size.
    """

    path: str
    files: int
    size_bytes: int


def left_there(state: State, *, retries: int, say: Say) -> tuple[Left, ...]:
    """Return what lies in the folder of a hand-off; empty when there is no folder."""
    agent = agent_of(state)
    found: dict[str, Any] = patiently(
        lambda: agent.ask("listing"), retries=retries, say=say
    )
    return tuple(
        Left(one["path"], one["files"], one["size_bytes"]) for one in found["entries"]
    )


def plain_gone(state: State, *, retries: int, say: Say) -> State:
    """Look whether the decrypted bundle is gone there after the run, and note it.

    Nothing is asked of a bundle that did not travel encrypted.
    """
    plain = [
        one.where
        for one in state.places
        if not one.removed and one.where.endswith(f"/{BUNDLE_NAME}")
    ]
    sealed = {one.where for one in state.places if one.kind == "bundle"} - {*plain}
    looked = [one for one in plain if any(it.startswith(f"{one}.") for it in sealed)]
    if not looked:
        return state
    there = {one.path for one in left_there(state, retries=retries, say=say)}
    for where in looked:
        path = where.removeprefix(f"{state.destination}:")
        if path in there:
            say(f"the decrypted bundle is still there: {where}")
        else:
            state = state.without(where)
    return known.save(state)


def leave(state: State, *, retries: int, say: Say) -> State:
    """Remove the folder there, look again over another connection, and note it.

    Raises:
        RefusedThereError: The run has not ended.
        EnvironmentUnusableError: Something is still there.
    """
    agent = agent_of(state)
    done = patiently(lambda: agent.ask("clean"), retries=retries, say=say)
    seen: dict[str, Any] = patiently(
        lambda: agent.ask("listing"), retries=retries, say=say
    )
    if seen["exists"]:
        problems = "; ".join(done["problems"][:3]) or f"{len(seen['entries'])} entries"
        raise EnvironmentUnusableError(
            f"{seen['folder']} on {state.destination} is still there: {problems}",
            advice="remove it by hand, then call clean again",
        )
    return known.save(state.without(f"{state.destination}:{seen['folder']}"))
