"""The policy: what counts as the same result, frozen in the bundle before any replay.

``policy.json`` is sealed, so its digest is part of the bundle id: loosening a
tolerance afterwards gives another bundle (spec.md, "Policy").
"""

from datetime import date
from typing import Annotated, Final, Literal

import msgspec

from reprobundle.format.record import OutputRole

POLICY_SCHEMA: Final = "reprobundle/policy/1"

Bound = Annotated[float, msgspec.Meta(ge=0)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]

MOST_RULES = 1_000
"""Entries of one list of rules: each output is held against each of them."""

Pattern = Annotated[str, msgspec.Meta(max_length=1024)]
_Few = msgspec.Meta(max_length=MOST_RULES)


class Tolerance(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One float rule: |a - b| <= atol + rtol * max(|b|, floor * scale(b)).

    ``b`` is the reference, ``a`` the replay; scale(b) is the root mean square of the
    finite reference elements.

    Attributes:
        rtol, atol, floor: As in the rule, all without unit or in the unit of ``b``.
        share: Largest share of elements that may lie outside the rule.
    """

    rtol: Bound
    atol: Bound
    floor: Bound = 0.0
    share: Share = 0.0


class DtypeTolerance(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """The tolerance of one dtype for one kind of device pair.

    Attributes:
        dtype: ``float16``, ``bfloat16``, ``float32``, ``float64``, ``complex64`` …;
            ``number`` for decimal numbers in tables, documents and logs; ``pixel``
            for the samples of images, which are exact without such a rule.
        devices: ``same`` when reference and replay used the same device type,
            ``different`` otherwise.
        tolerance: The rule.
        source: Where the figures come from.
    """

    dtype: str
    devices: Literal["same", "different"]
    tolerance: Tolerance
    source: str


class OutputRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the author states about the outputs whose names match.

    Attributes:
        match: Shell pattern over output names, such as ``out/*.npy``.
        compare: False leaves the output out of the comparison; it is then reported
            as not compared, with the reason.
        tolerance: Replaces the tolerance of every dtype but ``pixel``.
        dtypes: Replaces the tolerance of single dtypes, before `tolerance`.
        ignore: Keys (JSON), columns (CSV) or array names left out.
        keep: Keys, columns or array names that are results although `ignore_keys`
            says otherwise, such as ``relaxation_time`` or ``shortest_path``.
        rows: Compare only so many rows from the top: the first axis of an array, the
            rows of a table, the first list index of a document. For runs whose later
            steps no element-wise tolerance can say anything about.
        ties: The array that holds the values which the integer arrays point at (topk,
            sort, argsort): its name in the same file, or ``OUTPUT#NAME`` (``OUTPUT#``
            for a file that is one array). Indices may change places where these
            values are equal within their tolerance.
        signs: ``columns`` or ``rows``: vectors along that axis of the last two may be
            multiplied by -1 (by a unit phase if complex), as those of an eigenvalue
            or singular value decomposition.
        reason: Why; required for every rule that is not the default.
    """

    match: Pattern
    compare: bool = True
    tolerance: Tolerance | None = None
    dtypes: dict[str, Tolerance] = {}
    ignore: Annotated[tuple[str, ...], _Few] = ()
    keep: Annotated[tuple[str, ...], _Few] = ()
    rows: Annotated[int, msgspec.Meta(ge=1)] | None = None
    ties: str = ""
    signs: Literal["", "columns", "rows"] = ""
    reason: str

    def __post_init__(self) -> None:
        """Refuse a rule without a reason."""
        if not self.reason.strip():
            message = f"the rule for {self.match!r} states no reason"
            raise ValueError(message)


class Metric(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A number that the run prints: its name, and the pattern that finds it."""

    name: str
    pattern: Pattern


class RoleRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the outputs are for whose names match a shell pattern."""

    match: Pattern
    role: OutputRole


class Band(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The band in which one number of a claim has to lie, both ends included.

    Attributes:
        metric: ``OUTPUT`` or ``OUTPUT#COLUMN``: the last number of that output, or of
            its column, key or array, such as ``metric:accuracy`` or
            ``out/metrics.json#accuracy``.
        least, most: The band; None for an open end. Without both the number is shown
            and not judged.
        test: How the band was found, in words: the statistical test, the number of
            runs, the confidence.
    """

    metric: str
    least: float | None = None
    most: float | None = None
    test: str = ""

    def __post_init__(self) -> None:
        """Refuse a band that no number can lie in."""
        if self.least is not None and self.most is not None and self.least > self.most:
            message = f"the band of {self.metric!r} ends before it begins"
            raise ValueError(message)


class EndTest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A statistical comparison of the last numbers of repeated runs.

    For runs that no element-wise tolerance can say anything about: the reference and
    its repeat passes against the runs of one call of ``replay --repeat N``.

    Attributes:
        metric: As in a band: the number that each run ends with.
        test: ``rank-sum``: the two-sided test of Mann and Whitney, exact.
        alpha: Its level: so often it rejects runs of one distribution. Where the runs
            are too few for the test to reject anything, nothing is judged.
    """

    metric: str
    test: Literal["rank-sum"] = "rank-sum"
    alpha: Annotated[float, msgspec.Meta(gt=0, le=0.2)] = 0.05


class Claim(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One claim of the work and how it is checked.

    Attributes:
        name: ``main``, ``smoke`` or any other; ``smoke`` is what ``--smoke`` runs.
        statement: The claim in one sentence.
        command: Its own command; empty when the main command serves it.
        outputs: Shell patterns of the outputs that belong to it; empty for all.
        bands: Numbers that have to lie in a band; a claim without one is shown and
            not judged by its numbers.
        ends: Numbers whose distribution over repeated runs has to be the author's.
        minutes, disk_bytes: The author's estimate for running it, or None.
    """

    name: str
    statement: str = ""
    command: tuple[str, ...] = ()
    outputs: Annotated[tuple[Pattern, ...], _Few] = ()
    bands: tuple[Band, ...] = ()
    ends: tuple[EndTest, ...] = ()
    minutes: float | None = None
    disk_bytes: Annotated[int, msgspec.Meta(ge=0)] | None = None


class Intent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the author says the result is for.

    Attributes:
        purpose: Research purpose, one sentence.
        scenario: The bounded acceptance scenario, one sentence.
        accepting_platforms: Platforms whose result counts: ``linux-cpu``,
            ``linux-cuda``, ``macos-mps`` …; empty means any.
        fallback: Whether CPU fallback of an accelerator is part of the plan.
    """

    purpose: str = ""
    scenario: str = ""
    accepting_platforms: tuple[str, ...] = ()
    fallback: Literal["forbidden", "allowed"] = "forbidden"


class DataRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What may be done with the data in the bundle, as its author states it.

    Attributes:
        data_class: What kind of data they are.
        transfer: ``allowed``; ``encrypted``: to another machine only as a file
            encrypted for whoever processes it; ``forbidden``: to no other machine.
        processors: Shell patterns of ``USER@HOST`` or of hosts that may process them;
            empty for any.
        process_until: Last day on which they may be processed, ``YYYY-MM-DD`` in UTC.
        delete_after_days: Days after which a copy has to be deleted.
        recipients: To whom a copy is encrypted before it travels: recipients of age,
            SSH public keys, or keys of gpg.
        reason: Why: a rule, an approval, a contract.
    """

    data_class: Literal[
        "public",
        "internal",
        "personal",
        "clinical",
        "proprietary",
        "export-controlled",
    ]
    transfer: Literal["allowed", "encrypted", "forbidden"] = "allowed"
    processors: tuple[str, ...] = ()
    process_until: Annotated[
        str, msgspec.Meta(pattern="^([0-9]{4}-[0-9]{2}-[0-9]{2})?$")
    ] = ""
    delete_after_days: Annotated[int, msgspec.Meta(ge=0)] | None = None
    recipients: tuple[str, ...] = ()
    reason: str = ""

    def __post_init__(self) -> None:
        """Refuse a day that no calendar has."""
        if self.process_until:
            date.fromisoformat(self.process_until)


class Policy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything the comparison needs to know, in one document.

    Attributes:
        profile: ``scientific`` compares values; ``compat`` only that the right
            outputs with the right shapes and dtypes came out.
        author, reason: Who set a policy that is not the default, and why.
        tolerances: One rule for each dtype and kind of device pair.
        ignore_keys: Names of JSON keys and CSV columns that never count as results
            (times, hosts, paths).
        outputs: Rules by output, first match wins.
        metrics: Numbers read from stdout.
        roles: What outputs are for, first match wins; it changes no comparison.
        claims: Claims; empty stands for one claim ``main`` over all outputs.
        intent: Purpose, scenario, platforms.
        data: What may be done with the data; absent where nothing is stated.
    """

    schema: Literal["reprobundle/policy/1"] = POLICY_SCHEMA
    profile: Literal["scientific", "compat"] = "scientific"
    author: str = ""
    reason: str = ""
    tolerances: Annotated[tuple[DtypeTolerance, ...], _Few] = ()
    ignore_keys: Annotated[tuple[str, ...], _Few] = ()
    outputs: Annotated[tuple[OutputRule, ...], _Few] = ()
    metrics: Annotated[tuple[Metric, ...], _Few] = ()
    roles: Annotated[tuple[RoleRule, ...], _Few] = ()
    claims: Annotated[tuple[Claim, ...], _Few] = ()
    intent: Intent = Intent()
    data: DataRules | msgspec.UnsetType = msgspec.UNSET
