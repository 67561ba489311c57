"""What the recorded runs of a bundle show of two habits: one change, a minimal round.

Both are points of the acceptance list (C44, C45, check V10). Experiments show them, and
the sealed run they stand beside.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reprobundle.format.findings import Finding
from reprobundle.format.record import Record
from reprobundle.verify.checks import finding
from reprobundle.verify.ending import is_finished
from reprobundle.verify.experiments import asked_words

# What the point names: batch, sequence length or resolution (an input's shape).
SIZES = frozenset({"batch", "shape"})


def check_history(
    reference: Record, experiments: Sequence[Record]
) -> Iterator[Finding]:
    """Yield whether sizes were changed one at a time, and a minimal round was made.

    Args:
        reference: Run 1.
        experiments: Records of the attached experiments, in order.
    """
    yield _one_change(reference, experiments)
    yield _minimal(experiments)


def _one_change(reference: Record, experiments: Sequence[Record]) -> Finding:
    name = "lists-one-change"
    if not experiments:
        reason = "no recorded run changes a size (replay --ab, --shapes)"
        return finding(name, "not-checked", reason)
    from reprobundle.verify.pairs.axes import COUNTED
    from reprobundle.verify.pairs.changes import find_changes

    changed = []
    for left, right in _pairs(reference, experiments):
        found = find_changes(left, right)
        axes = tuple(dict.fromkeys(one.axis for one in found if one.axis in COUNTED))
        if SIZES.intersection(axes):
            changed.append((right, axes))
    several = [which for _, which in changed if len(which) > 1]
    if several:
        reason = f"a recorded run changes several things: {', '.join(several[0])}"
        return finding(name, "not-checked", reason)
    if not changed:
        reason = f"{len(experiments)} experiments, none of which changes a size"
        return finding(name, "not-checked", reason)
    last, (axis, *_) = changed[-1]
    note = f"{len(changed)} recorded changes of a size, each alone; {axis}: "
    return finding(name, "pass", note + asked_words(last))


def _pairs(
    reference: Record, experiments: Sequence[Record]
) -> Iterator[tuple[Record, Record]]:
    """Yield both sides of each pair, and the reference with each run on its own."""
    first: dict[tuple[str, str], Record] = {}
    for record in experiments:
        mark = record.experiment
        if mark is None or not mark.side:
            if record.claim == reference.claim:
                yield reference, record
            continue
        key = (mark.id, record.pass_name)
        if key in first:
            yield first.pop(key), record
        else:
            first[key] = record


def _minimal(experiments: Sequence[Record]) -> Finding:
    name = "lists-minimal"
    asked = [one for one in experiments if _round(one) == "minimal"]
    if not asked:
        reason = "no run without result lists and loggers is recorded (replay --round)"
        return finding(name, "not-checked", reason)
    from reprobundle.verify.pairs.overridden import listens

    heard = [one for one in asked if listens(one, "round")]
    if not heard:
        reason = "a minimal round was asked for, and the command does not listen"
        return finding(name, "not-checked", reason)
    finished = [one for one in heard if is_finished(one)]
    if not finished:
        reason = "the minimal round did not come to its end"
        return finding(name, "not-checked", reason)
    last = finished[-1]
    note = f"a minimal round on {last.platform}, exit {last.outcome.exit_status}"
    return finding(name, "pass", note, where=last.started)


def _round(record: Record) -> str:
    fact = record.environment.get("asked.round")
    return str(fact.value) if fact is not None else ""
