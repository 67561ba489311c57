"""The numbered checks: what each one asks, and what its findings do to the verdict.

This table is the verification procedure of spec.md. A finding's id belongs to exactly
one check; what a finding means for the verdict is looked up here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

from reprobundle.format.findings import CheckOutcome, Finding, Verdict

Area = Literal[
    "integrity", "completeness", "reference", "acceptance", "replay", "result"
]

_V = Verdict


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


class Item(NamedTuple):
    """One kind of finding.

    Attributes:
        id: Stable name of the finding.
        check: Number of the check that makes it.
        text: When the finding is made.
        consequence: The verdict an outcome leads to; an outcome that is not named
            takes nothing from the verdict.
        allowable: Whether ``--allow`` may take its warning from the verdict.
    """

    id: str
    check: str
    text: str
    consequence: Mapping[CheckOutcome, Verdict] = MappingProxyType({})
    allowable: bool = True


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
        "The reference run ended as intended, was watched completely, and repeats on "
        "its own machine within the policy.",
    ),
    Check(
        "V12",
        "replay",
        "the same run",
        "The replay started from the same files, ran the same command with the same "
        "seed, and read the same inputs as the sealed run it stands against.",
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
        "same places, equal exact kinds, and floats within the frozen tolerance.",
    ),
    Check(
        "V18",
        "replay",
        "environment",
        "No fact that is known to change numbers differs from the reference.",
    ),
    Check(
        "V19",
        "replay",
        "timing",
        "Every duration was taken between two synchronisations of its device.",
    ),
    Check(
        "V20",
        "result",
        "claims",
        "Every claim was replayed, and the replays of one claim agree.",
    ),
)

_UNREADABLE: Mapping[CheckOutcome, Verdict] = {"fail": _V.UNREADABLE}
_TAMPERED: Mapping[CheckOutcome, Verdict] = {"fail": _V.TAMPERED}
_REQUIRED: Mapping[CheckOutcome, Verdict] = {"fail": _V.INCOMPLETE}
_UNKNOWN: Mapping[CheckOutcome, Verdict] = {"not-checked": _V.INCOMPLETE}
_DIFFERS: Mapping[CheckOutcome, Verdict] = {"fail": _V.NOT_REPRODUCED}
_WARNS: Mapping[CheckOutcome, Verdict] = {"warn": _V.WITH_WARNINGS}

_ITEMS: tuple[Item, ...] = (
    # --- integrity
    Item("container", "V1", "The file is no ZIP of this form.", _UNREADABLE),
    Item("limits", "V1", "A size, count or depth exceeds its limit.", _UNREADABLE),
    Item(
        "format-version",
        "V2",
        "The format is newer than this verifier: another major version cannot be "
        "read, of another minor version not everything is understood.",
        {"fail": _V.UNREADABLE, **_UNKNOWN},
    ),
    Item("manifest", "V2", "The manifest is malformed.", _UNREADABLE),
    Item("member-names", "V3", "A member has an unsafe name.", _UNREADABLE),
    Item(
        "membership",
        "V3",
        "A member is listed but absent, or present but not listed.",
        _TAMPERED,
    ),
    Item("member-digest", "V4", "A sealed member's content was altered.", _TAMPERED),
    Item("chunk-digests", "V4", "A chunk does not have its digest.", _TAMPERED),
    Item(
        "sealed-document",
        "V5",
        "The policy, the lock or a run record is missing or breaks its schema.",
        _UNREADABLE,
    ),
    Item(
        "run-members",
        "V5",
        "A sealed record and the members beside it contradict each other.",
        _TAMPERED,
    ),
    Item("replay-record", "V6", "A replay's record breaks its schema.", _TAMPERED),
    Item(
        "replay-name",
        "V6",
        "A replay's record does not have the digest it is named by.",
        _TAMPERED,
    ),
    Item("replay-bundle", "V6", "A replay names another bundle.", _TAMPERED),
    Item(
        "replay-members",
        "V6",
        "A replay's members are not those its record states.",
        _TAMPERED,
    ),
    Item("expect-id", "V7", "The bundle is not the one expected.", _TAMPERED),
    # --- the bundle
    Item(
        "vacuous-tolerance",
        "V8",
        "A tolerance admits errors as large as the values, or half of the elements.",
        _WARNS,
    ),
    Item("has-lockfile", "V9", "There is no lockfile.", _REQUIRED),
    Item("has-script", "V9", "A source file of the run is missing.", _REQUIRED),
    Item(
        "has-input-sample",
        "V9",
        "The run read inputs, and none of them is included.",
        _REQUIRED,
    ),
    Item(
        "has-seeds",
        "V9",
        "Seeds and generator states were not recorded; a warning if random numbers "
        "were drawn and no seed was set.",
        {**_REQUIRED, **_WARNS},
    ),
    Item("has-versions", "V9", "A version is unknown.", _REQUIRED),
    Item("has-memory-log", "V9", "There is no memory log.", _REQUIRED),
    Item("has-output-summary", "V9", "No output is described.", _REQUIRED),
    Item("has-linux-reference", "V9", "No finished run on Linux is here.", _REQUIRED),
    Item("lists-versions", "V10", "Versions and machine are documented."),
    Item("lists-start", "V10", "Weights, input, seeds and shapes are recorded."),
    Item("lists-error", "V10", "The complete original error is kept."),
    Item("lists-memory", "V10", "Device memory was logged at named points."),
    Item("lists-pressure", "V10", "Memory pressure was checked during the run."),
    Item("lists-one-change", "V10", "Sizes were changed one at a time."),
    Item("lists-minimal", "V10", "A minimal test was made."),
    Item("lists-same-script", "V10", "MPS and CPU ran the same script."),
    Item("lists-fallback", "V10", "CPU fallback is documented."),
    Item("lists-together", "V10", "All required members lie together."),
    Item("lists-second-person", "V10", "A second person ran it again."),
    Item(
        "reference-ending",
        "V11",
        "A sealed run did not come to the end its author intended.",
        _REQUIRED,
    ),
    Item(
        "reference-trouble",
        "V11",
        "A sealed run was not watched completely, or cannot be trusted as it is.",
        {**_REQUIRED, **_WARNS},
    ),
    Item("reference-gap", "V11", "A fact about a sealed run is missing."),
    Item(
        "reference-not-repeatable",
        "V11",
        "Two runs on the author's machine differ by more than the policy admits, or "
        "agree only because their own noise widened it.",
        _WARNS,
    ),
    # --- one replay
    Item("same-run", "V12", "The replay stands against no sealed run.", _DIFFERS),
    Item("same-files", "V12", "The replay started from other files.", _DIFFERS),
    Item("same-command", "V12", "The replay ran another command.", _DIFFERS),
    Item("same-seed", "V12", "The replay was started with another seed.", _DIFFERS),
    Item("seed-calls", "V12", "The script set other seeds.", _WARNS),
    Item("same-inputs", "V12", "An input had other content.", _DIFFERS),
    Item(
        "reduced-input",
        "V12",
        "The replay did not read all inputs, or says that it read less.",
        _WARNS,
        allowable=False,
    ),
    Item(
        "standin-data",
        "V12",
        "The replay says that other data stood in for an input.",
        {"not-checked": _V.PARTIAL},
    ),
    Item("nothing-entered", "V13", "No process was observed.", _REQUIRED),
    Item(
        "masked-failure",
        "V13",
        "A process failed although the command reported success.",
        _DIFFERS,
    ),
    Item(
        "wrote-original-project",
        "V13",
        "The run wrote into the original project instead of its copy.",
        _DIFFERS,
    ),
    Item("python-not-entered", "V13", "A Python process was not observed.", _WARNS),
    Item("read-original-project", "V13", "The run read the original project.", _WARNS),
    Item(
        "read-outside-project",
        "V13",
        "The run read files outside the project whose content is not known.",
        _WARNS,
    ),
    Item("wrote-outside-project", "V13", "The run wrote outside the project.", _WARNS),
    Item("network-used", "V13", "The run used the network.", _WARNS),
    Item("run-warning", "V13", "The run gave another warning.", _WARNS),
    Item("run-failure", "V13", "The run cannot be trusted as it is.", _REQUIRED),
    Item("run-gap", "V13", "A fact about the replay is missing."),
    Item(
        "stopped",
        "V14",
        "The replay stopped for a named reason.",
        {"not-checked": _V.NOT_RUN_HERE},
    ),
    Item("run-completed", "V14", "The replay did not come to its end.", _UNKNOWN),
    Item("exit-status", "V14", "The command ended otherwise.", _DIFFERS),
    Item("expected-failure", "V14", "The expected failure did not happen.", _DIFFERS),
    Item(
        "same-failure",
        "V14",
        "Another failure happened than the expected one.",
        {"fail": _V.DIFFERENT_FAILURE},
    ),
    Item("device-asked", "V15", "The device asked for was not used.", _REQUIRED),
    Item(
        "standin-device",
        "V15",
        "A stand-in took the accelerator's place, or facts rule the device out.",
        _WARNS,
        allowable=False,
    ),
    Item(
        "cpu-fallback",
        "V15",
        "Operators ran on the CPU, or it is not known whether they did.",
        {**_WARNS, **_UNKNOWN},
        allowable=False,
    ),
    Item(
        "accepting-platform",
        "V15",
        "The result counts on other platforms only.",
        {"not-checked": _V.NOT_DECIDABLE_HERE},
    ),
    Item("output-missing", "V16", "An output did not come out.", _DIFFERS),
    Item("output-unexpected", "V16", "An additional output came out.", _WARNS),
    Item("output-differs", "V17", "An output is outside the policy.", _DIFFERS),
    Item("output-not-compared", "V17", "An output could not be compared.", _UNKNOWN),
    Item("output-excluded", "V17", "A rule or another claim leaves an output out."),
    Item("nothing-compared", "V17", "There was nothing to compare.", _REQUIRED),
    Item(
        "hidden-by-atol",
        "V17",
        "Only an absolute tolerance as large as the values admits an output.",
        _WARNS,
    ),
    Item(
        "values-not-compared",
        "V17",
        "The profile compat compared structure, not values.",
        _WARNS,
    ),
    Item("nan-in-output", "V17", "Both sides hold NaN in the same places.", _WARNS),
    Item("output-all-zero", "V17", "Every value of an output is zero.", _WARNS),
    Item("output-empty", "V17", "An output holds nothing.", _WARNS),
    Item(
        "environment-drift",
        "V18",
        "A fact that is known to change numbers differs, and the outputs do too.",
        _WARNS,
    ),
    Item(
        "unsynchronised-timing",
        "V19",
        "A time was taken without waiting for the device.",
        _WARNS,
    ),
    # --- all replays together
    Item(
        "replayed",
        "V20",
        "Nobody has replayed the bundle.",
        {"not-checked": _V.NOT_YET_REPLAYED},
    ),
    Item(
        "claim-replayed",
        "V20",
        "A claim was not replayed.",
        {"not-checked": _V.PARTIAL},
    ),
    Item(
        "replays-disagree",
        "V20",
        "Another replay of a reproduced claim was not reproduced.",
        _WARNS,
    ),
)

ITEMS: Mapping[str, Item] = MappingProxyType({item.id: item for item in _ITEMS})
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
        for item in reversed(_ITEMS)
        if "not-checked" not in item.consequence
    }
)
