"""Alter copies of a bundle in every forbidden way, and see the verifier say no.

A mutation is caught when the verdict on every copy is red and a finding that the
unaltered bundle does not have names the cause. Red for another reason is not enough: a
verifier that always says no would pass.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from reprobundle.format.findings import EXIT_STATUS, Finding, Report, Verdict
from reprobundle.format.selftest_report import (
    MutationResult,
    MutationRow,
    SelftestReport,
)
from reprobundle.temporary.guarded import owned_folder
from reprobundle.verify.selftest.mutation import (
    Made,
    Mutation,
    NotPossibleError,
)
from reprobundle.verify.selftest.of_acceptance import ACCEPTANCE_MUTATIONS
from reprobundle.verify.selftest.of_both_sides import BOTH_SIDES_MUTATIONS
from reprobundle.verify.selftest.of_bytes import BYTE_MUTATIONS
from reprobundle.verify.selftest.of_contradictions import CONTRADICTION_MUTATIONS
from reprobundle.verify.selftest.of_copies import COPY_MUTATIONS
from reprobundle.verify.selftest.of_devices import DEVICE_MUTATIONS
from reprobundle.verify.selftest.of_parts import PART_MUTATIONS
from reprobundle.verify.selftest.of_policy import POLICY_MUTATIONS
from reprobundle.verify.selftest.of_protocol import PROTOCOL_MUTATIONS
from reprobundle.verify.selftest.of_reference import REFERENCE_MUTATIONS
from reprobundle.verify.selftest.of_results import RESULT_MUTATIONS
from reprobundle.verify.selftest.of_samples import SAMPLE_MUTATIONS
from reprobundle.verify.selftest.of_seal import SEAL_MUTATIONS
from reprobundle.verify.selftest.of_signatures import SIGNATURE_MUTATIONS
from reprobundle.verify.selftest.subject import Subject
from reprobundle.verify.verdict import consequence
from reprobundle.verify.verify import verify_bundle

MUTATIONS: tuple[Mutation, ...] = (
    *BYTE_MUTATIONS,
    *SEAL_MUTATIONS,
    *PART_MUTATIONS,
    *POLICY_MUTATIONS,
    *BOTH_SIDES_MUTATIONS,
    *RESULT_MUTATIONS,
    *SAMPLE_MUTATIONS,
    *PROTOCOL_MUTATIONS,
    *COPY_MUTATIONS,
    *CONTRADICTION_MUTATIONS,
    *DEVICE_MUTATIONS,
    *REFERENCE_MUTATIONS,
    *ACCEPTANCE_MUTATIONS,
    *SIGNATURE_MUTATIONS,
)
EXIT_PASSED = 10

Verify = Callable[..., Report]
Problem = tuple[str, str, str]


def selftest(
    path: Path,
    *,
    verify: Verify = verify_bundle,
    mutations: tuple[Mutation, ...] = MUTATIONS,
    progress: Callable[[str], None] | None = None,
    within: Path | None = None,
) -> SelftestReport:
    """Return what the verifier said to altered copies of the bundle at `path`.

    Args:
        path: A sound bundle; it is only read.
        verify: The verifier under test.
        mutations: What to do to the copies.
        progress: Called with the title of each mutation.
        within: Folder of the copies; where the system has such if None.

    Raises:
        BundleError: The bundle itself is not sound.
        BadCallError: It lacks a document without which nothing can be judged.
    """
    with owned_folder("reprobundle-selftest-", within) as folder:
        subject = Subject(path, folder / "subject")
        replays = subject.echo().write(folder / "control.rpr.zip")
        control = verify(path, replay_file=replays)
        rows = []
        for mutation in mutations:
            if progress is not None:
                progress(mutation.title)
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                subject.folder = Path(scratch)
                rows.append(_row(mutation, subject, verify, _problems(control)))
    missed = any(row.result in ("passed", "wrong-reason") for row in rows)
    return SelftestReport(
        file=path.name,
        bundle=subject.id,
        control=control.verdict,
        rows=tuple(rows),
        exit_status=EXIT_PASSED if missed else 0,
    )


def _row(
    mutation: Mutation, subject: Subject, verify: Verify, known: frozenset[Problem]
) -> MutationRow:
    verdicts: dict[str, None] = {}
    reasons: dict[str, None] = {}
    copies = 0

    def row(result: MutationResult, detail: str = "") -> MutationRow:
        return MutationRow(
            name=mutation.name,
            title=mutation.title,
            result=result,
            copies=copies,
            verdicts=tuple(verdicts),
            reasons=tuple(reasons),
            detail=detail,
        )

    try:
        for made in mutation.make(subject):
            report = _verified(made, verify)
            copies += 1
            verdicts[report.verdict] = None
            if report.exit_status == EXIT_STATUS[Verdict.INTACT]:
                return row("passed", made.what)
            named = _named(mutation, report, known)
            if not named:
                return row("wrong-reason", made.what)
            reasons.update(dict.fromkeys(named))
    except NotPossibleError as error:
        return row("not-possible", str(error))
    return row("caught")


def _verified(made: Made, verify: Verify) -> Report:
    return verify(
        made.bundle,
        replay_file=made.replay_file,
        expect_id=made.expect_id,
        signers=made.signers,
    )


def _named(
    mutation: Mutation, report: Report, known: frozenset[Problem]
) -> tuple[str, ...]:
    """Return the findings that name the cause, in the order of the report."""
    return tuple(
        dict.fromkeys(
            problem[0]
            for problem in _ordered_problems(report)
            if problem[0] in mutation.reasons and problem not in known
        )
    )


def _problems(report: Report) -> frozenset[Problem]:
    return frozenset(_ordered_problems(report))


def _ordered_problems(report: Report) -> Iterator[Problem]:
    """Yield id, outcome and place of all that takes something from the verdict."""
    for found in _all_findings(report):
        if consequence(found) is not None:
            yield found.id, found.outcome, found.where


def _all_findings(report: Report) -> Iterator[Finding]:
    yield from report.findings
    for judgement in report.judgements:
        yield from judgement.findings
