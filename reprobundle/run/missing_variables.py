"""Name the author's variables that a command reads and a replay does not have."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from reprobundle.format.record import Command, Remark
from reprobundle.run.command import replay_base
from reprobundle.run.events import EventFile, VariableEvent
from reprobundle.run.facts import events_of

NOT_IN_BUNDLE = "variable-not-in-bundle"
COPIED = "environment-copied"
_READ = "the command read "

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
    if not dropped:
        return
    told: set[str] = set()
    for _, event in events_of(files, VariableEvent):
        known = event.name or event.where
        if known in told or _is_set(event.name, command.argv):
            continue
        if event.name in dropped or not event.name:
            told.add(known)
            yield _of_one(event) if event.name else _of_all(event)


def names_missing(remarks: Iterable[Remark]) -> tuple[str, ...]:
    """Return the variables that the project's code read and a replay lacks."""
    return tuple(
        remark.text.partition(_READ)[2].partition(",")[0]
        for remark in remarks
        if remark.id == NOT_IN_BUNDLE and remark.text.startswith(_READ)
    )


def as_settled(remark: Remark) -> Remark:
    """Return a remark as it stands once a pass without the variables gave the same."""
    if remark.id != COPIED:
        return remark
    return msgspec.structs.replace(
        remark,
        severity="gap",
        text=f"{remark.text}; the repeat pass ran without them and gave the same",
    )


def _of_one(event: VariableEvent) -> Remark:
    name = event.name
    advice = (
        f"its value is not in the bundle, and a replay runs without it; "
        f"-- env {name}=VALUE COMMAND makes it part of the command"
    )
    if _is_package(event.where):
        return Remark(
            id="variable-read-by-package",
            severity="gap",
            where=event.where,
            text=f"an installed package read {name}, which was set here: {advice}",
        )
    return Remark(
        id=NOT_IN_BUNDLE,
        severity="warning",
        where=event.where,
        text=f"{_READ}{name}, which was set here: {advice}",
    )


def _of_all(event: VariableEvent) -> Remark:
    return Remark(
        id=COPIED,
        severity="gap" if _is_package(event.where) else "warning",
        where=event.where,
        text="all variables of the environment were copied or gone through there: "
        "which of them the result hangs on is not known, and a replay has few of them",
    )


def _is_package(where: str) -> bool:
    return "/site-packages/" in where or "/dist-packages/" in where


def _is_set(name: str, argv: tuple[str, ...]) -> bool:
    """Tell whether the launcher or the command sets a variable, as ``NAME=VALUE``."""
    if not name:
        return False
    given = re.compile(rf"(?<![\w-]){re.escape(name)}=")
    return bool(_SET_BY_US.fullmatch(name)) or any(map(given.search, argv))
