"""What a judgement says besides its findings.

Data only, like `reprobundle.format.findings`, which the types here are parts of.
"""

from typing import Annotated, Literal

import msgspec

from reprobundle.format.record import Number

Count = Annotated[int, msgspec.Meta(ge=0)]


class Segment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The error over one stretch of a series, for drift from step to step.

    Attributes:
        first: Row the stretch starts at; it ends where the next one starts.
        rows: Number of rows in it.
        max_abs: Largest absolute error over its finite pairs; None without any.
        max_rel: Largest relative error where the reference is not 0.
        outside: Number of elements outside the tolerance.
    """

    first: Count
    rows: Count
    max_abs: Number | None = None
    max_rel: Number | None = None
    outside: Count = 0


class Cause(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One likely cause of a difference, and the one change to try next.

    Attributes:
        id: Stable name of the rule that fired (`reprobundle.verify.causes.rules`).
        text: What probably happened, one sentence.
        evidence: What in the two records says so.
        source: Where it is known from: a page, a file or an issue.
        command: The one change to try, as a command line; empty where no command
            can make it.
    """

    id: str
    text: str
    evidence: str
    source: str
    command: str = ""


class BandResult(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One number of a claim against the band the author stated.

    Attributes:
        metric: As the policy names it.
        least, most: The band, both ends included; None for an open end.
        reference, replay: The number on both sides; None where it was not found.
        result: ``within`` or ``outside`` its band, ``not-judged`` without a band,
            ``not-found`` where the replay has no such number.
        test: How the band was found, as the author states it.
    """

    metric: str
    least: float | None = None
    most: float | None = None
    reference: Number | None = None
    replay: Number | None = None
    result: Literal["within", "outside", "not-judged", "not-found"]
    test: str = ""


class TruthComparison(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """How far both sides of one output lie from the float64 run.

    Attributes:
        name: Output name.
        elements: Number of compared elements.
        reference_error, replay_error: ‖x - t‖ / ‖t‖ over the finite elements of all
            three; the plain norm of the difference where ‖t‖ is 0.
        reference_max, replay_max: Largest absolute error.
        worse: Which side lies farther from the truth: by more than twice the other's
            error, else ``neither``; ``not-checked`` where `reason` says why.
        reason: Why it was not checked; empty otherwise.
    """

    name: str
    elements: Count = 0
    reference_error: Number | None = None
    replay_error: Number | None = None
    reference_max: Number | None = None
    replay_max: Number | None = None
    worse: Literal["reference", "replay", "neither", "not-checked"]
    reason: str = ""


class EndResult(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an end test of the policy says about the runs of one replay.

    Attributes:
        claim, device: Whose runs, and the device asked for.
        metric, test, alpha: As the policy states them.
        reference_runs, replay_runs: Sizes of the two samples.
        p: Probability of samples as different as these if both came from one
            distribution; None where it was not computed.
        result: ``same`` (not rejected), ``other`` (rejected) or ``not-judged``.
        reason: Why, where that needs words.
    """

    claim: str
    device: str
    metric: str
    test: str
    alpha: float
    reference_runs: Count
    replay_runs: Count
    p: float | None = None
    result: Literal["same", "other", "not-judged"]
    reason: str = ""


class ClaimResult(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """What came of one claim of the work.

    Attributes:
        name, statement: As the policy states them.
        result: The verdict of the replay that decides about it, or ``NOT RUN``.
        judged: Whether a band stands behind the statement; a claim without one is
            shown and not judged.
        bands: Its numbers.
        ends: Its end tests.
        minutes, disk_bytes: What the author says a run of it takes.
    """

    name: str
    statement: str
    result: str
    judged: bool
    bands: tuple[BandResult, ...] = ()
    ends: tuple[EndResult, ...] = ()
    minutes: float | None = None
    disk_bytes: int | None = None
