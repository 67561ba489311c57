"""What the environment and the device bring along, as seen in the facts."""

from __future__ import annotations

from collections.abc import Callable

from reprobundle.format.findings import EnvironmentDifference
from reprobundle.verify.causes.case import Case, Seen
from reprobundle.verify.devices import device_of


def differs(
    *names: str, command: str = "", same_devices: bool = False
) -> Callable[[Case], Seen]:
    """Return a test for a fact that differs; ``{reference}`` is its value there."""

    def test(case: Case) -> Seen:
        one = case.differs(*names)
        if one is None or (same_devices and not same_device(case)):
            return None
        evidence = f"{one.name} is {one.replay}, reference {one.reference}"
        values = {"bundle": case.bundle, "reference": one.reference}
        return evidence, command.format(**values)

    return test


def same_device(case: Case) -> bool:
    """Return whether both runs computed on the same kind of device."""
    return device_of(case.reference) == device_of(case.replay)


def capability(case: Case) -> Seen:
    """Return another set of vector instructions, and the way back to the first."""
    one = case.differs("torch.cpu_capability", "env.ATEN_CPU_CAPABILITY")
    if one is None:
        return None
    evidence = f"{one.name} is {one.replay}, reference {one.reference}"
    wanted = one.reference.lower().replace("(unset)", "")
    if wanted not in ("default", "avx2", "avx512"):
        return evidence, ""
    return evidence, with_setting(case, "ATEN_CPU_CAPABILITY", wanted)


def threads(case: Case) -> Seen:
    """Return another number of threads, and the way back to the first."""
    one = case.differs("torch.num_threads", "env.OMP_NUM_THREADS")
    if one is None:
        return None
    evidence = f"{one.name} is {one.replay}, reference {one.reference}"
    if not one.reference.isdigit():
        return evidence, ""
    return evidence, with_setting(case, "OMP_NUM_THREADS", one.reference)


def with_setting(case: Case, name: str, value: str) -> str:
    """Return a replay with one variable of a numeric library set."""
    return f"reprobundle replay {case.bundle} --set {name}={value}"


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
    command = " ".join(case.reference.command.argv)
    return evidence, f"reprobundle pack --rng portable -- {command}"


def other_device(case: Case) -> Seen:
    """Return another kind of device, and the way back to the first."""
    if same_device(case):
        return None
    sides = f"ran on {device_of(case.replay)}, reference on {device_of(case.reference)}"
    device = device_of(case.reference)
    if device not in ("cpu", "cuda", "mps"):
        return sides, ""
    return sides, f"reprobundle replay {case.bundle} --device {device}"
