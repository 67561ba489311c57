"""What the comparison of outputs means: the findings of V16 and V17."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reprobundle.format.findings import ArrayComparison, Finding, OutputComparison
from reprobundle.format.policy import Policy
from reprobundle.format.record import Output, Record
from reprobundle.verify.checks import finding
from reprobundle.verify.compare_output import BY_DIGEST

_GOOD = ("bit-identical", "within-tolerance")
_LARGE_ERROR = 0.1
# Whatever admits that, a share, a factor or a floor: such a result shows nothing.
_AS_LARGE = 0.5
_ADVICE_ON_TEXT = "if the text is no result, let a rule of the policy leave it out"


def check_outputs(
    reference: Record, comparisons: Sequence[OutputComparison], policy: Policy
) -> Iterator[Finding]:
    """Yield the findings about all compared outputs of one replay.

    Args:
        reference: The sealed run.
        comparisons: One for each output of either side.
        policy: The frozen policy.
    """
    yield from _presence(comparisons)
    outputs = {output.name: output for output in reference.outputs}
    for item in comparisons:
        yield from _result(item, policy)
        if item.result in _GOOD and item.name in outputs:
            yield from _withheld(outputs[item.name])
        if item.result in (*_GOOD, "not-compared") and item.name in outputs:
            yield from _emptiness(item, outputs[item.name])
    yield from _any_compared(reference, comparisons, policy)


def _presence(comparisons: Sequence[OutputComparison]) -> Iterator[Finding]:
    missing = [item for item in comparisons if item.result == "missing"]
    for item in missing:
        yield finding("output-missing", "fail", item.reason, where=item.name)
    if not missing:
        yield finding("output-missing", "pass", f"{len(comparisons):,} outputs")
    for item in comparisons:
        if item.result == "unexpected":
            yield finding("output-unexpected", "warn", item.reason, where=item.name)


def _result(item: OutputComparison, policy: Policy) -> Iterator[Finding]:
    if item.result in _GOOD:
        yield finding("output-differs", "pass", item.result, where=item.name)
    elif item.result == "outside-tolerance":
        worst = next((part for part in item.parts if part.problem), None)
        is_text = item.kind in ("text", "log")
        yield finding(
            "output-differs",
            "fail",
            item.reason,
            where=item.name,
            expected=worst.expected if worst else "",
            got=worst.got if worst else "",
            advice=_ADVICE_ON_TEXT if is_text else "",
        )
    elif item.excluded:
        yield finding("output-excluded", "not-applicable", item.reason, where=item.name)
    elif item.result == "not-compared" and policy.profile == "compat":
        yield finding("values-not-compared", "warn", item.reason, where=item.name)
    elif item.result == "not-compared":
        yield finding(
            "output-not-compared", "not-checked", item.reason, where=item.name
        )


def _withheld(output: Output) -> Iterator[Finding]:
    """Yield that an output whose content is withheld agrees by digest alone."""
    if output.stored != "withheld":
        return
    told = {
        "arrays": bool(output.arrays),
        "table": output.rows is not None,
        "text": output.rows is not None,
    }
    if told.get(output.kind, True):
        yield finding("output-withheld", "pass", BY_DIGEST, where=output.name)
        return
    yield finding(
        "output-withheld",
        "warn",
        f"{BY_DIGEST}, so NaN, zeros and emptiness were not looked for",
        where=output.name,
        advice="the author can let the summary out: pack with --keep-summaries",
    )


def _emptiness(item: OutputComparison, output: Output) -> Iterator[Finding]:
    """Yield what makes agreement say less than it seems to."""
    nan = sum(part.nan for part in item.parts)
    if nan:
        yield finding(
            "nan-in-output",
            "warn",
            f"both sides hold NaN in {nan:,} places, which counts as equal",
            where=item.name,
        )
    if output.size_bytes == 0 or output.rows == 0 or _holds_nothing(item, output):
        yield finding(
            "output-empty", "warn", "there is nothing in it to compare", where=item.name
        )
    elif item.parts and all(part.zero for part in item.parts):
        yield finding(
            "output-all-zero", "warn", "every value in it is zero", where=item.name
        )
    yield from _admitted(item)


def _admitted(item: OutputComparison) -> Iterator[Finding]:
    """Yield that a tolerance let an error pass that no tolerance is for."""
    hidden = next((part for part in item.parts if _is_hidden(part)), None)
    if hidden is not None:
        name = f"{hidden.name}: " if hidden.name else ""
        yield finding(
            "hidden-by-atol",
            "warn",
            f"{name}within the tolerance only because its absolute bound is as large "
            "as the values themselves",
            where=item.name,
            expected=f"values near {hidden.scale}",
            got=f"atol {hidden.atol}, relative L2 error {hidden.relative_l2}",
        )
        return
    large = next((part for part in item.parts if _is_large(part)), None)
    if large is not None:
        name = f"{large.name}: " if large.name else ""
        yield finding(
            "large-error",
            "warn",
            f"{name}within the tolerance, and yet the error is about as large as the "
            "values themselves",
            where=item.name,
            expected=f"a relative L2 error below {_AS_LARGE:g}",
            got=f"{large.relative_l2}, {large.outside:,} of {large.elements:,} outside",
        )


def _holds_nothing(item: OutputComparison, output: Output) -> bool:
    if item.result in _GOOD and item.parts:
        return not any(part.elements for part in item.parts)
    return bool(output.arrays) and all(0 in array.shape for array in output.arrays)


def _is_hidden(part: ArrayComparison) -> bool:
    error = _error_that_was_admitted(part)
    if not error or not part.atol or part.rtol is None or part.scale is None:
        return False
    small = 0.0 < float(part.scale) <= part.atol
    return small and error > max(_LARGE_ERROR, part.rtol)


def _is_large(part: ArrayComparison) -> bool:
    """Tell whether what was admitted is an error about as large as the values."""
    return _error_that_was_admitted(part) >= _AS_LARGE


def _error_that_was_admitted(part: ArrayComparison) -> float:
    """Return the relative L2 error of a part within its tolerance, 0 of any other."""
    if part.equal or part.problem or part.relative_l2 is None or not part.scale:
        return 0.0
    return float(part.relative_l2)


def _any_compared(
    reference: Record, comparisons: Sequence[OutputComparison], policy: Policy
) -> Iterator[Finding]:
    """Refuse to call a comparison of nothing a success."""
    judged = [item for item in comparisons if not item.excluded]
    known = [item for item in judged if item.result != "unexpected"]
    if known:
        return
    if reference.outcome.expected_failure:
        # Then the error is what is compared.
        return
    reason = "the reference has no outputs to compare with"
    if comparisons:
        reason = "every output is left out by rule or belongs to another claim"
    yield finding("nothing-compared", "fail", reason, got=policy.profile)
