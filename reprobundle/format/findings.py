"""Findings and the report that `verify` gives: data only, no judgement.

A finding is the result of one numbered check of spec.md. The verdict is computed from
the findings (reprobundle.verify.verdict); a check that was not made is a finding
`not-checked`, never a missing one.
"""

from enum import Enum
from typing import Final, Literal

import msgspec

from reprobundle.format.assessment import Assessment, AttachedAcceptance
from reprobundle.format.judged import (
    BandResult,
    Cause,
    ClaimResult,
    Segment,
    TruthComparison,
)
from reprobundle.format.record import Count, Number
from reprobundle.format.signed import Assurance, SignatureResult

REPORT_SCHEMA: Final = "reprobundle/report/1"

CheckOutcome = Literal["pass", "warn", "fail", "not-checked", "not-applicable"]


class Verdict(Enum):
    """The words a report may end with, and nothing else (spec.md, verdict table)."""

    BIT_IDENTICAL = "REPRODUCED, bit-identical"
    WITHIN_TOLERANCE = "REPRODUCED, within tolerance"
    WITH_WARNINGS = "REPRODUCED WITH WARNINGS"
    NOT_REPRODUCED = "NOT REPRODUCED"
    DIFFERENT_FAILURE = "DIFFERENT FAILURE"
    PARTIAL = "PARTIAL"
    INCOMPLETE = "INCOMPLETE"
    NOT_DECIDABLE_HERE = "NOT DECIDABLE HERE"
    NOT_RUN_HERE = "NOT RUN HERE"
    NOT_YET_REPLAYED = "INTACT, NOT YET REPLAYED"
    INTACT = "INTACT"
    TAMPERED = "TAMPERED"
    UNREADABLE = "UNREADABLE"


EXIT_STATUS: dict[Verdict, int] = {
    Verdict.BIT_IDENTICAL: 0,
    Verdict.WITHIN_TOLERANCE: 0,
    Verdict.INTACT: 0,
    Verdict.NOT_REPRODUCED: 10,
    Verdict.DIFFERENT_FAILURE: 10,
    Verdict.PARTIAL: 11,
    Verdict.INCOMPLETE: 11,
    Verdict.NOT_DECIDABLE_HERE: 11,
    Verdict.NOT_RUN_HERE: 11,
    Verdict.NOT_YET_REPLAYED: 11,
    Verdict.WITH_WARNINGS: 12,
    Verdict.TAMPERED: 21,
    Verdict.UNREADABLE: 21,
}


class Finding(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one check found.

    Attributes:
        check: Number of the check in spec.md, such as ``V4``.
        id: Stable name, such as ``member-digest``; ``--allow`` takes it.
        outcome: pass, warn, fail, not-checked or not-applicable.
        where: Member, output or field concerned; empty for the whole bundle.
        expected, got: Both sides in one line each, where that makes sense.
        reason: Why, one sentence; required unless the outcome is pass.
        advice: What to do next, one phrase.
        allowed: Whether the caller allowed this warning by name.
    """

    check: str
    id: str
    outcome: CheckOutcome
    where: str = ""
    expected: str = ""
    got: str = ""
    reason: str = ""
    advice: str = ""
    allowed: bool = False

    def __post_init__(self) -> None:
        """Refuse a finding other than pass that does not say why."""
        if self.outcome != "pass" and not self.reason:
            message = f"finding {self.id} ({self.outcome}) states no reason"
            raise ValueError(message)


class ArrayComparison(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """How one array, column or number of a replay stands to the reference.

    Attributes:
        name: Array name, column or JSON path; empty for a single array.
        dtype: dtype of the reference; ``number``, ``text`` or ``bool`` for cells,
            ``pixel`` for the samples of an image.
        elements: Number of compared elements.
        sampled_from: Number of elements of the array if only a sample of them was
            compared; 0 otherwise.
        equal: Whether all are bit for bit equal.
        outside: Number of elements outside the tolerance.
        rtol, atol, floor, share: The rule that was applied; None for exact kinds.
        max_abs, p99_abs, p50_abs: Absolute error over the finite pairs.
        max_rel, p99_rel, p50_rel: Relative error over the finite pairs, b ≠ 0.
        relative_l2: ‖a-b‖ / ‖b‖; None when ‖b‖ is 0.
        cosine: Cosine between both; None when one norm is 0.
        worst_index: Index of the worst element.
        expected, got: Reference and replay value there.
        nan, infinite: Places where both sides hold NaN, or the same infinity.
        scale: Root mean square of the finite reference elements.
        zero: Whether every reference element is zero; a single whole number never is.
        sampled: Number of elements the quantiles rest on, all of them up to 2^20.
        ulp: Histogram of the distance in units in the last place of the array's own
            dtype: pairs 0, 1, 2-3, 4-7, 8-15 … apart, doubling, the last one open;
            empty where the dtype has none (complex, decimal numbers, exact kinds).
        drift: The error along the rows of a series; empty for anything else.
        note: What was taken as equal by a rule of the policy (ties, signs); of an
            image whose samples differ the peak signal-to-noise ratio.
        problem: Why it is outside (shape, dtype, NaN places …); empty if within.
    """

    name: str
    dtype: str
    elements: Count
    sampled_from: Count = 0
    equal: bool
    outside: Count
    rtol: float | None = None
    atol: float | None = None
    floor: float | None = None
    share: float | None = None
    max_abs: Number | None = None
    p99_abs: Number | None = None
    p50_abs: Number | None = None
    max_rel: Number | None = None
    p99_rel: Number | None = None
    p50_rel: Number | None = None
    relative_l2: Number | None = None
    cosine: Number | None = None
    worst_index: tuple[int, ...] | None = None
    expected: str = ""
    got: str = ""
    nan: Count = 0
    infinite: Count = 0
    scale: Number | None = None
    zero: bool = False
    sampled: Count = 0
    ulp: tuple[Count, ...] = ()
    drift: tuple[Segment, ...] = ()
    note: str = ""
    problem: str = ""


OutputResult = Literal[
    "bit-identical",
    "within-tolerance",
    "outside-tolerance",
    "missing",
    "unexpected",
    "not-compared",
]


class OutputComparison(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """How one output of a replay stands to the reference.

    Attributes:
        name: Output name.
        kind, format: As in the record.
        result: One of the six results.
        reason: Why, for every result but the first two.
        ignored: Keys or columns left out by rule.
        excluded: Whether the policy or the claim leaves the whole output out; then
            `result` is ``not-compared`` on purpose and takes nothing from the verdict.
        parts: Its arrays, columns or cells; only those that differ for documents
            with more than 100 parts.
    """

    name: str
    kind: str
    format: str
    result: OutputResult
    reason: str = ""
    ignored: tuple[str, ...] = ()
    excluded: bool = False
    parts: tuple[ArrayComparison, ...] = ()


class EnvironmentDifference(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """One environment fact in which replay and reference differ.

    Attributes:
        name: Dotted fact name.
        reference, replay: Both values as text.
        grade: ``numeric`` when it is known to change numbers, ``other`` otherwise.
        why: What it changes; empty unless it is known to change numbers.
    """

    name: str
    reference: str
    replay: str
    grade: Literal["numeric", "other"]
    why: str = ""


class Judgement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The verdict on one replay record.

    Attributes:
        replay: Record id.
        verdict: One of the words of `Verdict`.
        exit_status: The status that belongs to it.
        reasons: Why, most important first; empty only for a plain REPRODUCED.
        device: Device type it ran on; empty if it stopped before it used one.
        requested: Device it was asked for; empty where it chose by itself.
        outputs: Comparison of each output.
        environment: Differences to the reference.
        findings: All findings about this replay.
        pass_name, claim: Which pass of which claim the record is: two passes of one
            replay are not two replays.
        occasion: Shared by the records of one call of ``replay``.
        against: Number of the sealed run it was judged against; 0 for none.
        causes: Likely causes of what differs, the one to try first in front.
        bands: Numbers of the claim against the author's bands.
        truths: Both sides against the float64 run; empty without a usable one.
    """

    replay: str
    verdict: str
    exit_status: int
    reasons: tuple[str, ...]
    device: str
    outputs: tuple[OutputComparison, ...]
    environment: tuple[EnvironmentDifference, ...]
    findings: tuple[Finding, ...]
    pass_name: str = ""
    claim: str = ""
    occasion: str = ""
    requested: str = ""
    against: Count = 0
    causes: tuple[Cause, ...] = ()
    bands: tuple[BandResult, ...] = ()
    truths: tuple[TruthComparison, ...] = ()


class SecondOpinion(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """The same replays judged under the verifier's own policy.

    It stands beside the author's verdict and never in its place: the exit status of
    the report follows the frozen policy.

    Attributes:
        file: Name of the policy file.
        author, reason: As that policy states them.
        looser: Where it admits more than the frozen policy, in words.
        verdict, exit_status, reasons: What it leads to.
        judgements: One for each judged replay.
    """

    file: str
    author: str
    reason: str
    looser: tuple[str, ...]
    verdict: str
    exit_status: int
    reasons: tuple[str, ...]
    judgements: tuple[Judgement, ...] = ()


class ExperimentRun(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """An attached run that was to differ from the reference, and so decides nothing.

    Attributes:
        replay: Record id.
        pair: Shared by both sides of a pair; empty for a run on its own.
        side: ``A`` or ``B`` of a pair; empty for any other.
        asked: What it was asked to do otherwise, in one line.
        claim, pass_name, device: As in a judgement.
        ending: How it ended, in words.
    """

    replay: str
    pair: str = ""
    side: str = ""
    asked: str
    claim: str
    pass_name: str
    device: str
    ending: str


class Report(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything `verify` says about one bundle.

    Attributes:
        bundle: Bundle id; empty when the bundle could not be read.
        file: Name of the file, without its folder.
        format_version: Version the bundle states.
        verdict, exit_status, reasons: The one answer.
        not_checked: Names of the checks that were not made.
        findings: Findings about the bundle itself.
        judgements: One for each judged replay, newest last.
        claims: Every claim of the work, those that nobody ran too.
        second_opinion: The verdict under the verifier's own policy, if one was given.
        experiments: Attached runs that were to differ; none of them counts.
        acceptances: The attached acceptance records, and whether they hold.
        assessment: What the evidence comes to now; None where nobody asked.
        signatures: What was found about each signature.
        assurance: Who vouches for the result.
    """

    schema: Literal["reprobundle/report/1"] = REPORT_SCHEMA
    bundle: str
    file: str
    format_version: str = ""
    verdict: str
    exit_status: int
    reasons: tuple[str, ...]
    not_checked: tuple[str, ...]
    findings: tuple[Finding, ...]
    judgements: tuple[Judgement, ...] = ()
    claims: tuple[ClaimResult, ...] = ()
    second_opinion: SecondOpinion | None = None
    experiments: tuple[ExperimentRun, ...] = ()
    acceptances: tuple[AttachedAcceptance, ...] = ()
    assessment: Assessment | None = None
    signatures: tuple[SignatureResult, ...] = ()
    assurance: Assurance = Assurance()
