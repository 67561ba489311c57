"""Judge the operators whose kernel on MPS leaves for the CPU or is wrong (V15)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from reprobundle.format.findings import Finding
from reprobundle.format.record import OperatorForm, Record
from reprobundle.verify.checks import finding
from reprobundle.verify.mps_kernels import (
    DETOURS,
    FAULTS,
    Kernel,
    Version,
    operator_of,
    version_of,
)

MOST_NAMED = 3


class _Hit(NamedTuple):
    kernel: Kernel
    forms: tuple[OperatorForm, ...]


def check_kernels(record: Record, traced: Record, *, used: str) -> Iterator[Finding]:
    """Yield what the forms of operators say about a run on MPS.

    Args:
        record: The replay.
        traced: Its evidence pass; the replay itself where none was made.
        used: Device of the run.
    """
    if not used.startswith("mps"):
        return
    fact = traced.environment.get("torch.version")
    version = version_of(fact.value) if fact else None
    if version is None or not traced.devices.operators:
        reason = "no operator was traced" if version else "torch's version is unknown"
        for name in ("in-kernel-detour", "known-mps-fault"):
            yield finding(name, "not-checked", f"not known: {reason}")
        return
    forms = traced.devices.forms
    yield _detours(_hits(DETOURS, forms, version), record, traced)
    yield _faults(_hits(FAULTS, forms, version), len(forms))


def _hits(
    kernels: Iterable[Kernel], forms: Sequence[OperatorForm], version: Version
) -> list[_Hit]:
    found = (_Hit(one, one.matching(forms, version)) for one in kernels)
    return [hit for hit in found if hit.forms]


def _detours(hits: list[_Hit], record: Record, traced: Record) -> Finding:
    """Say whether kernels left for the CPU: by sizes and dtypes, or by their warning.

    Every such kernel warns. So where a form alone does not decide, and all warnings
    were heard, silence does.
    """
    certain = [hit for hit in hits if hit.kernel.certain]
    if certain:
        return finding(
            "in-kernel-detour",
            "warn",
            f"operators left for the CPU inside their own kernel: {_told(certain)}",
            where=certain[0].forms[0].where,
            advice="this is not a result of the device alone",
        )
    if not hits:
        reason = "no operator was called in a form whose kernel leaves for the CPU"
        return finding("in-kernel-detour", "pass", reason)
    heard = [
        one.operator
        for run in (record, traced)
        for one in run.devices.fallbacks
        if not one.operator.startswith("aten::") and "CPU" in one.operator
    ]
    if heard:
        reason = f"a kernel said that it left for the CPU: {heard[0]}"
        return finding("in-kernel-detour", "warn", reason)
    if all(_listened(run) for run in (record, traced)):
        return finding(
            "in-kernel-detour",
            "pass",
            f"such a kernel warns, and none did in either run: {_told(hits)}",
        )
    return finding(
        "in-kernel-detour",
        "not-checked",
        f"it depends on what is not recorded, and nobody listened to the warnings: "
        f"{_told(hits)}",
        advice="replay with --passes measured,evidence",
    )


def _listened(record: Record) -> bool:
    return any(
        one.name == "warnings" and one.looked for one in record.devices.witnesses
    )


def _faults(hits: list[_Hit], forms: int) -> Finding:
    certain = [hit for hit in hits if hit.kernel.certain]
    if certain:
        return finding(
            "known-mps-fault",
            "warn",
            f"this torch is known to compute wrongly here: {_told(certain)}",
            where=certain[0].forms[0].where,
            advice="call .contiguous() before, or use a torch with the correction",
        )
    if hits:
        return finding(
            "known-mps-fault",
            "not-checked",
            f"known to be wrong under conditions that no record holds: {_told(hits)}",
            where=hits[0].forms[0].where,
            advice="compare with .contiguous() in a fresh process",
        )
    reason = f"none of {forms} recorded forms is one of {len(FAULTS)} known faults"
    return finding("known-mps-fault", "pass", reason)


def _told(hits: list[_Hit]) -> str:
    texts = []
    for kernel, forms in hits[:MOST_NAMED]:
        names = " and ".join(dict.fromkeys(operator_of(form) for form in forms))
        count = sum(form.count for form in forms)
        place = next((form.where for form in forms if form.where), "")
        where = f" at {place}" if place else ""
        texts.append(f"{names} ×{count}{where}: {kernel.text} ({kernel.source})")
    return "; ".join(texts)
