"""Every kind of finding: which check makes it, when, and what it leads to.

A finding's id belongs to exactly one check; what a finding means for the verdict is
looked up here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from reprobundle.format.findings import CheckOutcome, Verdict

_V = Verdict


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


_UNREADABLE: Mapping[CheckOutcome, Verdict] = {"fail": _V.UNREADABLE}
_TAMPERED: Mapping[CheckOutcome, Verdict] = {"fail": _V.TAMPERED}
_REQUIRED: Mapping[CheckOutcome, Verdict] = {"fail": _V.INCOMPLETE}
_UNKNOWN: Mapping[CheckOutcome, Verdict] = {"not-checked": _V.INCOMPLETE}
_DIFFERS: Mapping[CheckOutcome, Verdict] = {"fail": _V.NOT_REPRODUCED}
_WARNS: Mapping[CheckOutcome, Verdict] = {"warn": _V.WITH_WARNINGS}

EVERY_ITEM: tuple[Item, ...] = (
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
    Item(
        "all-parts",
        "V3",
        "The file is one part of a bundle; made for a part only. The members in the "
        "other part were not looked at.",
        _UNKNOWN,
    ),
    Item("member-digest", "V4", "A sealed member's content was altered.", _TAMPERED),
    Item("chunk-digests", "V4", "A chunk does not have its digest.", _TAMPERED),
    Item(
        "sealed-document",
        "V5",
        "The policy, the lock or a run record is missing or breaks its schema.",
        {"fail": _V.UNREADABLE, "not-checked": _V.INCOMPLETE},
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
        "A tolerance admits errors as large as the values, or half of the elements; or "
        "one that somebody stated admits zeros in the place of an array.",
        _WARNS,
    ),
    Item("has-lockfile", "V9", "There is no lockfile.", _REQUIRED),
    Item("has-script", "V9", "A source file of the run is missing.", _REQUIRED),
    Item(
        "has-input-sample",
        "V9",
        "The run read inputs, and none of them is included; a warning if their author "
        "keeps all of them by digest only, without a sample.",
        {**_REQUIRED, **_WARNS},
    ),
    Item(
        "has-seeds",
        "V9",
        "Seeds and generator states were not recorded, and the record does not state "
        "that no generator was loaded; a warning if random numbers were drawn and "
        "nobody chose a seed for them.",
        {**_REQUIRED, **_WARNS},
    ),
    Item("has-versions", "V9", "A version is unknown.", _REQUIRED),
    Item("has-memory-log", "V9", "There is no memory log.", _REQUIRED),
    Item("has-output-summary", "V9", "No output is described.", _REQUIRED),
    Item(
        "has-linux-reference",
        "V9",
        "No run on Linux is the reference, or marked as it.",
        _REQUIRED,
    ),
    Item("lock-for-others", "V9", "There is no lock for other systems."),
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
    Item(
        "copied-run",
        "V11",
        "A sealed run took the time of another to the nanosecond: it is a copy.",
        _REQUIRED,
    ),
    Item(
        "tracing-changed-reference",
        "V11",
        "The traced run gave other results than the measured one, or none was made.",
        _WARNS,
    ),
    Item(
        "references-differ",
        "V11",
        "The main command was run on several devices, and the sealed runs differ by "
        "more than the policy admits between two devices.",
        _WARNS,
    ),
    Item(
        "float64-on-mps",
        "V11",
        "The result is to count on MPS, which has no float64, and a sealed run met "
        "float64 or complex128 on the device it was steered to.",
        _WARNS,
    ),
    # --- one replay
    Item("same-run", "V12", "The replay stands against no sealed run.", _DIFFERS),
    Item(
        "copied-replay",
        "V12",
        "The replay took the time of another run to the nanosecond: it is a copy.",
        _REQUIRED,
    ),
    Item(
        "replay-time",
        "V12",
        "The replay started before the run that it repeats, in the future, or at no "
        "time.",
        _WARNS,
    ),
    Item(
        "experiment",
        "V12",
        "The run was asked to differ from the reference. It decides nothing, and where "
        "it is judged by itself, it is no plain replay.",
        _WARNS,
        allowable=False,
    ),
    Item("same-files", "V12", "The replay started from other files.", _DIFFERS),
    Item("same-command", "V12", "The replay ran another command.", _DIFFERS),
    Item("same-seed", "V12", "The replay was started with another seed.", _DIFFERS),
    Item(
        "same-draws",
        "V12",
        "The replay made its random draws in another way than the reference.",
        _WARNS,
    ),
    Item(
        "draws-taken",
        "V12",
        "Draws, first weights or first batches of the reference could not be taken, "
        "for they did not match; a gap where the kept ones were used up.",
        _WARNS,
    ),
    Item(
        "draws-on-device",
        "V12",
        "A device's own generator was drawn from although the CPU's was to draw.",
        _WARNS,
    ),
    Item("seed-calls", "V12", "The script set other seeds.", _WARNS),
    Item(
        "same-steps",
        "V12",
        "The replay made another number of steps; not checked where it was stopped.",
        _WARNS,
    ),
    Item(
        "same-start",
        "V12",
        "The two runs did not start equal: first weights, inputs, batches or loader "
        "seeds differ, and the outputs do too.",
        _WARNS,
    ),
    Item("same-inputs", "V12", "An input had other content.", _DIFFERS),
    Item(
        "reduced-input",
        "V12",
        "The replay did not read all inputs, or says that it read less.",
        _WARNS,
        allowable=False,
    ),
    Item(
        "further-input",
        "V12",
        "The replay read files that the reference did not read; it is a warning if one "
        "of them is a result of the reference.",
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
    Item(
        "rank-missing",
        "V13",
        "A rank of a distributed run did not report, or not to its end.",
        _REQUIRED,
    ),
    Item(
        "ranks-disagree",
        "V13",
        "Ranks differ in their torch, their number of steps, or parameters that data "
        "parallelism keeps equal.",
        _REQUIRED,
    ),
    Item(
        "rank-parameters",
        "V13",
        "It is not known whether the ranks ended with the same parameters.",
    ),
    Item(
        "cell-failed",
        "V13",
        "A notebook cell failed although the command reported success.",
        _WARNS,
    ),
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
        "data-rule-overridden",
        "V13",
        "The replay was made although the policy's rules about data are against it.",
        _WARNS,
    ),
    Item(
        "handoff-policy-overridden",
        "V13",
        "The bundle was handed over although its policy is against it.",
        _WARNS,
    ),
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
    Item(
        "device-asked",
        "V15",
        "The device asked for was not used, or the CPU did a model's work beside it.",
        {**_REQUIRED, **_WARNS},
    ),
    Item(
        "device-mapped",
        "V15",
        "Calls that name CUDA were made for another device, in either run.",
        _WARNS,
    ),
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
        "fallback-witnesses",
        "V15",
        "The witnesses of CPU fallback contradict each other where both looked.",
        _WARNS,
    ),
    Item(
        "in-kernel-detour",
        "V15",
        "A kernel of MPS left for the CPU by itself, by the sizes and dtypes it was "
        "given or by its own warning.",
        _WARNS,
        allowable=False,
    ),
    Item(
        "known-mps-fault",
        "V15",
        "An operator was called in a form that this version of torch is known to "
        "compute wrongly on MPS; not checked where that depends on more.",
        _WARNS,
    ),
    Item("host-transfers", "V15", "The script itself moves data from and to the CPU."),
    Item(
        "non-blocking-copy",
        "V15",
        "A copy from or to MPS was not waited for; such a copy can lose data silently.",
        _WARNS,
    ),
    Item(
        "index-out-of-range",
        "V15",
        "An index was outside its table: an error on the CPU, zeros on MPS.",
        _WARNS,
        allowable=False,
    ),
    Item(
        "out-of-memory-caught",
        "V15",
        "The device had no memory for an operator, and the script went on without it.",
        _WARNS,
    ),
    Item(
        "accepting-platform",
        "V15",
        "The result counts on other platforms only.",
        {"not-checked": _V.NOT_DECIDABLE_HERE},
    ),
    Item(
        "first-divergence",
        "V17",
        "The first place where two traced runs part, where an output differs; not "
        "checked without fingerprints on both sides.",
        _DIFFERS,
    ),
    Item("output-missing", "V16", "An output did not come out.", _DIFFERS),
    Item("output-unexpected", "V16", "An additional output came out.", _WARNS),
    Item("output-differs", "V17", "An output is outside the policy.", _DIFFERS),
    Item("output-not-compared", "V17", "An output could not be compared.", _UNKNOWN),
    Item(
        "claim-band",
        "V17",
        "A number of the claim is outside its band.",
        {**_DIFFERS, **_UNKNOWN},
    ),
    Item("claim-judged", "V17", "The claim states no band, so it is not judged."),
    Item(
        "output-withheld",
        "V17",
        "An output agrees by digest, and its author keeps the content and what it "
        "holds: NaN and zeros were not looked for.",
        _WARNS,
    ),
    Item("output-excluded", "V17", "A rule or another claim leaves an output out."),
    Item("nothing-compared", "V17", "There was nothing to compare.", _REQUIRED),
    Item(
        "hidden-by-atol",
        "V17",
        "Only an absolute tolerance as large as the values admits an output.",
        _WARNS,
    ),
    Item(
        "large-error",
        "V17",
        "An output is within its tolerance, and half of its values or more is error.",
        _WARNS,
    ),
    Item(
        "values-not-compared",
        "V17",
        "The profile compat compared structure, not values.",
        _WARNS,
        # Allowed, a run of other numbers would read as reproduced.
        allowable=False,
    ),
    Item("nan-in-output", "V17", "Both sides hold NaN in the same places.", _WARNS),
    Item("output-all-zero", "V17", "Every value of an output is zero.", _WARNS),
    Item("output-empty", "V17", "An output holds nothing.", _WARNS),
    Item(
        "linux-reference-differs",
        "V17",
        "The bundle was packed elsewhere than on Linux, and the replay differs from "
        "the Linux reference that somebody attached. The origin stays the base of the "
        "verdict.",
        _WARNS,
    ),
    Item(
        "environment-tracked",
        "V18",
        "The environment of the replay was not compared with the lock.",
    ),
    Item(
        "environment-drift",
        "V18",
        "A fact that is known to change numbers differs, and the outputs do too; not "
        "checked where one side knows no such fact.",
        {**_WARNS, **_UNKNOWN},
    ),
    Item(
        "environment-gap",
        "V18",
        "Facts that are known to change numbers are known on one side only.",
    ),
    Item(
        "unsynchronised-timing",
        "V19",
        "A time was taken without waiting for the device.",
        _WARNS,
    ),
    Item(
        "timing-self-check",
        "V19",
        "The steady steps, each read with and without the last wait, contradict each "
        "other, or the stored ratio is not theirs; not checked without a steady state.",
        _WARNS,
    ),
    Item(
        "memory-limits",
        "V21",
        "The allocators of the two runs had other limits.",
        _WARNS,
    ),
    Item(
        "memory-growth",
        "V21",
        "The replay's memory grows and the reference's does not.",
        _WARNS,
    ),
    # --- all replays together
    Item(
        "restart-asked",
        "V22",
        "Nobody asked whether the result survives a stop and a resume.",
    ),
    Item(
        "restart-made",
        "V22",
        "A restart check was asked for, and it shows nothing about a resume.",
        _UNKNOWN,
    ),
    Item(
        "restart-differs",
        "V22",
        "Stopped and resumed, the result is another one: a warning about the "
        "author's own restart pass, a no for a replayed one.",
        {**_DIFFERS, **_WARNS, **_UNKNOWN},
    ),
    Item(
        "truth-made",
        "V23",
        "A float64 run was asked for, and it cannot serve as a truth.",
    ),
    Item(
        "truth-nearer",
        "V23",
        "Which side lies nearer to the float64 run, output by output. It explains a "
        "difference and never excuses one.",
    ),
    Item(
        "replayed",
        "V20",
        "Nobody has replayed the bundle, or no replay came to its end.",
        {"not-checked": _V.NOT_YET_REPLAYED},
    ),
    Item(
        "claim-replayed",
        "V20",
        "A claim was not replayed, or not to its end.",
        {"not-checked": _V.PARTIAL},
    ),
    Item(
        "claim-ends",
        "V20",
        "The last numbers of repeated runs are not distributed as the author's, or "
        "there are too few runs to tell.",
        {**_DIFFERS, **_UNKNOWN},
    ),
    Item(
        "replays-disagree",
        "V20",
        "Another replay of a reproduced claim was not reproduced, or another call of "
        "replay failed the test of its ends.",
        _WARNS,
    ),
    # --- who vouches for it
    Item(
        "signature-form",
        "V24",
        "A file in signatures/ is no SSH signature made for this purpose, or is not "
        "named by what it signs.",
        _TAMPERED,
    ),
    Item(
        "signature-holds",
        "V24",
        "A signature is not one over what its name states.",
        _TAMPERED,
    ),
    Item(
        "signer-known",
        "V24",
        "The key of a signature was not valid at the time, withdrawn, or "
        "listed for other purposes; not checked where it is not listed.",
        _REQUIRED,
    ),
    Item(
        "author-signed",
        "V24",
        "No listed and valid key signed the bundle.",
        _REQUIRED,
    ),
    # --- acceptance records
    Item(
        "acceptance-record",
        "V25",
        "An attached acceptance record breaks its schema.",
        _TAMPERED,
    ),
    Item(
        "acceptance-name",
        "V25",
        "An acceptance record does not have the digest it is named by.",
        _TAMPERED,
    ),
    Item(
        "acceptance-bundle",
        "V25",
        "An acceptance record accepts another bundle.",
        _TAMPERED,
    ),
    Item(
        "acceptance-derived",
        "V25",
        "An acceptance record says otherwise than its evidence; not checked where that "
        "evidence is not here, or another release derived it.",
        _TAMPERED,
    ),
    Item(
        "acceptance-current",
        "V25",
        "The versions that an acceptance holds for are no longer those of the newest "
        "runs.",
    ),
)

ITEMS: Mapping[str, Item] = MappingProxyType({item.id: item for item in EVERY_ITEM})
