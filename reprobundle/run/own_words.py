"""What on a command line names this account or machine, and stands for another's there.

A recorded argument has ``{home}`` for the home folder, ``{user}`` for the account in an
absolute path and ``{host}`` for the machine. A command may hold such a text itself (a
format string, ``${user}``), so a record says which of them it put in; no other is ever
replaced.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import get_args

import msgspec

from reprobundle.format.record import Command, Placeholder
from reprobundle.run.command import recorded_argv, replace_words
from reprobundle.run.paths_in_text import replace_all
from reprobundle.run.placeholders import Names

EVERY: tuple[Placeholder, ...] = get_args(Placeholder)


def portable_argv(
    argv: tuple[str, ...], root: Path
) -> tuple[tuple[str, ...], tuple[Placeholder, ...]]:
    """Return arguments as a record stores them, and the placeholders put in.

    Args:
        argv: As typed.
        root: Top of the project.
    """
    return hidden_argv(recorded_argv(argv, root), Names.here())


def hidden_argv(
    argv: Sequence[str], names: Names
) -> tuple[tuple[str, ...], tuple[Placeholder, ...]]:
    """Return arguments without names of the account and machine, and what was put in.

    Args:
        argv: The arguments; those below the project are ``{project}/…`` already.
        names: Of this machine.
    """
    text = "\0".join(argv)
    free = [name for name in EVERY if _marked(name) not in text]
    done = tuple(_hidden(argument, names, free) for argument in argv)
    put_in = tuple(name for name in free if _marked(name) in "\0".join(done))
    return done, put_in


def _hidden(argument: str, names: Names, free: Sequence[Placeholder]) -> str:
    if "home" in free and names.home not in ("", "/"):
        argument = replace_all(argument, [(names.home, _marked("home"))])
    if "host" in free:
        argument = names.without_host(argument)
    if "user" in free:
        argument = names.without_user(argument)
    return argument


def own_words(
    placeholders: Iterable[Placeholder], names: Names | None = None
) -> dict[str, str]:
    """Return what each placeholder stands for on this machine.

    Args:
        placeholders: Those that a command lists.
        names: Of this machine; None to ask for them.
    """
    names = names or Names.here()
    meaning = {"home": names.home, "user": names.user, "host": names.host}
    return {_marked(name): meaning[name] for name in placeholders}


def own_path(origin: str, names: Names | None = None) -> Path:
    """Return where a recorded place outside the project lies on this machine.

    Args:
        origin: A path, ``~`` for the home folder, ``{user}`` and ``{host}`` in it.
        names: Of this machine; None to ask for them.
    """
    known = names or Names.here()
    if origin == "~" or origin.startswith("~/"):
        return Path(known.home) / origin[2:]
    return Path(replace_words(origin, own_words(("user", "host"), known)))


def also_for(command: Command, placeholders: Iterable[Placeholder]) -> Command:
    """Return a command whose arguments may hold further placeholders, as a resume's."""
    every = dict.fromkeys((*command.placeholders, *placeholders))
    return msgspec.structs.replace(command, placeholders=tuple(every))


def _marked(name: str) -> str:
    return f"{{{name}}}"
