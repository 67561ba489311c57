"""The numbered checks: what each one asks, and what its findings do to the verdict.

This table is the verification procedure of spec.md. A finding's id belongs to exactly
one check; what a finding means for the verdict is looked up here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
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
_INCOMPLETE: Mapping[CheckOutcome, Verdict] = {
    "fail": _V.INCOMPLETE,
    "not-checked": _V.INCOMPLETE,
}
_REQUIRED: Mapping[CheckOutcome, Verdict] = {
    **_INCOMPLETE,
    "warn": _V.WITH_WARNINGS,
}
_DIFFERS: Mapping[CheckOutcome, Verdict] = {
    "fail": _V.NOT_REPRODUCED,
    "not-checked": _V.INCOMPLETE,
}
_WARNS: Mapping[CheckOutcome, Verdict] = {"warn": _V.WITH_WARNINGS}
_STOPPED: Mapping[CheckOutcome, Verdict] = {"not-checked": _V.NOT_RUN_HERE}
_UNREPLAYED: Mapping[CheckOutcome, Verdict] = {"not-checked": _V.NOT_YET_REPLAYED}

_ITEMS: tuple[Item, ...] = (
    # --- integrity
    Item("container", "V1", "The file is no readable bundle.", _UNREADABLE),
    Item("limits", "V1", "A size, count or depth exceeds its limit.", _UNREADABLE),
    Item(
        "format-version",
        "V2",
        "The format version is not known.",
        {"fail": _V.UNREADABLE, "not-checked": _V.INCOMPLETE},
    ),
    Item("manifest", "V2", "A document is malformed.", _UNREADABLE),
    Item("member-names", "V3", "A member name is unsafe.", _UNREADABLE),
    Item("membership", "V3", "A member is missing or not listed.", _TAMPERED),
    Item("member-digest", "V4", "A member's content was altered.", _TAMPERED),
    Item("chunk-digests", "V4", "A chunk's digest is wrong.", _TAMPERED),
    Item("sealed-document", "V5", "A sealed document is not sound.", _UNREADABLE),
    Item("run-members", "V5", "A record and its members disagree.", _TAMPERED),
    Item("replay-record", "V6", "A replay record breaks its schema.", _TAMPERED),
    Item("replay-name", "V6", "A replay's folder has another digest.", _TAMPERED),
    Item("replay-bundle", "V6", "A replay names another bundle.", _TAMPERED),
    Item("replay-members", "V6", "A replay's members were altered.", _TAMPERED),
    Item("expect-id", "V7", "The bundle has another id.", _TAMPERED),
    # --- the bundle
    Item("vacuous-tolerance", "V8", "A tolerance admits any value.", _WARNS),
    Item("has-lockfile", "V9", "The lockfile is missing.", _REQUIRED),
    Item("has-script", "V9", "The script is missing.", _REQUIRED),
    Item("has-input-sample", "V9", "No input that was read is included.", _REQUIRED),
    Item("has-seeds", "V9", "The seeds were not recorded.", _REQUIRED),
    Item("has-versions", "V9", "The versions were not recorded.", _REQUIRED),
    Item("has-memory-log", "V9", "The memory log is missing.", _REQUIRED),
    Item("has-output-summary", "V9", "No output is described.", _REQUIRED),
    Item("has-linux-reference", "V9", "There is no Linux reference.", _REQUIRED),
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
    Item("reference-ending", "V11", "The reference did not end.", _INCOMPLETE),
    Item("reference-trouble", "V11", "The reference is not whole.", _REQUIRED),
    Item("reference-gap", "V11", "A fact about the reference is missing."),
    Item("reference-not-repeatable", "V11", "The reference differs.", _WARNS),
    # --- one replay
    Item("same-run", "V12", "It stands against no sealed run.", _DIFFERS),
    Item("same-files", "V12", "It started from other files.", _DIFFERS),
    Item("same-command", "V12", "It ran another command.", _DIFFERS),
    Item("same-seed", "V12", "It used another seed.", _DIFFERS),
    Item("seed-calls", "V12", "The script set other seeds.", _WARNS),
    Item("same-inputs", "V12", "It read other inputs.", _DIFFERS),
    Item(
        "reduced-input",
        "V12",
        "It read only part of the input.",
        _WARNS,
        allowable=False,
    ),
    Item("standin-data", "V12", "Its data stands in.", {"not-checked": _V.PARTIAL}),
    Item("nothing-entered", "V13", "No process was observed.", _INCOMPLETE),
    Item("masked-failure", "V13", "A process failed unnoticed.", _DIFFERS),
    Item("wrote-original-project", "V13", "It left its copy.", _DIFFERS),
    Item("python-not-entered", "V13", "A Python was not observed.", _WARNS),
    Item("read-original-project", "V13", "It read the original.", _WARNS),
    Item("read-outside-project", "V13", "It read unknown files.", _WARNS),
    Item("wrote-outside-project", "V13", "It wrote elsewhere.", _WARNS),
    Item("network-used", "V13", "It used the network.", _WARNS),
    Item("run-warning", "V13", "The run gave another warning.", _WARNS),
    Item("run-failure", "V13", "The run is untrustworthy.", _INCOMPLETE),
    Item("run-gap", "V13", "A fact about the replay is missing."),
    Item(
        "stopped", "V14", "It stopped for a reason.", {"not-checked": _V.NOT_RUN_HERE}
    ),
    Item("run-completed", "V14", "It was interrupted.", _INCOMPLETE),
    Item("exit-status", "V14", "The command ended otherwise.", _DIFFERS),
    Item("expected-failure", "V14", "It should have failed.", _DIFFERS),
    Item("same-failure", "V14", "It failed otherwise.", {"fail": _V.DIFFERENT_FAILURE}),
    Item("device-asked", "V15", "It ran on another device.", _INCOMPLETE),
    Item("standin-device", "V15", "A stand-in was used.", _WARNS, allowable=False),
    Item("cpu-fallback", "V15", "Operators used the CPU.", _REQUIRED, allowable=False),
    Item(
        "accepting-platform",
        "V15",
        "Its platform's result does not count.",
        {"not-checked": _V.NOT_DECIDABLE_HERE},
    ),
    Item("output-missing", "V16", "An output did not come out.", _DIFFERS),
    Item("output-unexpected", "V16", "An extra output came out.", _WARNS),
    Item("output-differs", "V17", "An output is outside.", _DIFFERS),
    Item("output-not-compared", "V17", "It could not be compared.", _DIFFERS),
    Item("output-excluded", "V17", "A rule leaves it out."),
    Item("nothing-compared", "V17", "There was nothing to compare.", _INCOMPLETE),
    Item("hidden-by-atol", "V17", "Only the absolute tolerance admits it.", _WARNS),
    Item("values-not-compared", "V17", "Only structure counted.", _WARNS),
    Item("nan-in-output", "V17", "Both sides hold NaN.", _WARNS),
    Item("output-all-zero", "V17", "An output holds only zeros.", _WARNS),
    Item("output-empty", "V17", "An output holds nothing.", _WARNS),
    Item("environment-drift", "V18", "A numeric fact differs.", _WARNS),
    Item("unsynchronised-timing", "V19", "A duration is none.", _WARNS),
    # --- all replays together
    Item(
        "replayed", "V20", "Nobody replayed it.", {"not-checked": _V.NOT_YET_REPLAYED}
    ),
    Item("claim-replayed", "V20", "A claim was not run.", {"not-checked": _V.PARTIAL}),
    Item("replays-disagree", "V20", "An other replay says no.", _WARNS),
)

ITEMS: Mapping[str, Item] = MappingProxyType({item.id: item for item in _ITEMS})
BY_NUMBER: Mapping[str, Check] = MappingProxyType(
    {check.number: check for check in CHECKS}
)


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
