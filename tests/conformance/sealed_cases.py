"""The vectors of section 7 and of the checks V4 to V9: what is sealed, and complete."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from tests.conformance.acceptance_files import with_record
from tests.conformance.case import INTEGRITY, Case
from tests.conformance.container_files import (
    COMPLETE,
    DEEP,
    ZEROS,
    base,
    compressed,
    two_chunks,
)
from tests.conformance.documents import (
    ENVIRONMENT,
    INPUT,
    LOCK,
    METRICS,
    OUTPUT,
    POLICY,
    SCRIPT,
    Document,
    Run,
    Story,
    again,
    bundle_id,
    digest,
    input_read,
    replay_entries,
    replay_files,
    replayed,
)
from tests.conformance.signature_files import armoured, signed
from tests.format.forge import Forged, build_zip

WRONG = "0" * 64
EDITED = b"import torch \n"
OTHER_METRICS = b'{"accuracy": 0.9999}\n'


def _story(**parts: Any) -> Callable[[], bytes]:
    """Return what makes a bundle of these parts of a `Story`."""
    return lambda: Story(**parts).forge().build()


def _recorded(**changes: object) -> Callable[[], bytes]:
    """Return what makes a bundle whose reference record has other fields."""
    return _story(runs=[(Run(changes=changes), {})])


def _with_output(**changes: object) -> Callable[[], bytes]:
    """Return what makes a bundle whose record says something else of its output."""
    output = {
        "name": OUTPUT,
        "kind": "document",
        "format": "json",
        "size_bytes": len(METRICS),
        "blake3": digest(METRICS),
        "stored": "here",
        "member": f"outputs/{OUTPUT}",
    }
    return _recorded(outputs=[{**output, **changes}])


def _members(*further: Document, **changes: object) -> list[Document]:
    """Return what the reference says of its members, the first one changed."""
    right = [
        {"name": name, "size_bytes": len(data), "blake3": digest(data)}
        for name, data in sorted(Run().build().items())
        if name != "record.json"
    ]
    return [{**right[0], **changes}, *right[1:], *further]


def _wrong_chunk() -> bytes:
    bundle = compressed(two_chunks())
    chunks = next(one for one in bundle.members if one["path"] == ZEROS)["chunks"]
    return bundle.change(ZEROS, chunks=[chunks[0], WRONG]).build()


def _replay(**changes: object) -> Callable[[], bytes]:
    """Return what makes a replay file whose record has other fields."""
    return lambda: build_zip(replay_entries(bundle_id(base()), again(), **changes))


def _replay_content(content: bytes | None, *further: str) -> Callable[[], bytes]:
    """Return what makes a replay file with other content than its record names.

    Args:
        content: Of its output; None for none.
        further: Names of further files in its folder.
    """

    def make() -> bytes:
        files = replay_files(bundle_id(base()), again())
        record, output = files
        top = record.removesuffix("record.json")
        kept = {} if content is None else {output: content}
        files = {record: files[record], **kept, **{top + one: b"?" for one in further}}
        return build_zip([Forged(name, data) for name, data in files.items()])

    return make


SHARED: Document = {
    "name": "stdout.txt",
    "size_bytes": len(METRICS),
    "blake3": digest(METRICS),
    "sealed": f"runs/1/outputs/{OUTPUT}",
}


def _record_only() -> bytes:
    """Return a bundle whose replay keeps nothing: output and log are sealed ones."""
    run = again(members=[SHARED])
    sealed = {digest(METRICS): SHARED["sealed"]}
    story = Story(runs=[(Run(), {})])
    return replayed(story, dataclasses.replace(run, sealed=sealed)).build()


def _sharing(**changes: object) -> Callable[[], bytes]:
    """Return what makes a replay file whose only member is said to be a sealed one."""
    run = again({}, members=[{**SHARED, **changes}])
    return lambda: build_zip(replay_entries(bundle_id(base()), run))


def _invalid(
    area: str,
    requirement: str,
    name: str,
    verdict: str,
    comment: str,
    make: Callable[[], bytes],
    arguments: tuple[str, ...] = INTEGRITY,
) -> Case:
    return Case(area, name, requirement, "invalid", verdict, comment, make, arguments)


def _lying_replay(name: str, comment: str, make: Callable[[], bytes]) -> Case:
    return Case(
        "integrity", name, "V6", "invalid", "TAMPERED", comment, make, (), COMPLETE
    )


def _incomplete(name: str, comment: str, make: Callable[[], bytes]) -> Case:
    return _invalid("completeness", "V9", name, "INCOMPLETE", comment, make)


DOCUMENTS = (
    _invalid(
        "documents",
        "R-7.1",
        "policy_unknown_field",
        "UNREADABLE",
        "The policy has a field that its schema does not know.",
        _story(policy={**POLICY, "note": "x"}),
    ),
    _invalid(
        "documents",
        "R-6.4",
        "policy_nan",
        "UNREADABLE",
        "The policy holds NaN as a number, for which JSON has no form.",
        _story(
            policy=b'{"schema": "reprobundle/policy/1", "claims": '
            b'[{"name": "main", "minutes": NaN}]}\n'
        ),
    ),
    _invalid(
        "documents",
        "R-7.2",
        "record_unknown_field",
        "UNREADABLE",
        "The reference record has a field that its schema does not know.",
        _recorded(note="x"),
    ),
    _invalid(
        "documents",
        "R-7.2",
        "record_names_missing_member",
        "TAMPERED",
        "The reference record names a member that is not there.",
        _recorded(
            members=_members({"name": "z.txt", "size_bytes": 1, "blake3": WRONG})
        ),
    ),
    _invalid(
        "documents",
        "R-7.2",
        "record_of_a_high_number",
        "UNREADABLE",
        "The record of a run with a number of seven digits breaks its schema.",
        _story(files={"runs/1000000/record.json": b"{}\n"}),
    ),
    _invalid(
        "documents",
        "R-7.3",
        "lock_unknown_field",
        "UNREADABLE",
        "The lock has a field that its schema does not know.",
        _story(lock={**LOCK, "note": "x"}),
    ),
    _invalid(
        "documents",
        "R-7.4",
        "no_policy",
        "INCOMPLETE",
        "The bundle holds no policy, so nothing can be compared with it.",
        _story(left_out=("policy.json",)),
    ),
    _invalid(
        "documents",
        "R-7.4",
        "no_reference",
        "INCOMPLETE",
        "The bundle holds no run.",
        _story(runs=[]),
    ),
)

INTEGRITY_CASES = (
    _invalid(
        "integrity",
        "V4",
        "wrong_chunk_digest",
        "TAMPERED",
        "A chunk digest is wrong, the digest of the whole member is right: --deep "
        "finds it.",
        _wrong_chunk,
        DEEP,
    ),
    _invalid(
        "integrity",
        "V5",
        "record_states_other_digest",
        "TAMPERED",
        "The reference record and the manifest state two digests of one member.",
        _recorded(members=_members(blake3=WRONG)),
    ),
    _invalid(
        "integrity",
        "V5",
        "member_beside_record",
        "TAMPERED",
        "A file lies beside the reference record that the record does not name.",
        _story(files={"runs/1/outputs/z.json": b"?"}),
    ),
    _invalid(
        "integrity",
        "V5",
        "output_of_other_content",
        "TAMPERED",
        "The reference record says that its output had another digest.",
        _with_output(blake3=WRONG),
    ),
    _invalid(
        "integrity",
        "V5",
        "input_of_other_content",
        "TAMPERED",
        "The bundle holds another input than the one the reference read.",
        _story(
            runs=[(Run(changes={"reads": [input_read(b"1\n3\n")]}), {})],
            files={"inputs/x.csv": INPUT},
        ),
    ),
    Case(
        "integrity",
        "two_replays",
        "V6",
        "valid",
        "REPRODUCED, bit-identical",
        "Two replays of two occasions are attached.",
        lambda: replayed(Story(), again(), again(occasion="1" * 16)).build(),
        (),
    ),
    _lying_replay(
        "replay_unknown_field",
        "A replay record has a field that its schema does not know.",
        _replay(note="x"),
    ),
    _lying_replay(
        "replay_of_other_bundle",
        "A replay names another bundle.",
        _replay(bundle=WRONG),
    ),
    _lying_replay(
        "replay_output_edited",
        "An output of a replay is not the one its record states.",
        _replay_content(OTHER_METRICS),
    ),
    _lying_replay(
        "replay_output_missing",
        "A replay's record names a member that is not there.",
        _replay_content(None),
    ),
    Case(
        "integrity",
        "replay_of_a_record_only",
        "V6",
        "valid",
        "REPRODUCED, bit-identical",
        "A replay keeps nothing but its record: what it gave is sealed already.",
        _record_only,
        (),
    ),
    _lying_replay(
        "replay_shares_nothing",
        "A member of a replay is said to be a sealed one that is not there.",
        _sharing(sealed="runs/9/stdout.txt"),
    ),
    _lying_replay(
        "replay_shares_another",
        "A member of a replay is said to be a sealed one of other content.",
        _sharing(sealed="policy.json"),
    ),
    _lying_replay(
        "replay_shares_a_forged_digest",
        "A member of a replay has another digest than the sealed one it is said to be.",
        _sharing(sealed="project/a.py", size_bytes=len(SCRIPT), blake3=WRONG),
    ),
    _invalid(
        "integrity",
        "V5",
        "sealed_run_shares",
        "TAMPERED",
        "The reference says that a member beside it lies elsewhere.",
        _recorded(members=_members(SHARED)),
    ),
    _lying_replay(
        "replay_with_more",
        "A file lies beside a replay's record that the record does not name.",
        _replay_content(METRICS, "outputs/z.json"),
    ),
    _invalid(
        "integrity",
        "R-4.33",
        "signature_malformed",
        "TAMPERED",
        "A file in signatures/ is no SSH signature.",
        lambda: signed(b"no signature\n"),
    ),
    _invalid(
        "integrity",
        "V24",
        "signature_for_other_purpose",
        "TAMPERED",
        "A signature was made for the namespace file.",
        lambda: signed(armoured(b"file")),
    ),
    Case(
        "integrity",
        "signature_without_subject",
        "V24",
        "valid",
        "INTACT",
        "A signature over something that is not in the file vouches for nothing.",
        lambda: signed(armoured(b"reprobundle"), subject=WRONG),
    ),
    Case(
        "integrity",
        "acceptance_record",
        "V25",
        "valid",
        "INTACT",
        "An acceptance record that another release derived. Nothing confirms it, and "
        "it takes nothing from the bundle.",
        with_record,
    ),
    _invalid(
        "integrity",
        "V25",
        "acceptance_renamed",
        "TAMPERED",
        "An acceptance record is not named by the digest of its bytes.",
        lambda: with_record(identifier=WRONG),
    ),
    _invalid(
        "integrity",
        "V25",
        "acceptance_of_other_bundle",
        "TAMPERED",
        "An acceptance record names another bundle.",
        lambda: with_record(bundle=WRONG),
    ),
    _invalid(
        "documents",
        "R-7.5",
        "acceptance_unknown_field",
        "TAMPERED",
        "An acceptance record has a field that its schema does not know.",
        lambda: with_record(stars=5),
    ),
    _invalid(
        "documents",
        "R-7.5",
        "acceptance_not_canonical",
        "TAMPERED",
        "An acceptance record is written without an indent.",
        lambda: with_record(compact=True),
    ),
    Case(
        "integrity",
        "expected_id",
        "V7",
        "valid",
        "INTACT",
        "The bundle has the id that the caller expects.",
        None,
        (*INTEGRITY, "--expect-id", bundle_id(base())),
        COMPLETE,
    ),
    _invalid(
        "integrity",
        "V7",
        "resealed",
        "TAMPERED",
        "The script was edited and the manifest made anew: only the id tells.",
        _story(files={"project/a.py": EDITED}),
        (*INTEGRITY, "--expect-id", bundle_id(base())),
    ),
    Case(
        "integrity",
        "replay_of_the_bundle_before",
        "V6",
        "invalid",
        "TAMPERED",
        "The same edited bundle, with a replay of the bundle as it was: the replay "
        "names another id.",
        _replay(),
        (),
        "integrity/resealed_fail",
    ),
)

COMPLETENESS = (
    _incomplete(
        "no_lockfile",
        "The bundle holds no lock of its environment.",
        _story(left_out=("lock/environment.json",)),
    ),
    _incomplete(
        "no_script",
        "The bundle does not hold the script that was run.",
        _story(left_out=("project/a.py",)),
    ),
    _incomplete(
        "no_input_sample",
        "The run read an input that the bundle does not hold.",
        _recorded(reads=[{**input_read(), "member": ""}]),
    ),
    _incomplete(
        "no_seeds",
        "Neither seeds nor generator states were recorded.",
        _recorded(randomness={}, command={"argv": ["python", "a.py"]}),
    ),
    _incomplete(
        "no_versions",
        "The version of torch could not be read.",
        _recorded(
            environment={**ENVIRONMENT, "torch.version": {"unknown": "not readable"}}
        ),
    ),
    _incomplete(
        "no_memory_log",
        "No memory log was recorded.",
        _story(runs=[(Run(beside={}), {})]),
    ),
    _incomplete(
        "no_output",
        "No output is described.",
        _story(runs=[(Run(outputs={}), {})]),
    ),
    _incomplete(
        "no_linux_reference",
        "The reference was made on a Mac, and nobody replayed it on Linux.",
        _recorded(platform="darwin"),
    ),
)

CASES = (*DOCUMENTS, *INTEGRITY_CASES, *COMPLETENESS)
