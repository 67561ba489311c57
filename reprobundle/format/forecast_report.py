"""What `forecast` says: what a run on MPS would meet, told from a run on the CPU."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

FORECAST_SCHEMA: Final = "reprobundle/forecast/1"

Certainty = Literal["certain", "likely", "unknown"]
Place = Literal["native", "composite", "always-cpu", "missing", "detour", "unknown"]
Fit = Literal["cannot", "tight", "not-excluded"]


class ForecastOperator(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """One operator of the run, by the table of the target version.

    Attributes:
        operator: As the run on the CPU called it.
        on_mps: What MPS is asked for in its place, where that is another one.
        place: Where it runs on MPS.
        certainty: How sure that is.
        count: Calls.
        phases: Phases it ran in.
        where: First place in the user's code; empty where there is none.
        note: What follows from it.
    """

    operator: str
    on_mps: str
    place: Place
    certainty: Certainty
    count: int
    phases: tuple[str, ...]
    where: str
    note: str = ""


class ForecastSite(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """A place where float64 or complex128 reaches MPS, which raises there.

    Attributes:
        where: ``file:line``.
        how: ``moved``, ``made`` or ``computed``.
        dtype: Of the tensor.
        operator: What computed it, if something did.
        count: How often.
    """

    where: str
    how: str
    dtype: str
    operator: str
    count: int


class MemoryFit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The peak against one size of Mac.

    Attributes:
        mac_bytes: Its memory.
        fit: ``cannot``: more than all of it; ``tight``: more than 60 %;
            ``not-excluded``: less. A lower bound never shows that a run fits.
    """

    mac_bytes: int
    fit: Fit


class ForecastReport(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """The whole forecast.

    Attributes:
        command: What was run.
        torch: Version of the table.
        ran_with: Version of torch that ran here.
        steered: Whether operators ran on tensors that the script moved to its device;
            if not, all operators count and nothing is certain.
        steps: Optimizer steps made.
        operators: All operators, the worst first.
        float64: Places that raise on MPS.
        scalar_reads: Reads of single values from the device, each of which waits.
        peak_bytes: Largest size of the device's tensors at one time, a lower bound.
        memory: That against sizes of Macs.
        not_covered: What this forecast does not know.
        exit_status: 0 when nothing blocks and nothing went unseen, 10 when something
            blocks, 11 when nothing that was seen blocks.
    """

    schema: Literal["reprobundle/forecast/1"] = FORECAST_SCHEMA
    command: tuple[str, ...]
    torch: str
    ran_with: str
    steered: bool
    steps: int
    operators: tuple[ForecastOperator, ...]
    float64: tuple[ForecastSite, ...]
    scalar_reads: int
    peak_bytes: int
    memory: tuple[MemoryFit, ...]
    not_covered: tuple[str, ...]
    exit_status: int
