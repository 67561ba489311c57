"""What the environment and the device bring along, as seen in the facts."""

from __future__ import annotations

from collections.abc import Callable

from reprobundle.format.findings import EnvironmentDifference
from reprobundle.verify.causes.case import Case, Seen
from reprobundle.verify.causes.commands import (
    back,
    filled,
    packed,
    replayed,
    with_setting,
)
from reprobundle.verify.devices import device_of

_OTHER_THREADS = (
    "env.*_THREADS",
    "env.*_DYNAMIC",
    "env.OMP_SCHEDULE",
    "env.KMP_DETERMINISTIC_REDUCTION",
)


def differs(
    *names: str, command: str = "", same_devices: bool = False
) -> Callable[[Case], Seen]:
    """Return a test for a fact that differs; ``{bundle}`` is the file's name.

    Without a command the replay is suggested in which the fact is as it was, if there
    is a setting for it.
    """

    def test(case: Case) -> Seen:
        one = case.differs(*names)
        if one is None or (same_devices and not same_device(case)):
            return None
        try_next = filled(case, command) if command else back(case, one)
        return _sides(one), try_next

    return test


def _sides(one: EnvironmentDifference) -> str:
    return f"{one.name} is {one.replay}, reference {one.reference}"


def same_device(case: Case) -> bool:
    """Return whether both runs computed on the same kind of device."""
    return device_of(case.reference) == device_of(case.replay)


def capability(case: Case) -> Seen:
    """Return another set of vector instructions, and the way back to the first."""
    one = case.differs("torch.cpu_capability", "env.ATEN_CPU_CAPABILITY")
    if one is None:
        return differs("env.*MAX_CPU_ISA", "env.NPY_DISABLE_CPU_FEATURES")(case)
    wanted = one.reference.lower().replace("(unset)", "")
    if wanted not in ("default", "avx2", "avx512"):
        return _sides(one), ""
    return _sides(one), with_setting(case, "ATEN_CPU_CAPABILITY", wanted)


def threads(case: Case) -> Seen:
    """Return another number of threads, and the way back to the first."""
    one = case.differs("torch.num_threads", "env.OMP_NUM_THREADS", "torch.blas_threads")
    if one is None:
        return differs(*_OTHER_THREADS)(case)
    if not one.reference.isdigit():
        return _sides(one), ""
    return _sides(one), with_setting(case, "OMP_NUM_THREADS", one.reference)


def _both_known(difference: EnvironmentDifference) -> bool:
    sides = (difference.reference, difference.replay)
    return not any(side.startswith(("not recorded", "unknown")) for side in sides)


def draws(case: Case) -> Seen:
    """Return which generator draws other numbers from one seed."""
    one = next(
        (
            d
            for d in case.differences
            if d.name.startswith("randomness.draws.") and _both_known(d)
        ),
        None,
    )
    if one is None:
        return None
    generator = one.name.removeprefix("randomness.draws.")
    evidence = f"{generator} draws other numbers from one seed"
    return evidence, packed(case, "--rng portable")


def other_device(case: Case) -> Seen:
    """Return another kind of device, and the way back to the first."""
    if same_device(case):
        return None
    sides = f"ran on {device_of(case.replay)}, reference on {device_of(case.reference)}"
    device = device_of(case.reference)
    if device not in ("cpu", "cuda", "mps"):
        return sides, ""
    return sides, replayed(case, f"--device {device}")
