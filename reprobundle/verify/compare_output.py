"""How one output of a replay stands to its reference.

The order is that of spec.md, "Comparison": rule, format, equal digests (nothing more
to compute), then the content. Content that cannot be read as what it is called is
compared byte for byte, and content that was not kept is not compared, which is never
a success.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from reprobundle.errors import UnreadableOutputError
from reprobundle.format.findings import OutputComparison
from reprobundle.format.policy import Policy
from reprobundle.format.record import Output
from reprobundle.verify.compare_contents import compare_contents
from reprobundle.verify.content import Content
from reprobundle.verify.held import held_parts
from reprobundle.verify.rules import DevicePair
from reprobundle.verify.sides import Sides
from reprobundle.verify.summaries import compare_summaries
from reprobundle.verify.summing_up import (
    concluded,
    excluded,
    first_problem,
    sum_up,
    uncompared,
)

BY_DIGEST = "byte for byte the same by digest; its author keeps the content"
# A sample holds elements of arrays only.
_TEXTS = "texts beside the arrays were not compared"
_HAVE_TEXTS = ("safetensors", "checkpoint")
_NOT_KNOWN = "whether the values agree within the tolerance is not known"


def compare_output(
    reference: Output,
    replay: Output,
    reference_content: Content,
    replay_content: Content,
    policy: Policy,
    devices: DevicePair,
    others: Mapping[str, Output] = MappingProxyType({}),
) -> OutputComparison:
    """Return how one output stands to its reference.

    Args:
        reference: The output of the run that counts as right.
        replay: The output of the same name of the other run.
        reference_content: Where the reference's content lies.
        replay_content: Where the other run's content lies.
        policy: The frozen policy.
        devices: Whether both ran on the same kind of device.
        others: All outputs of the reference by name, which a rule may point at.
    """
    sides = Sides(
        reference, replay, reference_content, replay_content, policy, devices, others
    )
    if sides.rule is not None and not sides.rule.compare:
        return excluded(reference, f"left out by rule: {sides.rule.reason}")
    if (reference.kind, reference.format) != (replay.kind, replay.format):
        reason = f"format {replay.format}, expected {reference.format}"
        return uncompared(reference, "outside-tolerance", reason)
    if policy.profile == "compat":
        return _by_structure(sides)
    if (reference.size_bytes, reference.blake3) == (replay.size_bytes, replay.blake3):
        # Both have the same bytes. What is in them is read, and told by their
        # summaries only where nobody may read it.
        held = held_parts(sides)
        parts = compare_summaries(reference, replay) if held is None else held
        reason = BY_DIGEST if reference.stored == "withheld" else ""
        return concluded(reference, "bit-identical", reason, parts)
    return _by_content(sides)


def _by_structure(sides: Sides) -> OutputComparison:
    """Compare names, dtypes and shapes only, as the profile ``compat`` asks."""
    parts = compare_summaries(sides.reference, sides.replay)
    if any(part.problem for part in parts):
        reason = first_problem(parts)
        return concluded(sides.reference, "outside-tolerance", reason, parts)
    reason = "the profile compat compares structure, not values"
    return concluded(sides.reference, "not-compared", reason, parts)


def _by_content(sides: Sides) -> OutputComparison:
    """Read both sides and compare what is in them."""
    if "withheld" in (sides.reference.stored, sides.replay.stored):
        return _withheld(sides)
    if "sample" in (sides.reference.stored, sides.replay.stored):
        return _by_samples(sides)
    unread = _unread(sides)
    return _without_content(sides, unread) if unread else compare_contents(sides)


def _withheld(sides: Sides) -> OutputComparison:
    """Tell what is known of bytes that differ and that nobody may look at."""
    parts = compare_summaries(sides.reference, sides.replay)
    if any(part.problem for part in parts):
        problem = first_problem(parts)
        return concluded(sides.reference, "outside-tolerance", problem, parts)
    side = "author" if sides.reference.stored == "withheld" else "replayer"
    reason = f"the bytes differ, and the {side} keeps the content: {_NOT_KNOWN}"
    return concluded(sides.reference, "not-compared", reason)


def _by_samples(sides: Sides) -> OutputComparison:
    """Compare what samples hold; the side that kept all is sampled now."""
    if sides.reference.kind in ("table", "document", "text", "log"):
        return _by_rows(sides)
    from reprobundle.verify import compare_samples, sampled

    leave_out = sides.ignored()
    key = sides.reference.sample_key or sides.replay.sample_key
    both = (
        (sides.reference, sides.reference_content),
        (sides.replay, sides.replay_content),
    )
    try:
        held = [sampled.read_side(one, content, key) for one, content in both]
    except UnreadableOutputError as error:
        return _without_content(sides, f"the bytes differ, and {error.message}")
    names = {one.summary.name for side in held for one in side}
    ignored = {name for name in names if leave_out((name,))}
    parts = compare_samples.compare_samples(
        [one for one in held[0] if one.summary.name not in ignored],
        [one for one in held[1] if one.summary.name not in ignored],
        sides.tolerance,
    )
    has_texts = sides.reference.format in _HAVE_TEXTS
    seen = sampled.told(parts)
    return sum_up(
        sides.reference,
        parts,
        tuple(sorted(ignored)),
        unseen=f"the arrays are identical; {_TEXTS}" if has_texts else "",
        partly=f"{seen}; {_TEXTS}" if has_texts else seen,
    )


def _by_rows(sides: Sides) -> OutputComparison:
    """Compare the rows that samples hold, and what is known about all of them."""
    from reprobundle.verify.compare_rows import Rules, compare_rows

    has_cells = sides.reference.kind in ("table", "document")
    rule = sides.rule
    of_text = rule.tolerance if rule is not None else None
    rules = Rules(
        tolerance=sides.tolerance("number") if has_cells else of_text,
        ignored=sides.ignored(),
        first_rows=rule.rows if rule is not None and has_cells else None,
    )
    both = (
        (sides.reference, sides.reference_content),
        (sides.replay, sides.replay_content),
    )
    try:
        done = compare_rows(*both, rules)
    except UnreadableOutputError as error:
        return _without_content(sides, f"the bytes differ, and {error.message}")
    return sum_up(sides.reference, done.parts, done.ignored, partly=done.told)


def _unread(sides: Sides) -> str:
    """Return why the content of one side cannot be read, or an empty string."""
    for side, output in (("reference", sides.reference), ("replay", sides.replay)):
        if output.format == "checkpoint":
            if not output.arrays_member:
                return (
                    f"the bytes differ, and the {side}'s tensors were not exported"
                    " (a checkpoint is never unpickled)"
                )
        elif output.stored == "none":
            return f"the bytes differ, and the {side}'s content was not kept"
    return ""


def _without_content(sides: Sides, reason: str) -> OutputComparison:
    parts = compare_summaries(sides.reference, sides.replay)
    if sides.reference.kind == "bytes":
        # Plain bytes are compared exactly, and that they differ is known.
        return concluded(sides.reference, "outside-tolerance", reason, parts)
    if any(part.problem for part in parts):
        problem = first_problem(parts)
        return concluded(sides.reference, "outside-tolerance", problem, parts)
    return concluded(sides.reference, "not-compared", reason)
