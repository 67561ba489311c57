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
from reprobundle.verify.devices import device_of
from reprobundle.verify.ending import is_finished
from reprobundle.verify.rules import ignores, rule_for
from reprobundle.verify.sealed import Sealed

# Two correct float32 sums of one series differ in their errors by such a factor.
CLEARLY = 2.0
_ACCELERATED = ("torch.cuda", "torch.mps")
_COMPARABLE = ("arrays", "table", "document")


def check_truth(sealed: Sealed) -> Iterator[Finding]:
    """Yield whether the float64 run can serve as a truth, for each device's run.

    One run in float64 serves them all: it is a truth about every sealed run that drew
    the same numbers from the same files.
    """
    if sealed.truth is None:
        reason = "no float64 run was asked for"
        yield finding("truth-made", "not-applicable", reason)
        return
    number_, truth = sealed.truth
    for at, main in sealed.mains:
        # One run needs no name; of several, each finding says which it is about.
        of = "" if len(sealed.mains) == 1 else f" (run {at}, on {device_of(main)})"
        yield _about(main, truth, where=f"runs/{number_}", of=of)


def _about(main: Record, truth: Record, *, where: str, of: str) -> Finding:
    problem = unusable(main, truth)
    if problem:
        return finding(
            "truth-made",
            "not-checked",
            f"{problem}{of}",
            where=where,
            advice="see docs/truth.md",
        )
    done = truth.promotion
    count = done.operators if done is not None else 0
    note = f"{count:,} operators ran in float64 and none in less{of}"
    return finding("truth-made", "pass", note, where=where)


def unusable(reference: Record, truth: Record) -> str:
    """Return why a float64 run is no truth about a sealed run; empty if it is one.

    Args:
        reference: The main command's measured run on one device.
        truth: Its run in float64 on the CPU.
    """
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
    # What an accelerator's own generator is left at says nothing about the CPU's.
    names = [name for name in expected.final if not name.startswith(_ACCELERATED)]
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
    bundle: Bundle, sealed: Sealed, number_: int, replay: Record, content: Content
) -> tuple[TruthComparison, ...]:
    """Return both sides' error against the float64 run; empty without a usable one.

    Args:
        bundle: The bundle.
        sealed: Its decoded documents.
        number_: The sealed run that the replay is judged against.
        replay: A replay of the main command, on whatever device.
        content: Where its content lies.
    """
    reference = dict(sealed.mains).get(number_)
    if sealed.truth is None or reference is None:
        return ()
    place, truth = sealed.truth
    if unusable(reference, truth):
        return ()
    sides = (
        (truth, sealed_content(bundle, place, truth)),
        (reference, sealed_content(bundle, number_, reference)),
        (replay, content),
    )
    found = (
        _compared(sealed, output, sides)
        for output in reference.outputs
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
