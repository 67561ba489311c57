"""The mark of a run that was to differ from the reference in one thing."""

from typing import Annotated, Literal

import msgspec


class Experiment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run that shows a cause and decides nothing.

    Attributes:
        id: Shared by both sides of a pair, 16 hexadecimal digits.
        side: ``A`` or ``B`` of a pair; empty for a run that is compared with the
            reference.
    """

    id: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{16}$", max_length=16)]
    side: Literal["", "A", "B"] = ""
