"""What can go wrong between two machines, one class for each cause."""

from __future__ import annotations

from reprobundle.errors import (
    BadCallError,
    DataRuleError,
    EnvironmentUnusableError,
)


class UnreachableError(EnvironmentUnusableError):
    """No connection could be made, and trying again as it is will not help."""


class ConnectionLostError(EnvironmentUnusableError):
    """A connection ended before the answer was whole; calling again goes on from there.

    Attributes:
        said: Whether the other side had answered anything.
    """

    def __init__(self, message: str, *, said: bool = False, advice: str = "") -> None:
        self.said = said
        super().__init__(message, advice=advice)


class RefusedThereError(EnvironmentUnusableError):
    """The other machine was asked for something that it cannot do.

    Attributes:
        number: The system's error number there, 0 for none.
    """

    def __init__(self, message: str, *, number: int = 0, advice: str = "") -> None:
        self.number = number
        super().__init__(message, advice=advice)


class UnfitMachineError(EnvironmentUnusableError):
    """The other machine lacks what the replay needs; the message says what."""


class TransferForbiddenError(DataRuleError):
    """The sealed policy does not let the bundle go there."""


class UnknownHandoffError(BadCallError):
    """No hand-off of that name is known on this machine."""
