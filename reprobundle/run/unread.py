"""Which files of the project no run was seen to read: to be known, not to be blamed.

A file may still matter: a shell reads its script and a compiler its sources unseen. So
the words are "seen to be read", and files that the command names are not among them.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from reprobundle.format.record import Command, Record
from reprobundle.run.command import PROJECT

_TOP = "project/"


def unread_members(members: Iterable[str], records: Iterable[Record]) -> list[str]:
    """Return the project's files in the bundle that nothing was seen to read.

    Args:
        members: Paths of all members.
        records: Every sealed run.

    Returns:
        Members below ``project/``, sorted. What no run read and was declared as an
        input lies below ``inputs/`` and is not among them.
    """
    needed: set[str] = set()
    for record in records:
        needed.update(read.member for read in record.reads)
        needed.update(f"{_TOP}{source}" for source in record.sources)
        needed.update(f"{_TOP}{name}" for name in _named(record.command))
    return sorted(
        path for path in members if path.startswith(_TOP) and path not in needed
    )


def _named(command: Command) -> set[str]:
    """Return what the arguments may name, as paths below the project."""
    folder = PurePosixPath(command.working_directory)
    words = [word for argument in command.argv for word in argument.split()]
    values = [part.strip("\"'") for word in words for part in word.split("=")]
    return {
        value.removeprefix(f"{PROJECT}/")
        if value.startswith(PROJECT)
        else (folder / value).as_posix()
        for value in values
    }
