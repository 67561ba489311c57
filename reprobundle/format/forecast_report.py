"""What `forecast` says: what a run on MPS would meet, told from a run on the CPU."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

FORECAST_SCHEMA: Final = "reprobundle/forecast/1"

Certainty = Literal["certain", "likely", "unknown"]
Place = Literal["native", "composite", "always-cpu", "missing", "detour", "unknown"]
Fit = Literal["cannot", "tight", "not-excluded"]
Crossing = Literal["mixed-devices", "to-cpu", "scalar-read", "to-device"]
Drawn = Literal["drawn", "partly-drawn", "not-seen-drawn", "unknown"]


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
        follows: For a backward without a kernel, its forward, if that has none either:
            both are one cause.
    """

    operator: str
    on_mps: str
    place: Place
    certainty: Certainty
    count: int
    phases: tuple[str, ...]
    where: str
    note: str = ""
    follows: str = ""


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
        certainty: How sure it is that MPS meets it.
    """

    where: str
    how: str
    dtype: str
    operator: str
    count: int
    certainty: Certainty = "certain"


class ForecastCrossing(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """A place where data passes between the device and the CPU.

    Attributes:
        kind: ``to-cpu``: a copy that was asked for; ``scalar-read``: one value is read,
            which waits for the device; ``to-device``: an input that starts on the CPU;
            ``mixed-devices``: an operator has tensors of both, which raises on MPS.
        where: ``file:line``; empty where no line of the user's called it.
        phase: In which it happened.
        count: How often.
        size_bytes: Of what passed, in all.
        steps: In how many optimizer steps, the time before the first one included.
        certainty: How sure it is.
        note: What follows from it, or the operator concerned.
    """

    kind: Crossing
    where: str
    phase: str
    count: int
    size_bytes: int
    steps: int
    certainty: Certainty
    note: str = ""


class ForecastKernel(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """A form of an operator that MPS runs otherwise than it should.

    Attributes:
        operator: As the run called it.
        kind: ``wrong``: known to give wrong numbers without an error; ``detour``: its
            kernel leaves for the CPU by itself; ``refused``: it raises.
        text: What happens.
        source: Where that is known from.
        certainty: ``likely`` where it depends on what is not seen here.
        count: Calls of this form.
        where: First place in the user's code.
        form: Dtypes, shapes and strides of one call.
    """

    operator: str
    kind: Literal["wrong", "detour", "refused"]
    text: str
    source: str
    certainty: Certainty
    count: int
    where: str
    form: str


class ForecastRefusal(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """What was raised in the command in the place of MPS (``--strict``).

    Attributes:
        where: ``file:line``.
        error: Type and text, as torch raises it on a Mac.
        ended: Whether the command ended by it; else it went on.
    """

    where: str
    error: str
    ended: bool


class ForecastInvented(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """A place where the command asked for a value that a dry run does not have.

    Attributes:
        where: ``file:line``.
        how: What was invented: ``value``, ``size``, ``array`` …
        count: How often.
    """

    where: str
    how: str
    count: int


class ForecastComparison(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """This run, meant to be the smaller one, against a forecast of the full run.

    Attributes:
        other: The command of the full run.
        vanished: Operators of the full run that this one did not call, as the first
            run called them; those of equal meaning count as one.
        added: Operators that this run alone called.
        warnings: What the reduced run cannot stand for, one sentence each.
    """

    other: tuple[str, ...]
    vanished: tuple[str, ...]
    added: tuple[str, ...]
    warnings: tuple[str, ...]


class MemoryFit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The peak against one size of Mac.

    Attributes:
        mac_bytes: Its memory.
        fit: ``cannot``: more than all of it; ``tight``: more than 60 %;
            ``not-excluded``: less. A lower bound never shows that a run fits.
        certainty: ``certain`` that it cannot, ``likely`` where it is tight, else
            ``unknown``.
    """

    mac_bytes: int
    fit: Fit
    certainty: Certainty = "unknown"


class ForecastReport(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """The whole forecast.

    Attributes:
        command: What was run.
        torch: Version of the table.
        ran_with: Version of torch that ran here.
        steered: Whether operators ran on tensors that the script moved to its device;
            if not, whether MPS is asked for is unknown, and all operators count as if.
        steps: Optimizer steps made.
        operators: All operators, the worst first.
        float64: Places that raise on MPS.
        scalar_reads: Reads of single values from the device, each of which waits.
        peak_bytes: Largest size of the device's tensors at one time, a lower bound.
        memory: That against sizes of Macs.
        not_covered: What this forecast does not know.
        bundle: Id of the bundle whose command it was; empty for a command as typed.
        mode: ``run``: everything was computed on the CPU; ``dry``: no value was.
        strict: Whether what MPS refuses was raised in the command.
        crossings: Places where data passes between device and CPU.
        kernels: Operators in a form that MPS gets wrong or computes on the CPU.
        refused: What was raised, with ``--strict``.
        invented: Places that asked a dry run for values.
        inputs: Whether what the models were given was nothing but draws of torch; what
            numpy drew is not seen. ``unknown`` where no module was called.
        compared: This run against a forecast of the full run, if one was named.
        exit_status: 0 when nothing blocks and nothing went unseen, 10 when something
            blocks, 11 when nothing that was seen blocks, and something went unseen or
            runs on the CPU.
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
    bundle: str = ""
    mode: Literal["run", "dry"] = "run"
    strict: bool = False
    crossings: tuple[ForecastCrossing, ...] = ()
    kernels: tuple[ForecastKernel, ...] = ()
    refused: tuple[ForecastRefusal, ...] = ()
    invented: tuple[ForecastInvented, ...] = ()
    inputs: Drawn = "unknown"
    compared: ForecastComparison | None = None
    exit_status: int
