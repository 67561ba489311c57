"""The names of the passes, as the command line takes them."""

from __future__ import annotations

from typing import Literal, cast, get_args

from reprobundle.errors import BadCallError

PassName = Literal["measured", "repeat", "evidence"]


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
