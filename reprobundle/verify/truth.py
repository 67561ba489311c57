"""Which side of a comparison lies nearer to a float64 run on the CPU (V23).

The float64 run is a truth only if nothing of it was left in a shorter dtype and if it
drew the numbers that the reference drew. It explains a difference: it tells whose
rounding made it. It never excuses one, so no verdict follows from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from reprobundle.errors import ReprobundleError
from reprobundle.format.findings import Finding
from reprobundle.format.judged import TruthComparison
from reprobundle.format.reader import Bundle
from reprobundle.format.record import Output, Randomness, Record, number
from reprobundle.verify.checks import finding
from reprobundle.verify.content import Content
from reprobundle.verify.content import sealed as sealed_content
from reprobundle.verify.ending import is_finished
from reprobundle.verify.rules import ignores, rule_for
from reprobundle.verify.sealed import REFERENCE_RUN, Sealed

# Two correct float32 sums of one series differ in their errors by such a factor.
CLEARLY = 2.0
_COMPARABLE = ("arrays", "table", "document")


def check_truth(sealed: Sealed) -> Iterator[Finding]:
    """Yield whether the bundle holds a float64 run that can serve as a truth."""
    if sealed.truth is None:
        reason = "no float64 run was asked for"
        yield finding("truth-made", "not-applicable", reason)
        return
    number_, truth = sealed.truth
    where = f"runs/{number_}"
    problem = unusable(sealed.reference, truth)
    if problem:
        yield finding(
            "truth-made",
            "not-checked",
            problem,
            where=where,
            advice="see docs/truth.md",
        )
        return
    done = truth.promotion
    count = done.operators if done is not None else 0
    note = f"{count:,} operators ran in float64 and none in less"
    yield finding("truth-made", "pass", note, where=where)


def unusable(reference: Record, truth: Record) -> str:
    """Return why a float64 run is no truth about the reference; empty if it is one."""
    if not is_finished(truth) or truth.outcome.exit_status:
        error = truth.outcome.error
        detail = f": {error.type}: {error.message}" if error else ""
        return f"the float64 run failed{detail}"[:300]
    if any(not process.entered for process in truth.processes):
        return "the recorder was not in every Python process of the float64 run"
    if any(remark.severity == "failure" for remark in truth.remarks):
        return next(r.text for r in truth.remarks if r.severity == "failure")
    if truth.files_digest != reference.files_digest:
        return "the float64 run started from other files than the reference"
    return _left(truth) or _draws(reference, truth)


def _left(truth: Record) -> str:
    done = truth.promotion
    if done is None or not done.operators:
        return "nothing was promoted: the command ran no operator of torch"
    if not done.left:
        return ""
    first = done.left[0]
    if not first.operator:
        return first.why
    calls = sum(one.count for one in done.left)
    return (
        f"{calls:,} calls of {len(done.left)} operators were left in less than "
        f"float64, such as {first.operator}: {first.why}"
    )


def _draws(reference: Record, truth: Record) -> str:
    """Return why the float64 run may have drawn other numbers than the reference."""
    expected, got = reference.randomness, truth.randomness
    accelerated = [name for name in reference.devices.observed if name != "cpu"]
    if accelerated and (expected.drawn.mode == "native" or expected.drawn.on_device):
        return (
            f"the reference ran on {accelerated[0]} with draws of its own generator, "
            "which the CPU does not have: pack with --rng portable"
        )
    names = [name for name in expected.final if not name.startswith("torch.cuda")]
    if not names:
        return "the generators' states at the end of the reference are not known"
    for name in sorted(names):
        equal = got.final.get(name) == expected.final[name]
        if not (equal or (_rested(expected, name) and _rested(got, name))):
            return (
                f"the generator {name} was drawn from otherwise than in the reference"
            )
    return ""


def _rested(randomness: Randomness, name: str) -> bool:
    """Whether nobody drew from a generator or seeded it; the system seeds numpy's."""
    last = randomness.final.get(name)
    return last is not None and last == randomness.initial.get(name)


def compare_truth(
    bundle: Bundle, sealed: Sealed, replay: Record, content: Content
) -> tuple[TruthComparison, ...]:
    """Return both sides' error against the float64 run; empty without a usable one.

    Args:
        bundle: The bundle.
        sealed: Its decoded documents.
        replay: A replay of the main command.
        content: Where its content lies.
    """
    if sealed.truth is None or replay.runs != REFERENCE_RUN:
        return ()
    place, truth = sealed.truth
    if unusable(sealed.reference, truth):
        return ()
    sides = (
        (truth, sealed_content(bundle, place, truth)),
        (sealed.reference, sealed_content(bundle, REFERENCE_RUN, sealed.reference)),
        (replay, content),
    )
    found = (
        _compared(sealed, output, sides)
        for output in sealed.reference.outputs
        if output.kind in _COMPARABLE and _is_compared(sealed, output.name)
    )
    return tuple(one for one in found if one is not None)


def _is_compared(sealed: Sealed, name: str) -> bool:
    rule = rule_for(sealed.policy, name)
    return rule is None or rule.compare


def _compared(
    sealed: Sealed, output: Output, sides: Sequence[tuple[Record, Content]]
) -> TruthComparison | None:
    """Return one output against the truth; None where rounding touches nothing."""
    from reprobundle.verify import distances

    held = []
    for record, content in sides:
        other = next((one for one in record.outputs if one.name == output.name), None)
        if other is None or (other.kind, other.format) != (output.kind, output.format):
            return _unknown(output, "not every side has this output")
        if other.stored not in ("here", "sealed"):
            return _unknown(output, "its content is not kept whole on every side")
        held.append((other, content))
    try:
        found = distances.measure(held, ignores(sealed.policy, output.name))
    except (ReprobundleError, OSError) as error:
        return _unknown(output, f"it cannot be read: {error}"[:200])
    if found.problem:
        return _unknown(output, found.problem)
    if not found.has_decimals:
        return None
    left, right = found.relative
    return TruthComparison(
        name=output.name,
        elements=found.elements,
        reference_error=number(left),
        replay_error=number(right),
        reference_max=number(found.largest[0]),
        replay_max=number(found.largest[1]),
        worse=_worse(left, right),
    )


def _worse(
    reference: float, replay: float
) -> Literal["reference", "replay", "neither"]:
    if reference > CLEARLY * replay:
        return "reference"
    return "replay" if replay > CLEARLY * reference else "neither"


def _unknown(output: Output, reason: str) -> TruthComparison:
    return TruthComparison(name=output.name, worse="not-checked", reason=reason)


def check_nearer(truths: Sequence[TruthComparison]) -> Iterator[Finding]:
    """Yield which side of each output is worse, as a finding that decides nothing."""
    for one in truths:
        if one.worse == "not-checked":
            reason = f"not compared with the float64 run: {one.reason}"
            yield finding("truth-nearer", "not-checked", reason, where=one.name)
        else:
            yield finding("truth-nearer", "pass", words(one), where=one.name)


def words(one: TruthComparison) -> str:
    """Return one comparison with the truth in words."""
    if one.worse == "not-checked":
        return one.reason
    said = {
        "neither": "neither side is clearly worse",
        "reference": "the reference is worse",
        "replay": "the replay is worse",
    }[one.worse]
    return (
        f"{said}: relative error against float64 {_figure(one.reference_error)} "
        f"(reference), {_figure(one.replay_error)} (replay)"
    )


def _figure(value: object) -> str:
    return f"{float(str(value)):.3g}"
