"""The names of the passes, as the command line takes them."""

from __future__ import annotations

import shlex
from typing import Literal, cast, get_args

from reprobundle.errors import BadCallError

PassName = Literal["measured", "repeat", "evidence", "restart", "truth"]


REPLAYED: tuple[PassName, ...] = ("measured", "repeat", "evidence", "restart")
"""The passes that a replay can make: the truth is the bundle's."""


def parse_passes(
    text: str, known: tuple[PassName, ...] = get_args(PassName)
) -> tuple[PassName, ...]:
    """Return the passes that a comma-separated list names.

    Args:
        text: The list.
        known: The passes that can be made here.

    Raises:
        BadCallError: A name is not known, or `measured` is missing.
    """
    names = tuple(
        dict.fromkeys(part.strip() for part in text.split(",") if part.strip())
    )
    for name in names:
        if name not in known:
            raise BadCallError(
                f"unknown pass {name!r}",
                advice=f"choose from {', '.join(known)}",
            )
    if "measured" not in names:
        raise BadCallError(
            "the measured pass cannot be left out: it is what is compared",
            advice="use --passes measured or --passes measured,repeat",
        )
    return cast("tuple[PassName, ...]", names)


def parse_command(text: str) -> tuple[str, ...]:
    """Return the words of a command that was given as one line.

    Raises:
        BadCallError: A quote is not closed.
    """
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise BadCallError(
            f"the command {text!r} cannot be split into words: {error}",
            advice="quote it as for a shell",
        ) from error
