"""Whether the durations of a run are durations at all."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from reprobundle.format.findings import Finding
from reprobundle.format.record import Phase, Record
from reprobundle.verify.checks import finding
from reprobundle.verify.devices import device_of

# Phases whose work is queued on an accelerator, and that begin after it was first used:
# each of their entries has two waits.
_QUEUED = frozenset({"forward", "backward", "optimizer"})
# A first transfer may be what starts the device: there is nothing to wait for before.
_STARTING = "transfer"
# What the recorder times besides: little or nothing of it is queued.
_ASIDE = frozenset({"import", "model", "data", "checkpoint", "export", _STARTING})


def is_duration(phase: Phase, device: str) -> bool:
    """Whether the figures of `phase` measure work, not just the queueing of it.

    Args:
        phase: The phase.
        device: Device of the run, from `device_of`.
    """
    if phase.synchronized == "none":
        return False
    if device == "cpu" or not phase.count:
        return True
    waited = phase.synchronized == device.removesuffix("-standin")
    if phase.name in _QUEUED:
        return waited and phase.synchronizations >= 2 * phase.count
    if phase.name == _STARTING:
        return waited and phase.synchronizations > 0
    return True


def without_duration(record: Record) -> list[Phase]:
    """Return the phases of a run whose times are no durations."""
    device = device_of(record)
    return [p for p in record.phases if p.count and not is_duration(p, device)]


def check_timing(record: Record) -> Iterator[Finding]:
    """Yield the findings of V19 about one replay."""
    yield from _check_synchronised(record)
    yield check_self_check(record)


def check_self_check(record: Record) -> Finding:
    """Return what the record's own self-check of its clock says."""
    name, device = "timing-self-check", device_of(record)
    queued = [p for p in record.phases if p.name not in _ASIDE and p.count]
    if device == "cpu" or not queued:
        reason = "nothing is queued there" if device == "cpu" else "no phase was timed"
        return finding(name, "not-applicable", f"{device}: {reason}")
    checked = [
        phase
        for phase in queued
        if phase.unwaited_median_ns is not None and is_duration(phase, device)
    ]
    if not checked:
        most = max(phase.count for phase in queued)
        reason = f"no phase with waits became steady in {most:,} entries"
        advice = "20 entries or more of a loop decide it"
        return finding(name, "not-checked", reason, advice=advice)
    for phase in checked:
        if (phase.unwaited_median_ns or 0) > phase.median_ns:
            return _contradiction(phase)
        if _is_other_ratio(phase):
            return _other_ratio(phase)
    return finding(name, "pass", shares(checked))


def unwaited_share(phase: Phase) -> float | None:
    """Return which share of a phase's median a clock without waits sees; 1 is all.

    Returns:
        As recorded; computed from both medians where the record lacks it, and None
        where there was no self-check.
    """
    recorded = phase.unwaited_ratio
    return _share(phase) if recorded is None else recorded


def _share(phase: Phase) -> float | None:
    if phase.unwaited_median_ns is None or not phase.median_ns:
        return None
    return phase.unwaited_median_ns / phase.median_ns


def _is_other_ratio(phase: Phase) -> bool:
    """Whether the recorded ratio is not that of the recorded medians."""
    recorded, share = phase.unwaited_ratio, _share(phase)
    if recorded is None:
        return False
    return share is None or not math.isclose(recorded, share, rel_tol=1e-9)


def _other_ratio(phase: Phase) -> Finding:
    return finding(
        "timing-self-check",
        "warn",
        f"the ratio that the record gives for {phase.name} is not that of its two "
        "medians: one of the three is wrong",
        where=phase.name,
        expected=f"{phase.unwaited_median_ns:,} ns of {phase.median_ns:,} ns",
        got=str(phase.unwaited_ratio),
    )


def shares(phases: Sequence[Phase]) -> str:
    """Return what a clock without waits reads of the time of `phases`, in words.

    Args:
        phases: Those with a self-check.
    """
    waited = sum(phase.median_ns for phase in phases)
    unwaited = sum(phase.unwaited_median_ns or 0 for phase in phases)
    share = 100 * unwaited / waited if waited else 100.0
    names = " + ".join(phase.name for phase in phases)
    return (
        f"{names}: {waited / 1e6:.3f} ms with waits, {unwaited / 1e6:.3f} ms without "
        f"the last ({share:.1f} %)"
    )


def _contradiction(phase: Phase) -> Finding:
    return finding(
        "timing-self-check",
        "warn",
        f"the same entries of {phase.name} took longer without the last wait than "
        "with it: one of the two times is wrong",
        where=phase.name,
        expected=f"at most {phase.median_ns:,} ns",
        got=f"{phase.unwaited_median_ns:,} ns",
    )


def _check_synchronised(record: Record) -> Iterator[Finding]:
    device = device_of(record)
    timed = [phase for phase in record.phases if phase.count]
    bad = without_duration(record)
    for phase in bad:
        yield finding(
            "unsynchronised-timing",
            "warn",
            f"the times of {phase.name} were taken without waiting for {device}: they "
            "are no durations and are not shown as such",
            where=phase.name,
            expected=f"synchronised with {device}, twice for each of {phase.count:,}",
            got=f"{phase.synchronized}, {phase.synchronizations} times",
        )
    if not timed:
        reason = "no phase was timed"
        yield finding("unsynchronised-timing", "not-applicable", reason)
    elif not bad:
        yield finding("unsynchronised-timing", "pass", f"{len(timed)} phases")
