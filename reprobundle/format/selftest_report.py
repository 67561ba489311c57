"""What `selftest` found: one row for each way in which copies were altered."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

SELFTEST_SCHEMA: Final = "reprobundle/selftest/1"

MutationResult = Literal["caught", "passed", "wrong-reason", "not-possible"]


class MutationRow(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """What came of one mutation.

    Attributes:
        name, title: Of the mutation.
        result: ``caught``; ``passed`` (a copy was green); ``wrong-reason`` (red, but
            no finding names the cause); ``not-possible`` (nothing was tried).
        copies: Number of altered copies verified.
        verdicts: The words they were given, each once.
        reasons: Ids of the findings that named the cause.
        detail: The copy that was not caught, or why none could be made.
    """

    name: str
    title: str
    result: MutationResult
    copies: int = 0
    verdicts: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    detail: str = ""


class SelftestReport(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """The whole table.

    Attributes:
        file: Name of the bundle file.
        bundle: Its id.
        control: Verdict on the unaltered bundle with a faithful copy of its own
            reference as the replay.
        rows: One for each mutation.
        exit_status: 0 when every mutation that was made was caught, else 10.
    """

    schema: Literal["reprobundle/selftest/1"] = SELFTEST_SCHEMA
    file: str
    bundle: str
    control: str
    rows: tuple[MutationRow, ...]
    exit_status: int
