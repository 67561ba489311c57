"""Whether the frozen policy can say no at all (V8)."""

from __future__ import annotations

import math
from collections.abc import Iterator

from reprobundle.format.findings import Finding
from reprobundle.format.policy import Policy, Tolerance
from reprobundle.format.record import ArraySummary, Record
from reprobundle.verify.checks import finding
from reprobundle.verify.defaults import default_policy, is_widened
from reprobundle.verify.rules import rule_for, tolerance_for

_ANY = "this tolerance admits errors as large as the values, or any share of them"
_ZEROS = "this tolerance admits zeros in the place of every value of the output"


def check_policy(policy: Policy, reference: Record) -> Iterator[Finding]:
    """Yield the findings of V8.

    A tolerance is vacuous by itself, or because of the values that it is applied to:
    an absolute bound as large as the root mean square of an array. The second is
    asked only of tolerances that somebody stated: the defaults are absolute enough for
    a tensor of tiny values, and `hidden-by-atol` watches these.

    Args:
        policy: The frozen policy.
        reference: The reference, whose summaries tell how large its values are.
    """
    stated = _stated(policy)
    vacuous = [
        *((where, rule, _ANY) for where, rule in stated if _is_vacuous(rule)),
        *((where, rule, _ZEROS) for where, rule in _beyond_values(policy, reference)),
    ]
    for where, rule, reason in vacuous:
        yield finding(
            "vacuous-tolerance", "warn", reason, where=where, got=_figures(rule)
        )
    if not vacuous:
        yield finding("vacuous-tolerance", "pass", f"{len(stated)} tolerances")


def _stated(policy: Policy) -> list[tuple[str, Tolerance]]:
    """Return every tolerance of the policy with its place."""
    found = [
        (f"{row.dtype}, {row.devices}", row.tolerance) for row in policy.tolerances
    ]
    for rule in policy.outputs:
        if rule.tolerance is not None:
            found.append((rule.match, rule.tolerance))
        found += [(f"{rule.match}, {dtype}", one) for dtype, one in rule.dtypes.items()]
    return found


def _is_vacuous(rule: Tolerance) -> bool:
    return rule.rtol >= 1 or rule.rtol * rule.floor >= 1 or rule.share >= 0.5


def _beyond_values(
    policy: Policy, reference: Record
) -> Iterator[tuple[str, Tolerance]]:
    """Yield the outputs of which somebody's own tolerance admits zeros everywhere."""
    for output in reference.outputs:
        rule = rule_for(policy, output.name)
        if rule is not None and not rule.compare:
            continue
        own = rule is not None and bool(rule.tolerance or rule.dtypes)
        judged = [
            (array, tolerance_for(policy, output.name, array.dtype, "same"))
            for array in output.arrays
            if _scale(array)
        ]
        bounds = [
            tolerance
            for array, tolerance in judged
            if tolerance is not None
            and (own or _is_own(policy, array.dtype))
            and _admits_zeros(tolerance, array)
        ]
        if bounds and len(bounds) == len(judged):
            yield output.name, bounds[0]


def _is_own(policy: Policy, dtype: str) -> bool:
    """Whether somebody stated the row of this dtype, and not this project or noise."""
    defaults = default_policy().tolerances
    rows = (row for row in policy.tolerances if row.dtype == dtype)
    return any(row not in defaults and not is_widened(row) for row in rows)


def _admits_zeros(rule: Tolerance, array: ArraySummary) -> bool:
    scale = _scale(array)
    if _is_vacuous(rule):
        return False  # That is said already.
    return rule.atol + rule.rtol * max(1.0, rule.floor) * scale >= scale


def _scale(array: ArraySummary) -> float:
    """Return the root mean square of the finite elements; 0 where it is not known."""
    odd = array.nan + array.positive_infinity + array.negative_infinity
    finite = math.prod(array.shape) - odd
    if array.l2 is None or finite <= 0:
        return 0.0
    scale = float(array.l2) / math.sqrt(finite)
    return scale if math.isfinite(scale) else 0.0


def _figures(rule: Tolerance) -> str:
    return (
        f"rtol {rule.rtol:g}, atol {rule.atol:g}, floor {rule.floor:g}, "
        f"share {rule.share:g}"
    )
