"""Whether two runs began with the same weights, inputs and batches (V12).

Outputs that differ mean something else when the runs did not start equal: then no
operator needs to be at fault. So this is told before outputs are compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from reprobundle.format.findings import Finding
from reprobundle.format.record import Record, StartTensor, as_float
from reprobundle.verify.checks import finding

MOST_NAMED = 3
# The norm of what a generator draws on another CPU agrees to about 1e-7.
ROUNDING = 1e-5


class Difference(NamedTuple):
    """One thing that the two runs began with differently.

    Attributes:
        where: Its name.
        words: How it differs, one phrase.
        expected: What the reference had.
        got: What the replay had.
        rounding: Whether only last digits can differ.
    """

    where: str
    words: str
    expected: str
    got: str
    rounding: bool = False


def check_start(
    reference: Record, replay: Record, *, identical: bool
) -> Iterator[Finding]:
    """Yield the finding about what both runs began with.

    Args:
        reference: The sealed run.
        replay: The run that is judged.
        identical: Whether all outputs are bit-identical: what was different at the
            start had no effect then.
    """
    if "torch.version" not in reference.environment:
        reason = "the run has no weights or batches of torch"
        yield finding("same-start", "not-applicable", reason)
        return
    pairs = _pairs(reference, replay)
    found = [*_loader_difference(reference, replay), *_differences(pairs)]
    if found and not identical:
        yield _unequal(found)
        return
    if found:
        note = f"{found[0].where} {found[0].words}; every output is equal all the same"
        yield finding("same-start", "pass", note)
        return
    yield _equal(reference, pairs)


def _pairs(reference: Record, replay: Record) -> list[tuple[StartTensor, StartTensor]]:
    """Return the tensors that both sides name, of both sides."""
    return [
        (tensor, other)
        for tensor in reference.randomness.start
        # A record may name one twice; then each has to be the reference's.
        for other in replay.randomness.start
        if other.name == tensor.name
    ]


def _is_read(pair: tuple[StartTensor, StartTensor]) -> bool:
    """Tell whether both sides read the same places."""
    one, other = pair
    return bool(one.fingerprint and other.fingerprint) and one.sampled == other.sampled


def _differences(
    pairs: Sequence[tuple[StartTensor, StartTensor]],
) -> Iterator[Difference]:
    for pair in pairs:
        one, other = pair
        forms = [f"{side.dtype}{list(side.shape)}" for side in pair]
        if forms[0] != forms[1]:
            yield Difference(one.name, "has another form", forms[0], forms[1])
        elif _is_read(pair) and one.fingerprint != other.fingerprint:
            yield _value_difference(one, other)


def _value_difference(one: StartTensor, other: StartTensor) -> Difference:
    norms = [None if side.l2 is None else as_float(side.l2) for side in (one, other)]
    close = _is_close(norms[0], norms[1])
    words = "differs, by its norm in the last digits only" if close else "differs"
    return Difference(
        one.name, words, _shown(one, norms[0]), _shown(other, norms[1]), rounding=close
    )


def _is_close(one: float | None, other: float | None) -> bool:
    if one is None or other is None or not (math.isfinite(one) and one):
        return False
    return abs(other - one) <= ROUNDING * abs(one)


def _shown(tensor: StartTensor, norm: float | None) -> str:
    return tensor.fingerprint + ("" if norm is None else f" (norm {norm:.9g})")


def _loader_difference(reference: Record, replay: Record) -> Iterator[Difference]:
    """Yield the first data loader pass that began from another generator state."""
    both = zip(reference.randomness.loaders, replay.randomness.loaders, strict=False)
    for one, other in both:
        if one.base_seed != other.base_seed:
            yield Difference(
                one.where,
                "starts a data loader from another base seed",
                one.base_seed,
                other.base_seed,
            )
            return


def _unequal(found: list[Difference]) -> Finding:
    named = "; ".join(f"{one.where} {one.words}" for one in found[:MOST_NAMED])
    if len(found) > MOST_NAMED:
        named += f"; and {len(found) - MOST_NAMED} more"
    advice = "look for an unseeded generator, or for other data or weights"
    if all(one.rounding for one in found):
        advice = "the same seed draws other last digits on another CPU: compare within"
        advice += " the tolerances, or start both runs from stored weights"
    first = found[0]
    return finding(
        "same-start",
        "warn",
        f"the two runs did not start equal: {named}",
        where=first.where,
        expected=first.expected,
        got=first.got,
        advice=advice,
    )


def _equal(
    reference: Record, pairs: Sequence[tuple[StartTensor, StartTensor]]
) -> Finding:
    """Return the finding where nothing differs; what was not read stays unchecked."""
    read = [pair for pair in pairs if _is_read(pair)]
    missing = len(reference.randomness.start) - len(read)
    if not read or missing:
        reason = (
            f"{missing} of {len(reference.randomness.start)} tensors that the "
            "reference began with were not read on both sides"
            if reference.randomness.start
            else "what the reference began with was not recorded"
        )
        return finding("same-start", "not-checked", reason)
    sampled = sum(one.sampled for one, _ in read)
    note = f"{len(read)} tensors of weights, inputs and batches are equal"
    if sampled:
        note += f", {sampled} large ones at sampled places"
    return finding("same-start", "pass", note)
