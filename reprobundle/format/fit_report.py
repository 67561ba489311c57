"""What ``check`` prints with ``--json``: does a bundle fit where it is to go?"""

from typing import Final, Literal

import msgspec

from reprobundle.format.findings import CheckOutcome

FIT_SCHEMA: Final = "reprobundle/fit/1"


class FitFinding(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing that a destination asks, and whether the bundle has it.

    Attributes:
        id: Stable name, such as ``file-bytes``.
        outcome: ``fail``: the destination refuses the bundle; ``warn``: it takes it and
            something is lost; ``not-checked``: nothing in the bundle tells.
        text: What the destination asks.
        most: The figure of the destination; None where there is none.
        got: What the bundle has, in words.
        measured: The figure of the bundle; None where there is none.
        source, date: Where the destination says so, and the day on which it was read.
    """

    id: str
    outcome: CheckOutcome
    text: str
    most: int | None = None
    got: str
    measured: int | None = None
    source: str
    date: str


class Offer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something that can be left out to make the bundle smaller.

    Attributes:
        what: The members, in words.
        saves_bytes: Bytes of the bundle that they take.
        saves_characters: Characters that they take of the bundle as text; None where
            that does not matter.
        option: Option of `pack`, or a command, to copy.
        costs: What is lost with them.
        chosen: Whether it is one of those that together are enough, largest first.
    """

    what: str
    saves_bytes: int
    saves_characters: int | None = None
    option: str
    costs: str
    chosen: bool = False


class FitResult(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a bundle fits one destination.

    Attributes:
        destination: Its name, such as ``github-issue``.
        title: As people call it.
        how: How a bundle gets there.
        fits: Whether nothing is refused; what was not checked is named beside it.
        findings: What it asks.
        offers: What can be left out, largest first; empty where it fits.
        enough: Whether all that is offered would make it fit.
        can_be_split: Whether a first part would fit that holds what is needed.
    """

    destination: str
    title: str
    how: str
    fits: bool
    findings: tuple[FitFinding, ...]
    offers: tuple[Offer, ...] = ()
    enough: bool = True
    can_be_split: bool = False


class FitReport(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The answer for every destination that was asked about.

    Attributes:
        file: Name of the bundle.
        bundle: Its id.
        size_bytes: Size of the file.
        destinations: One result for each destination.
        exit_status: 0 when all of them take it, else 10.
    """

    schema: Literal["reprobundle/fit/1"] = FIT_SCHEMA
    file: str
    bundle: str
    size_bytes: int
    destinations: tuple[FitResult, ...]
    exit_status: int
