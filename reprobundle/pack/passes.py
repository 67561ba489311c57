"""The names of the passes, as the command line takes them."""

from __future__ import annotations

import shlex
from typing import Literal, cast, get_args

from reprobundle.errors import BadCallError

PassName = Literal["measured", "repeat", "evidence", "restart"]


def parse_passes(text: str) -> tuple[PassName, ...]:
    """Return the passes that a comma-separated list names.

    Raises:
        BadCallError: A name is not known, or `measured` is missing.
    """
    names = tuple(
        dict.fromkeys(part.strip() for part in text.split(",") if part.strip())
    )
    for name in names:
        if name not in get_args(PassName):
            raise BadCallError(
                f"unknown pass {name!r}",
                advice=f"choose from {', '.join(get_args(PassName))}",
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
