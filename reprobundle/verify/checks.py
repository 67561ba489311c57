"""The numbered checks: what each one asks, and what its findings do to the verdict.

This table is the verification procedure of spec.md; the kinds of findings it leads to
stand in `reprobundle.verify.items`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

from reprobundle.format.findings import CheckOutcome, Finding
from reprobundle.verify.items import EVERY_ITEM, ITEMS

__all__ = [
    "BY_NUMBER",
    "CHECKS",
    "ITEMS",
    "OF_ONE_REPLAY",
    "Area",
    "Check",
    "area_of",
    "finding",
    "unmade",
]

Area = Literal[
    "integrity",
    "completeness",
    "reference",
    "acceptance",
    "replay",
    "result",
    "signatures",
]


class Check(NamedTuple):
    """One numbered step of the verification procedure.

    Attributes:
        number: ``V1`` … in the order in which the checks are made.
        area: The heading under which its findings are shown.
        title: What it is about, in a few words.
        text: The rule, as spec.md states it.
    """

    number: str
    area: Area
    title: str
    text: str


CHECKS: tuple[Check, ...] = (
    Check(
        "V1",
        "integrity",
        "structure",
        "The file is one ZIP in which every byte belongs to exactly one entry, the "
        "headers agree with the directory, and no limit is exceeded.",
    ),
    Check(
        "V2",
        "integrity",
        "version and manifest",
        "The format version is known, and the manifest is canonical JSON that conforms "
        "to its schema.",
    ),
    Check(
        "V3",
        "integrity",
        "names and membership",
        "Every name is safe, and the manifest lists exactly the sealed members.",
    ),
    Check(
        "V4",
        "integrity",
        "digests",
        "Every sealed member has the size and the BLAKE3 digest that the manifest "
        "states; with --deep every chunk too.",
    ),
    Check(
        "V5",
        "integrity",
        "run records",
        "Every sealed run record conforms to its schema and names its members with "
        "their digests, and the policy conforms to its schema.",
    ),
    Check(
        "V6",
        "integrity",
        "replay records",
        "Every attached replay lies in a folder named by the digest of its record, "
        "names this bundle, and has exactly the members its record states.",
    ),
    Check(
        "V7",
        "integrity",
        "identity",
        "The bundle id equals the one the caller obtained elsewhere.",
    ),
    Check(
        "V8",
        "reference",
        "policy",
        "The frozen policy holds no tolerance that every value would meet.",
    ),
    Check(
        "V9",
        "completeness",
        "required members",
        "The lockfile, the script, an input sample, the seeds, the versions, the "
        "memory log, the output summary and the Linux reference are in the bundle.",
    ),
    Check(
        "V10",
        "acceptance",
        "acceptance list",
        "The eleven points of the acceptance list, each ticked from evidence.",
    ),
    Check(
        "V11",
        "reference",
        "the reference itself",
        "The reference run ended as intended, was watched completely, and it and each "
        "claim's own command repeat on the author's machine within the policy.",
    ),
    Check(
        "V12",
        "replay",
        "the same run",
        "The replay started from the same files, ran the same command with the same "
        "seed, read the same inputs, and began with the same weights and batches as "
        "the sealed run it stands against.",
    ),
    Check(
        "V13",
        "replay",
        "complete observation",
        "The recorder was in every Python process of the replay, and the run showed "
        "nothing that makes its record untrustworthy.",
    ),
    Check(
        "V14",
        "replay",
        "ending",
        "The replay ended as the reference did: with the same exit status, or with the "
        "same expected error at the same place.",
    ),
    Check(
        "V15",
        "replay",
        "devices",
        "The replay ran on the device asked for, without CPU fallback and without a "
        "stand-in, and on a platform whose result counts.",
    ),
    Check(
        "V16",
        "result",
        "outputs present",
        "Every output of the reference came out, and nothing else.",
    ),
    Check(
        "V17",
        "result",
        "outputs equal",
        "Every output has the structure of the reference, NaN and infinities in the "
        "same places, equal exact kinds, and floats within the frozen tolerance; the "
        "numbers of the claim lie in their bands.",
    ),
    Check(
        "V18",
        "replay",
        "environment",
        "No fact that is known to change numbers differs from the reference, unless "
        "every output is bit-identical all the same.",
    ),
    Check(
        "V19",
        "replay",
        "timing",
        "Every duration was taken between two synchronisations of its device, and the "
        "record's own self-check says what a clock that does not wait would have read.",
    ),
    Check(
        "V20",
        "result",
        "claims",
        "Every claim was replayed, and the replays of one claim agree; where the "
        "policy asks for it, the last numbers of repeated runs are distributed as the "
        "author's.",
    ),
    Check(
        "V21",
        "replay",
        "memory",
        "The allocators of both runs had the same limits, and the replay's memory "
        "does not grow from round to round where the reference's did not.",
    ),
    Check(
        "V22",
        "result",
        "restart",
        "A run that was stopped after a checkpoint and resumed gives what the straight "
        "run gave, where that was asked for.",
    ),
    Check(
        "V23",
        "result",
        "float64 truth",
        "Where a float64 run on the CPU was asked for, every operator of it ran in "
        "float64, it drew what the reference drew, and the error of both sides against "
        "it is told.",
    ),
    Check(
        "V24",
        "signatures",
        "signatures",
        "Every signature is an SSH signature for this purpose over the manifest or the "
        "record that its name states; where the caller says whose keys are whose, one "
        "of them signed the bundle.",
    ),
    Check(
        "V25",
        "acceptance",
        "acceptance records",
        "Every attached acceptance record has the digest it is named by, is about this "
        "bundle, follows from the replays and reports it names, and holds for the "
        "versions of the newest runs.",
    ),
)

BY_NUMBER: Mapping[str, Check] = MappingProxyType(
    {check.number: check for check in CHECKS}
)
OF_ONE_REPLAY: tuple[str, ...] = (
    "V12",
    "V13",
    "V14",
    "V15",
    "V16",
    "V17",
    "V18",
    "V19",
    "V21",
)
"""The checks that are made for each replay; all others concern the bundle."""


def finding(
    name: str,
    outcome: CheckOutcome,
    reason: str = "",
    *,
    where: str = "",
    expected: object = "",
    got: object = "",
    advice: str = "",
) -> Finding:
    """Return a finding of the kind `name`, with the number of its check.

    Args:
        name: Id of an item of the table.
        outcome: What the check found.
        reason: Why, one sentence; needed unless the outcome is ``pass``.
        where: Member, output or field concerned.
        expected: What should be there.
        got: What was found.
        advice: What to do next, one phrase.
    """
    return Finding(
        check=ITEMS[name].check,
        id=name,
        outcome=outcome,
        where=where,
        expected=str(expected),
        got=str(got),
        reason=reason,
        advice=advice,
    )


def area_of(found: Finding) -> Area:
    """Return the heading under which a finding is shown."""
    return BY_NUMBER[found.check].area


def unmade(
    made: Iterable[Finding], reason: str, among: Iterable[str] = BY_NUMBER
) -> Iterator[Finding]:
    """Yield one finding ``not-checked`` for every check that has no finding yet.

    Args:
        made: The findings there are.
        reason: Why the other checks were not made.
        among: Numbers of the checks that should have been made.
    """
    numbers = {found.check for found in made}
    for number in among:
        if number not in numbers:
            yield finding(_SPOKESMEN[number], "not-checked", reason)


# The finding that speaks for a whole check which was not made: one that leads nowhere
# then, for why it was not made has led somewhere already.
_SPOKESMEN: Mapping[str, str] = MappingProxyType(
    {
        item.check: item.id
        for item in reversed(EVERY_ITEM)
        if "not-checked" not in item.consequence
    }
)
