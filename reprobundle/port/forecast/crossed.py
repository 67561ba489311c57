"""Judge what passes between device and CPU, and forms that MPS gets wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from reprobundle.format.forecast_report import (
    Certainty,
    Crossing,
    ForecastCrossing,
    ForecastKernel,
)
from reprobundle.format.record import OperatorForm, TensorForm
from reprobundle.run.events import AnyEvent, OperatorFormEvent, SteeredCrossingEvent
from reprobundle.verify.mps_kernels import (
    DETOURS,
    FAULTS,
    REFUSALS,
    Kernel,
    operator_of,
    version_of,
)

_ORDER: tuple[Crossing, ...] = ("mixed-devices", "to-cpu", "scalar-read", "to-device")
_SURE: dict[Crossing, Certainty] = {
    # Where a tensor was made decides it, and not all of that can be seen.
    "mixed-devices": "likely",
    "to-cpu": "certain",
    "scalar-read": "certain",
    "to-device": "certain",
}
# Their operand comes out of kernels of the CPU, which may lay it out otherwise.
_LAYOUT_OF_CPU = frozenset({"native_batch_norm_backward"})


def judge_crossings(events: Sequence[AnyEvent]) -> list[ForecastCrossing]:
    """Return one entry for each place and kind, those in most steps first."""
    found = [
        ForecastCrossing(
            kind=one.kind,
            where=one.where,
            phase=one.phase,
            count=one.count,
            size_bytes=one.bytes,
            steps=one.steps,
            certainty="likely" if one.operator == "inside" else _SURE[one.kind],
            note=_note(one),
        )
        for one in events
        if isinstance(one, SteeredCrossingEvent)
    ]
    return sorted(
        found, key=lambda one: (_ORDER.index(one.kind), -one.steps, one.where)
    )


def _note(one: SteeredCrossingEvent) -> str:
    if one.kind == "mixed-devices" and one.operator == "numpy()":
        return "numpy() of a tensor on MPS raises: copy it with .cpu() first"
    if one.kind == "mixed-devices":
        name = one.operator.removeprefix("aten.").removesuffix(".default")
        return f"{name} with tensors of the device and of the CPU raises on MPS"
    if one.operator == "inside":
        return "read inside an operator of the CPU; that of MPS may not"
    return one.operator.removeprefix("aten.").removesuffix(".default")


def judge_kernels(
    events: Sequence[AnyEvent], torch_version: str
) -> Iterator[ForecastKernel]:
    """Yield the forms that MPS gets wrong, or computes on the CPU by itself.

    Args:
        events: Of all processes.
        torch_version: The target, such as ``2.13``.
    """
    version = version_of(torch_version)
    forms = [
        OperatorForm(
            operator=one.operator,
            device=one.device,
            tensors=tuple(
                TensorForm(dtype=t.dtype, shape=t.shape, stride=t.stride)
                for t in one.tensors
            ),
            options=one.options,
            where=one.where,
            phase=one.phase,
            count=one.count,
        )
        for one in events
        if isinstance(one, OperatorFormEvent)
    ]
    if version is None:
        return
    for kernel in FAULTS:
        yield from _hits(kernel, kernel.matching(forms, version), "wrong")
    for kernel in REFUSALS:
        yield from _hits(kernel, kernel.matching(forms, version), "refused")
    for kernel in DETOURS:
        # The others stand in the table of operators, as detours.
        if kernel.certain:
            yield from _hits(kernel, kernel.matching(forms, version), "detour")


def _hits(
    kernel: Kernel,
    forms: Iterable[OperatorForm],
    kind: Literal["wrong", "detour", "refused"],
) -> Iterator[ForecastKernel]:
    by_operator: dict[str, list[OperatorForm]] = {}
    for form in forms:
        by_operator.setdefault(form.operator, []).append(form)
    for operator, mine in by_operator.items():
        is_certain = kernel.certain and operator_of(mine[0]) not in _LAYOUT_OF_CPU
        yield ForecastKernel(
            operator=operator,
            kind=kind,
            text=kernel.text,
            source=kernel.source,
            certainty="certain" if is_certain else "likely",
            count=sum(form.count for form in mine),
            where=next((form.where for form in mine if form.where), ""),
            form="; ".join(map(_form, mine[0].tensors)),
        )


def _form(tensor: TensorForm) -> str:
    return f"{tensor.dtype}{list(tensor.shape)} strides {list(tensor.stride)}"
