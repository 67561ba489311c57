"""Compare any two runs, and say what the pair can show and what it cannot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reprobundle.format.difference_report import (
    Axis,
    Change,
    Conclusion,
    DifferenceReport,
    Effect,
)
from reprobundle.format.findings import OutputComparison
from reprobundle.verify.compare import compare_outputs
from reprobundle.verify.environment import NOT_RECORDED
from reprobundle.verify.pairs.axes import ASKED, COUNTED, axis_of
from reprobundle.verify.pairs.changes import find_changes
from reprobundle.verify.pairs.chosen_run import ChosenRun
from reprobundle.verify.pairs.effects import find_effects
from reprobundle.verify.pairs.overridden import overridden
from reprobundle.verify.pairs.repeats import reduced_run
from reprobundle.verify.pairs.tables import find_tables

EXIT_SAME = 0
EXIT_DIFFERENT = 10
_EQUAL = frozenset({"bit-identical"})
_GOOD = frozenset({"bit-identical", "within-tolerance"})


def diff_runs(left: ChosenRun, right: ChosenRun) -> DifferenceReport:
    """Return what differs between two runs, under the policy of the left one.

    Args:
        left: The run that counts as before.
        right: The run that counts as after.
    """
    changes = tuple(find_changes(left.record, right.record))
    outputs = compare_outputs(
        left.record,
        right.record,
        left.content,
        right.content,
        policy=left.policy,
    )
    effects = tuple(find_effects(left.record, right.record))
    axes = tuple(dict.fromkeys(one.axis for one in changes if one.axis in COUNTED))
    ending = effects[0]
    same = (
        not axes
        and not _one_sided(changes)
        and all(one.result in _EQUAL or one.excluded for one in outputs)
        and ending.left == ending.right
    )
    return DifferenceReport(
        left=left.name,
        right=right.name,
        changes=changes,
        axes=axes,
        outputs=outputs,
        effects=effects,
        conclusions=(
            *_conclusions(changes, axes, outputs, ending),
            *overridden(left.record, right.record),
            *_repeats(left, right, changes),
        ),
        tables=tuple(find_tables(left.record, right.record, axes, outputs)),
        exit_status=EXIT_SAME if same else EXIT_DIFFERENT,
    )


def _repeats(
    left: ChosenRun, right: ChosenRun, changes: Sequence[Change]
) -> Iterator[Conclusion]:
    found = reduced_run(left, right, changes)
    if found is not None:
        yield found


def _conclusions(
    changes: Sequence[Change],
    axes: Sequence[Axis],
    outputs: Sequence[OutputComparison],
    ending: Effect,
) -> Iterator[Conclusion]:
    yield _one_change(changes, axes)
    compared = [one for one in outputs if not one.excluded]
    if not compared:
        yield Conclusion(
            rule="nothing-compared", text="neither run has an output to compare"
        )
        return
    # A minimal round leaves exports out: that is the change and not its effect.
    left_out = ("missing",) if axes == ("keeping",) else ()
    differing = [one.name for one in compared if one.result not in (*_GOOD, *left_out)]
    if ending.left != ending.right:
        yield Conclusion(
            rule="other-ending",
            text="the runs ended differently; their outputs show nothing about the "
            "change",
            evidence=(f"{ending.left} against {ending.right}",),
        )
    elif differing and not axes:
        yield Conclusion(
            rule="not-repeatable",
            text="nothing that is recorded was changed, yet the outputs differ: the "
            "run does not repeat",
            evidence=tuple(differing),
        )
    elif differing and _count(changes) == 1:
        yield Conclusion(
            rule="one-change-differs",
            text=f"the change of {axes[0]} moves the outputs outside the policy; a "
            "repeat of either run shows whether it alone does",
            evidence=tuple(differing),
        )
    elif not differing and _count(changes) == 1:
        yield Conclusion(
            rule="one-change-agrees",
            text=f"the change of {axes[0]} leaves every output within the policy",
            evidence=tuple(one.name for one in compared),
        )


def _one_change(changes: Sequence[Change], axes: Sequence[Axis]) -> Conclusion:
    evidence = tuple(
        f"{one.axis}: {one.name}" for one in changes if one.axis in COUNTED
    )
    number = _count(changes)
    if not axes:
        text = "nothing that counts was changed"
    elif number == 1:
        text = f"one thing was changed: {axes[0]}"
    else:
        text = (
            f"{number} things were changed at once ({', '.join(axes)}): what comes "
            "of it cannot be told apart; change one at a time"
        )
    unknown = _one_sided(changes)
    if unknown:
        facts = "fact that counts is" if len(unknown) == 1 else "facts that count are"
        text += f"; {len(unknown)} {facts} known of one side only ({unknown[0]} …)"
    return Conclusion(rule="one-change", text=text, evidence=evidence)


def _one_sided(changes: Sequence[Change]) -> list[str]:
    """Return the facts on an axis that counts which one side did not record.

    A change may hide there, so the two runs are never said to be the same.
    """
    return [
        one.name
        for one in changes
        if NOT_RECORDED in (one.left, one.right)
        and not one.name.startswith(ASKED)
        and axis_of(one.name) in COUNTED
    ]


def _count(changes: Sequence[Change]) -> int:
    """Return how many things were changed: each axis once, each argument by itself."""
    counted = [one for one in changes if one.axis in COUNTED]
    return len({one.name if one.axis == "command" else one.axis for one in counted})
