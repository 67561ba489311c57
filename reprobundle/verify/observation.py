"""Whether a run was watched completely, and what it showed that matters."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from reprobundle.format.findings import CheckOutcome, Finding
from reprobundle.format.record import Record, Remark
from reprobundle.verify.checks import finding
from reprobundle.verify.items import ITEMS
from reprobundle.verify.ranks import check_ranks

# Remarks that other checks look at in the facts themselves, or that are no gap.
_ELSEWHERE = frozenset(
    {
        "data-copy",
        "no-seed",
        "nothing-entered",
        "python-not-entered",
        "python-warning",
        "reduced-input",
        "standin-data",
    }
)
_FORKED = "--multiprocessing-fork"
_GENERIC: dict[str, tuple[str, CheckOutcome]] = {
    "gap": ("run-gap", "not-checked"),
    "warning": ("run-warning", "warn"),
    "failure": ("run-failure", "fail"),
}


def check_observation(
    record: Record, reference: Record | None = None
) -> Iterator[Finding]:
    """Yield the findings of V13 about one replay.

    Args:
        record: The replay, or a sealed run by itself.
        reference: What the replay stands against.
    """
    yield from _processes(record)
    if reference is not None and _fails_inside(record) and not _fails_inside(reference):
        record = msgspec.structs.replace(
            record, remarks=tuple(map(_failed_only_here, record.remarks))
        )
    yield from _failures_behind_a_zero(record)
    yield from _without_end(record)
    yield from check_ranks(record)
    for remark in record.remarks:
        if remark.id not in _ELSEWHERE:
            yield _remark(record, remark)


def check_reference_observation(record: Record, where: str) -> Iterator[Finding]:
    """Yield the findings of V11 about how completely a sealed run was watched.

    Args:
        record: The sealed run.
        where: Its name, such as ``runs/1``.
    """
    names: dict[CheckOutcome, str] = {
        "fail": "reference-trouble",
        "warn": "reference-trouble",
        "not-checked": "reference-gap",
    }
    found = [seen for seen in check_observation(record) if seen.outcome in names]
    for seen in found:
        place = f"{where}, {seen.where}" if seen.where else where
        yield finding(
            names[seen.outcome],
            seen.outcome,
            seen.reason,
            where=place,
            expected=seen.expected,
            got=seen.got,
        )
    if not any(seen.outcome in ("fail", "warn") for seen in found):
        yield finding("reference-trouble", "pass", where=where)


def _processes(record: Record) -> Iterator[Finding]:
    entered = sum(process.entered for process in record.processes)
    missed = [process for process in record.processes if not process.entered]
    if not entered:
        yield finding(
            "nothing-entered",
            "fail",
            "the recorder entered no Python process: nothing about the run is known",
            got="0 processes",
        )
        return
    yield finding("nothing-entered", "pass", got=f"{entered} processes")
    if not missed:
        yield finding("python-not-entered", "pass")
        return
    command = " ".join(missed[0].argv)[:200]
    yield finding(
        "python-not-entered",
        "warn",
        f"{len(missed)} Python processes ran without the recorder; what they read, "
        "seeded and computed on is not known",
        where=command,
        expected=f"{entered + len(missed)} entered",
        got=f"{entered} entered",
    )


def _fails_inside(record: Record) -> bool:
    """Whether a Python process failed behind the command's own status 0."""
    return record.outcome.exit_status == 0 and any(
        process.exit_status and process.kind in ("main", "python")
        for process in record.processes
    )


def _failed_only_here(remark: Remark) -> Remark:
    """Return the remark as a failure: the reference's processes all succeeded."""
    if remark.id != "masked-failure":
        return remark
    text = f"{remark.text}; in the reference none failed"
    return msgspec.structs.replace(remark, severity="failure", text=text)


def _failures_behind_a_zero(record: Record) -> Iterator[Finding]:
    """Yield the failed processes of a run that says it succeeded, told or not."""
    told = any(remark.id == "masked-failure" for remark in record.remarks)
    if told or record.outcome.exit_status != 0:
        return
    for process in record.processes:
        if process.exit_status and process.kind in ("main", "python"):
            yield finding(
                "masked-failure",
                "fail",
                "a Python process failed, and the run says nothing of it",
                where=" ".join(process.argv)[:200],
                expected="0",
                got=process.exit_status,
            )


def _without_end(record: Record) -> Iterator[Finding]:
    """Yield the processes of a success of which no end was seen, told or not.

    The workers of a pool are ended by whoever started them.
    """
    told = any(remark.id == "process-without-end" for remark in record.remarks)
    if told or record.outcome.exit_status != 0 or not record.outcome.completed:
        return
    for process in record.processes:
        is_own = process.entered and process.kind in ("main", "python")
        if is_own and not process.ended and _FORKED not in process.argv:
            yield finding(
                "run-warning",
                "warn",
                "process-without-end: a Python process did not report its end, and "
                "the run says nothing of it",
                where=" ".join(process.argv)[:200],
            )


def _remark(record: Record, remark: Remark) -> Finding:
    generic, outcome = _GENERIC[remark.severity]
    if remark.id == "read-outside-project" and _all_reads_known(record):
        return finding(
            "read-outside-project",
            "pass",
            "every file read outside the project is known by its digest",
            where=remark.where,
        )
    # A known name keeps its own finding only where the table says what it leads to.
    item = ITEMS.get(remark.id)
    known = item is not None and item.check == "V13" and outcome in item.consequence
    text = remark.text if known else f"{remark.id}: {remark.text}"
    return finding(remark.id if known else generic, outcome, text, where=remark.where)


def _all_reads_known(record: Record) -> bool:
    return all(read.blake3 for read in record.reads)
