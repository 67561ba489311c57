"""What the compared numbers themselves show about the cause."""

from __future__ import annotations

from reprobundle.verify.causes.case import Case, Seen
from reprobundle.verify.causes.machine import with_setting
from reprobundle.verify.devices import device_of
from reprobundle.verify.drift import growth

_GROWS = 10.0
# Half a unit in the last place of bfloat16 and of TF32, doubled for sums of products.
_SHORT_MANTISSA = (2.0**-13, 2.0**-6)


def short_mantissa(case: Case) -> Seen:
    """Return a float32 output whose error has the size of shorter mantissas."""
    lowest, highest = _SHORT_MANTISSA
    for item in case.comparisons:
        for part in item.parts:
            error = part.relative_l2
            if part.dtype != "float32" or error is None:
                continue
            if lowest <= float(error) <= highest and not part.nan:
                name = f"{item.name} [{part.name}]" if part.name else item.name
                evidence = f"relative L2 error of {name} is {float(error):.2g}"
                command = with_setting(case, "NVIDIA_TF32_OVERRIDE", "0")
                on_cuda = "cuda" in (device_of(case.replay), device_of(case.reference))
                return evidence, command if on_cuda else ""
    return None


def grows(case: Case) -> Seen:
    """Return an output whose error grows along its rows."""
    for item in case.comparisons:
        for part in item.parts:
            factor = growth(part.drift)
            if factor >= _GROWS:
                name = f"{item.name} [{part.name}]" if part.name else item.name
                evidence = f"the error of {name} grows {factor:.3g}-fold along its rows"
                return evidence, ""
    return None


def only_text(case: Case) -> Seen:
    """Return which outputs differ, if all of them are texts."""
    judged = [item for item in case.comparisons if not item.excluded]
    bad = [item for item in judged if item.result == "outside-tolerance"]
    if not bad or any(item.kind not in ("text", "log") for item in bad):
        return None
    return f"only {', '.join(item.name for item in bad[:3])} differ", ""
