"""Whether the durations of a run are durations at all."""

from __future__ import annotations

from collections.abc import Iterator

from reprobundle.format.findings import Finding
from reprobundle.format.record import Phase, Record
from reprobundle.verify.checks import finding
from reprobundle.verify.devices import device_of

# Phases whose work is queued on an accelerator, and that begin after it was first used:
# each of their entries has two waits.
_QUEUED = frozenset({"forward", "backward", "optimizer"})
# A first transfer may be what starts the device: there is nothing to wait for before.
_STARTING = "transfer"


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


def check_timing(record: Record) -> Iterator[Finding]:
    """Yield the findings of V19 about one replay."""
    device = device_of(record)
    timed = [phase for phase in record.phases if phase.count]
    bad = [phase for phase in timed if not is_duration(phase, device)]
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
