"""Whether the reference is fit to be compared with: its policy, its end, its repeat."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from reprobundle.format.findings import Finding, OutputComparison
from reprobundle.format.policy import Policy
from reprobundle.format.reader import Bundle
from reprobundle.format.record import STAND_IN, Record
from reprobundle.verify.checks import finding
from reprobundle.verify.content import sealed as sealed_content
from reprobundle.verify.defaults import is_widened
from reprobundle.verify.devices import device_of
from reprobundle.verify.ending import check_ending, is_finished
from reprobundle.verify.observation import check_reference_observation
from reprobundle.verify.protocol import check_protocol
from reprobundle.verify.sealed import Sealed

GOOD = ("bit-identical", "within-tolerance")


def check_reference(sealed: Sealed) -> Iterator[Finding]:
    """Yield the findings of V11 that the sealed records alone tell."""
    for number, record in sorted(sealed.runs.items()):
        if record.role in ("restart", "truth"):
            continue  # How these ended is judged apart (V22, V23).
        where = f"runs/{number}"
        yield _ending(record, where)
        yield from check_reference_observation(record, where)


def _ending(record: Record, where: str) -> Finding:
    outcome = record.outcome
    if not is_finished(record):
        reason = outcome.stop_detail or "the run did not come to its end"
        return finding("reference-ending", "fail", reason, where=where)
    if bool(outcome.exit_status) != outcome.expected_failure:
        expected = "a failure" if outcome.expected_failure else "exit status 0"
        return finding(
            "reference-ending",
            "fail",
            "the run did not end as its author says it should",
            where=where,
            expected=expected,
            got=outcome.exit_status,
        )
    return finding("reference-ending", "pass", where=where, got=outcome.exit_status)


def check_repeat(bundle: Bundle, sealed: Sealed) -> Iterator[Finding]:
    """Yield whether each command repeats on the author's machine (V11).

    The main command is asked on each device, a claim with a command of its own on the
    first one. On samples in the place of data nothing is claimed.
    """
    # One run needs no name; of several, each finding says which it is about.
    for number, main in sealed.mains:
        of = f" (run {number}, on {device_of(main)})" if sealed.counterparts else ""
        yield from _check_repeat(bundle, sealed, (number, main), of)
    for number, record in sorted(sealed.runs.items()):
        if record.role == "claim" and record.claim != STAND_IN:
            of = f" (claim {record.claim!r}, run {number})"
            yield from _check_repeat(bundle, sealed, (number, record), of)


def _check_repeat(
    bundle: Bundle, sealed: Sealed, first: tuple[int, Record], of: str
) -> Iterator[Finding]:
    main = first[1]
    repeats = sealed.fellows(main, "repeat")
    if not repeats:
        yield finding(
            "reference-not-repeatable",
            "not-checked",
            "no repeat pass was made, so it is not known whether the result repeats "
            f"on its own machine{of}",
            advice="pack with --passes measured,repeat",
        )
        return
    comparisons: list[OutputComparison] = []
    for number, repeat in repeats:
        other = _another_run(main, repeat)
        if other:
            where = f"runs/{number}"
            reason = f"the repeat pass repeats nothing: {other}{of}"
            yield finding("reference-not-repeatable", "warn", reason, where=where)
            return
        endings = [
            found for found in check_ending(main, repeat) if found.outcome != "pass"
        ]
        if endings:
            where = f"runs/{number}"
            reason = f"the repeat pass ended otherwise: {endings[0].reason}{of}"
            yield finding("reference-not-repeatable", "warn", reason, where=where)
            return
        comparisons += compare_sealed(bundle, sealed, first, (number, repeat))
    passes = 1 + len(repeats)
    for found in _repeats(comparisons, sealed.policy, passes=passes):
        yield msgspec.structs.replace(found, reason=f"{found.reason}{of}")


def _another_run(main: Record, again: Record) -> str:
    """Return why a sealed pass is no run of the same protocol, or nothing."""
    wrong = (one for one in check_protocol(main, again) if one.outcome == "fail")
    return next((f"{one.id}: {one.reason}" for one in wrong), "")


def compare_sealed(
    bundle: Bundle, sealed: Sealed, left: tuple[int, Record], right: tuple[int, Record]
) -> tuple[OutputComparison, ...]:
    """Return how the outputs of two sealed runs compare."""
    from reprobundle.verify.compare import compare_outputs

    return compare_outputs(
        left[1],
        right[1],
        sealed_content(bundle, *left),
        sealed_content(bundle, *right),
        policy=sealed.policy,
    )


def check_traced(bundle: Bundle, sealed: Sealed) -> Iterator[Finding]:
    """Yield whether tracing changed nothing in the sealed runs (V11)."""
    mains = dict(sealed.mains)
    for number, record in sorted(sealed.runs.items()):
        if record.role != "claim" and number not in mains:
            continue
        where = f"runs/{number}"
        traced = sealed.fellows(record, "evidence")
        if traced:
            yield _untouched(bundle, sealed, number, traced[-1][0])
        elif record.loaded_torch:
            yield finding(
                "tracing-changed-reference",
                "not-checked",
                "no evidence pass was made: which operators it ran is not known",
                where=where,
                advice="pack with --passes measured,repeat,evidence",
            )
        else:
            reason = "the run loaded no torch: there are no operators to trace"
            yield finding(
                "tracing-changed-reference", "not-applicable", reason, where=where
            )


def _untouched(bundle: Bundle, sealed: Sealed, number: int, traced: int) -> Finding:
    """Return whether a traced run gave what the measured one gave."""
    measured, again = sealed.runs[number], sealed.runs[traced]
    where = f"runs/{traced}"
    endings = [one for one in check_ending(measured, again) if one.outcome != "pass"]
    bad = [
        f"{item.name}: {item.reason or item.result}"
        for item in compare_sealed(bundle, sealed, (number, measured), (traced, again))
        if not item.excluded and item.result not in GOOD
    ]
    other = _another_run(measured, again)
    reasons = [*([other] if other else []), *(one.reason for one in endings), *bad]
    if not reasons:
        return finding("tracing-changed-reference", "pass", where=where)
    return finding(
        "tracing-changed-reference",
        "warn",
        f"the traced run is another one than the measured: {reasons[0]}",
        where=where,
    )


def _repeats(
    comparisons: Sequence[OutputComparison], policy: Policy, *, passes: int
) -> Iterator[Finding]:
    judged = [item for item in comparisons if not item.excluded]
    runs = "two runs" if passes == 2 else f"{passes} runs"
    both = "both passes" if passes == 2 else f"all {passes} passes"
    bad = [item for item in judged if item.result not in GOOD]
    for item in {item.name: item for item in reversed(bad)}.values():
        yield finding(
            "reference-not-repeatable",
            "warn" if item.result != "not-compared" else "not-checked",
            f"{runs} on one machine: {item.reason or item.result}",
            where=item.name,
        )
    if bad:
        return
    moved = [item for item in judged if item.result != "bit-identical"]
    if not moved:
        count = len({item.name for item in judged})
        note = f"{count} outputs are bit-identical in {both}"
        yield finding("reference-not-repeatable", "pass", note)
        return
    said = figures(moved)
    if any(is_widened(row) for row in policy.tolerances):
        yield finding(
            "reference-not-repeatable",
            "warn",
            f"{runs} on one machine agree only because the tolerance was widened by "
            f"their own noise: {said}",
            where=moved[0].name,
        )
        return
    yield finding(
        "reference-not-repeatable",
        "pass",
        f"within tolerance in {both}: {said}",
    )


def figures(moved: Sequence[OutputComparison]) -> str:
    """Return the largest error of each output in words, the first three by name."""
    largest: dict[str, float] = {}
    for item in moved:
        errors = (
            float(part.max_abs) for part in item.parts if part.max_abs is not None
        )
        largest[item.name] = max(largest.get(item.name, 0.0), *errors, 0.0)
    texts = [
        f"{name} differs by up to {error:.3g}" for name, error in [*largest.items()][:3]
    ]
    more = f", and {len(largest) - 3} more" if len(largest) > 3 else ""
    return ", ".join(texts) + more
