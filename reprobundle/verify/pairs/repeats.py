"""Whether a reduced run has been repeated often enough to count.

A smaller batch that survives one pass is no repair: the reduced run has to pass the
relevant section several times under the same protocol (requirement C18).
"""

from __future__ import annotations

from collections.abc import Sequence

from reprobundle.format.difference_report import Change, Conclusion
from reprobundle.format.record import Record
from reprobundle.verify.devices import device_of
from reprobundle.verify.ending import is_finished
from reprobundle.verify.pairs.axes import ASKED
from reprobundle.verify.pairs.chosen_run import ChosenRun

NEEDED = 3
_REDUCING = frozenset({"batch", "shape", "keeping"})


def reduced_run(
    left: ChosenRun, right: ChosenRun, changes: Sequence[Change]
) -> Conclusion | None:
    """Return whether the right run counts, if it is the left one made smaller.

    It is so where batch, shapes or what is kept were changed, and wherever it came to
    its end and the left one did not.
    """
    rescued = is_finished(right.record) and not _succeeded(left.record)
    reduced = any(one.axis in _REDUCING for one in changes)
    if not (rescued or reduced):
        return None
    alike = [one for one in right.fellows if same_protocol(one, right.record)]
    passed = sum(_succeeded(one) for one in alike)
    failed = len(alike) - passed
    evidence = (f"{passed} of {len(alike)} runs of this protocol came to their end",)
    if passed >= NEEDED and not failed:
        return Conclusion(
            rule="reduced-run-counts",
            text=f"the reduced run passed {passed} times under one protocol",
            evidence=evidence,
        )
    return Conclusion(
        rule="reduced-run-not-yet",
        text=f"a reduced run counts only after {NEEDED} runs of the same protocol, all "
        f"passed; of this one {passed} passed and {failed} failed: repeat it",
        evidence=evidence,
    )


def same_protocol(one: Record, other: Record) -> bool:
    """Whether two runs did the same, on the same kind of device, for the same claim."""
    return _protocol(one) == _protocol(other) and _counts(one) and _counts(other)


def _counts(record: Record) -> bool:
    return record.pass_name in ("measured", "repeat")


def _succeeded(record: Record) -> bool:
    outcome = record.outcome
    return is_finished(record) and outcome.exit_status == 0


def _protocol(record: Record) -> tuple[object, ...]:
    asked = {
        name: fact.value
        for name, fact in record.environment.items()
        if name.startswith(ASKED)
    }
    return (
        record.claim,
        record.command.argv,
        record.command.working_directory,
        record.command.seed,
        record.files_digest,
        record.platform,
        device_of(record),
        record.environment.get("torch.version"),
        sorted(asked.items()),
    )
