"""The tolerances a policy starts from, each with its source, and their widening.

They are written into every new bundle, so a later release with other figures changes
no verdict on it.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from reprobundle.format.findings import ArrayComparison, OutputComparison
from reprobundle.format.policy import DtypeTolerance, Policy, Tolerance
from reprobundle.verify.rules import rule_for

_CLOSE = "default of torch.testing.assert_close (torch 2.13)"
_MODEL = (
    "PyTorch's MPS-against-CPU tolerances for single operators (test/test_mps.py), "
    "taken relative to the array's own scale for a whole model"
)

_SAME: tuple[tuple[str, float, float], ...] = (
    # dtype, rtol, atol
    ("float16", 1e-3, 1e-5),
    ("bfloat16", 1.6e-2, 1e-5),
    ("float32", 1.3e-6, 1e-5),
    ("float64", 1e-7, 1e-7),
    ("complex64", 1.3e-6, 1e-5),
    ("complex128", 1e-7, 1e-7),
)

_DIFFERENT: tuple[tuple[str, Tolerance, str], ...] = (
    (
        "float16",
        Tolerance(rtol=5e-2, atol=1e-5, floor=1.0),
        f"{_MODEL}: 5e-2 for half precision",
    ),
    (
        "bfloat16",
        Tolerance(rtol=1e-1, atol=1e-5, floor=0.5),
        f"{_MODEL}: 1e-1 relative, 5e-2 of the scale, for bfloat16 products",
    ),
    (
        "float32",
        Tolerance(rtol=1e-4, atol=1e-5, floor=0.1),
        f"{_MODEL}: 1e-4 for convolutions and matrix products",
    ),
    (
        "float64",
        Tolerance(rtol=1e-4, atol=1e-5, floor=0.1),
        "as float32: MPS has no float64, so one side computed in float32",
    ),
    (
        "complex64",
        Tolerance(rtol=1e-4, atol=1e-5, floor=0.1),
        "as float32, by magnitude",
    ),
    (
        "complex128",
        Tolerance(rtol=1e-4, atol=1e-5, floor=0.1),
        "as float64, by magnitude",
    ),
    (
        "float8_e4m3fn",
        Tolerance(rtol=0.125, atol=0.0),
        "one step of a format with three mantissa bits",
    ),
    (
        "float8_e5m2",
        Tolerance(rtol=0.25, atol=0.0),
        "one step of a format with two mantissa bits",
    ),
    (
        "number",
        Tolerance(rtol=1e-3, atol=1e-5, floor=0.1),
        "ten times float32, as for gradients: most such numbers come from many steps",
    ),
)

_SAME_NUMBER = DtypeTolerance(
    dtype="number",
    devices="same",
    tolerance=Tolerance(rtol=1.3e-6, atol=1e-5),
    source=f"as float32: {_CLOSE}",
)

IGNORE_KEYS: tuple[str, ...] = (
    "created",
    "cwd",
    "date",
    "datetime",
    "duration",
    "elapsed",
    "eta",
    "finished",
    "host",
    "hostname",
    # The clock readings that a notebook runner writes into each cell.
    "iopub execute input",
    "iopub execute reply",
    "iopub status busy",
    "iopub status idle",
    "shell execute reply",
    "memory",
    "path",
    "per sec",
    "per second",
    "pid",
    "rss",
    "runtime",
    "seconds",
    "started",
    "throughput",
    "time",
    "timestamp",
    "username",
)

WIDENING = 5.0
# Beyond this an element-wise tolerance says nothing any more; the bundle then states
# that its reference does not repeat.
LARGEST_WIDENED = 0.1
NOISE_SOURCE = "widened by the measured noise of two runs on one machine"


def default_policy() -> Policy:
    """Return the policy of a bundle whose author states none."""
    same = [
        DtypeTolerance(
            dtype=dtype,
            devices="same",
            tolerance=Tolerance(rtol=rtol, atol=atol),
            source=_CLOSE,
        )
        for dtype, rtol, atol in _SAME
    ]
    different = [
        DtypeTolerance(
            dtype=dtype, devices="different", tolerance=tolerance, source=source
        )
        for dtype, tolerance, source in _DIFFERENT
    ]
    return Policy(tolerances=(*same, _SAME_NUMBER, *different), ignore_keys=IGNORE_KEYS)


def widen(policy: Policy, comparisons: Iterable[OutputComparison]) -> Policy:
    """Return `policy` with room for the noise between two runs on one machine.

    Only at packing time, before the policy is frozen. For each dtype the noise is the
    largest error relative to the larger of the element and the array's scale; five
    times that is admitted. A rule that an output has of its own is never touched.

    Args:
        policy: Before widening.
        comparisons: The measured pass against the repeat pass.
    """
    noise = _noise_by_dtype(policy, comparisons)
    rows = tuple(
        _widened(row, noise[row.dtype]) if row.dtype in noise else row
        for row in policy.tolerances
    )
    return msgspec.structs.replace(policy, tolerances=rows)


def is_widened(row: DtypeTolerance) -> bool:
    """Whether the measured noise widened this tolerance."""
    return NOISE_SOURCE in row.source


def _noise_by_dtype(
    policy: Policy, comparisons: Iterable[OutputComparison]
) -> dict[str, float]:
    noise: dict[str, float] = {}
    for comparison in comparisons:
        rule = rule_for(policy, comparison.name)
        if rule is not None and rule.tolerance is not None:
            continue
        for part in comparison.parts:
            level = _noise(part)
            if level is not None and level > noise.get(part.dtype, 0.0):
                noise[part.dtype] = level
    return noise


def _noise(part: ArrayComparison) -> float | None:
    """Return the noise of one array, or None if its tolerance has room for it."""
    if part.equal or part.rtol is None or part.max_abs is None:
        return None
    largest = float(part.max_abs)
    bounds = [float(part.max_rel)] if part.max_rel is not None else []
    if part.scale:
        bounds.append(largest / float(part.scale))
    if WIDENING * largest <= (part.atol or 0.0) or not bounds:
        return None
    level = min(bounds)
    return level if WIDENING * level <= LARGEST_WIDENED else None


def _widened(row: DtypeTolerance, noise: float) -> DtypeTolerance:
    rtol = WIDENING * noise
    if rtol <= row.tolerance.rtol:
        return row
    tolerance = msgspec.structs.replace(
        row.tolerance, rtol=rtol, floor=max(1.0, row.tolerance.floor)
    )
    source = f"{row.source}; {NOISE_SOURCE}: {WIDENING:g} x {noise:.3g}"
    return DtypeTolerance(
        dtype=row.dtype, devices=row.devices, tolerance=tolerance, source=source
    )
