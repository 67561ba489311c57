"""What the compared numbers themselves show about the cause."""

from __future__ import annotations

from reprobundle.verify.causes.case import Case, Seen
from reprobundle.verify.causes.commands import replayed, with_setting
from reprobundle.verify.causes.machine import same_device
from reprobundle.verify.devices import device_of
from reprobundle.verify.drift import growth

_GROWS = 10.0
# Half a unit in the last place of bfloat16 and of TF32, doubled for sums of products.
_SHORT_MANTISSA = (2.0**-13, 2.0**-6)
# Findings that would explain a difference better than chance.
_EXPLAIN = (
    "same-files",
    "same-inputs",
    "same-command",
    "same-seed",
    "seed-calls",
    "same-draws",
    "same-steps",
    "same-start",
    "reduced-input",
    "masked-failure",
    "exit-status",
    "experiment",
)


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
                return evidence, _full_mantissa(case)
    return None


def _full_mantissa(case: Case) -> str:
    """Return a replay whose float32 products keep all bits, or nothing."""
    used = {device_of(case.replay), device_of(case.reference)}
    if "cuda" in used:
        return with_setting(case, "allow_tf32", "false")
    return with_setting(case, "matmul_precision", "highest") if used == {"cpu"} else ""


def grows(case: Case) -> Seen:
    """Return an output whose error grows along its rows."""
    for item in case.comparisons:
        for part in item.parts:
            factor = growth(part.drift)
            if factor >= _GROWS:
                name = f"{item.name} [{part.name}]" if part.name else item.name
                evidence = f"the error of {name} grows {factor:.3g}-fold along its rows"
                return evidence, f"reprobundle policy suggest {case.bundle}"
    return None


def only_text(case: Case) -> Seen:
    """Return which outputs differ, if all of them are texts."""
    judged = [item for item in case.comparisons if not item.excluded]
    bad = [item for item in judged if item.result == "outside-tolerance"]
    if not bad or any(item.kind not in ("text", "log") for item in bad):
        return None
    return f"only {', '.join(item.name for item in bad[:3])} differ", ""


def unexplained(case: Case) -> Seen:
    """Return floats that differ although nothing is known to."""
    moved = any(not part.equal for item in case.comparisons for part in item.parts)
    changed = any(one.grade == "numeric" for one in case.differences)
    if not moved or changed or case.found(*_EXPLAIN) or not same_device(case):
        return None
    evidence = (
        "files, command, seeds and start are the reference's, and so is every recorded "
        "fact that is known to change numbers"
    )
    # On MPS the switch was mostly ignored before 2.15 (pytorch#97574, #161029), and a
    # run without torch does not know it.
    deaf = device_of(case.replay).startswith("mps") or not case.replay.loaded_torch
    option = "--repeat 3" if deaf else "--set deterministic=true"
    return evidence, replayed(case, option)
