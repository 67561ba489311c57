"""Name the author's variables that a command reads and a replay does not have."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from reprobundle.format.record import Command, Remark
from reprobundle.run.command import replay_base
from reprobundle.run.events import EventFile, VariableEvent
from reprobundle.run.facts import events_of

# The launcher sets these by itself, here and at a replay.
_SET_BY_US = re.compile(r"PYTHONPATH|REPROBUNDLE_\w+")


def missing_variables(
    files: tuple[EventFile, ...], command: Command, inherited: Iterable[str]
) -> Iterator[Remark]:
    """Yield a remark for each such variable, without its value.

    Args:
        files: Events of all processes.
        command: As recorded; what it sets itself is no variable of the author's.
        inherited: Names of the variables that the command was started with.
    """
    dropped = set(inherited).difference(
        replay_base(dict.fromkeys(inherited, "")), command.environment
    )
    told: set[str] = set()
    for _, event in events_of(files, VariableEvent):
        name = event.name
        if name not in dropped or name in told or _is_set(name, command.argv):
            continue
        told.add(name)
        yield Remark(
            id="variable-not-in-bundle",
            severity="warning",
            where=event.where,
            text=f"the command read {name}, which was set here: its value is not in "
            f"the bundle, and a replay runs without it; -- env {name}=VALUE COMMAND "
            "makes it part of the command",
        )


def _is_set(name: str, argv: tuple[str, ...]) -> bool:
    """Tell whether the launcher or the command sets a variable, as ``NAME=VALUE``."""
    given = re.compile(rf"(?<![\w-]){re.escape(name)}=")
    return bool(_SET_BY_US.fullmatch(name)) or any(map(given.search, argv))
