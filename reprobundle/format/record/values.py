"""Values that a record is made of: digests, counts, numbers and facts.

Numbers that may be NaN or infinite are stored as the strings ``nan``, ``inf`` and
``-inf``: JSON has no form for them.
"""

import math
from typing import Annotated, Literal

import msgspec

Digest = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$", max_length=64)]
DigestOrEmpty = Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{64})?$", max_length=64)]
Count = Annotated[int, msgspec.Meta(ge=0)]
Number = float | Literal["nan", "inf", "-inf"]
Scalar = bool | int | float | str
FactValue = bool | int | float | str | tuple[str, ...] | None


def number(value: float) -> Number:
    """Return `value` in the form a record stores it."""
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return float(value)


def as_float(value: Number) -> float:
    """Return the float that `value` stands for."""
    return float(value)


class Fact(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One fact about the environment, or the reason why it is unknown.

    Attributes:
        value: What was read; None exactly when it is unknown.
        unknown: Why it could not be read; empty when it is known.
        source: How it was read, such as ``platform.release()``.
    """

    value: FactValue = None
    unknown: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        """Refuse a fact that is both known and unknown, or neither."""
        if (self.value is None) != bool(self.unknown):
            message = "a fact has either a value or the reason why it is unknown"
            raise ValueError(message)
