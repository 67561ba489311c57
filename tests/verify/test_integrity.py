"""Tampering: none of it passes, and each kind is named for what it is."""

from typing import cast

import msgspec
import pytest

from reprobundle.errors import MissingMemberError, StructureError
from reprobundle.format.attach import attach_replay
from reprobundle.format.canonical import encode
from reprobundle.format.findings import Verdict
from reprobundle.format.manifest import MANIFEST_PATH
from reprobundle.format.policy import Policy
from reprobundle.format.reader import Bundle, open_bundle
from reprobundle.format.record import ContentMember, FileRead, Process
from reprobundle.format.writer import Source
from reprobundle.verify.integrity import check_opened
from reprobundle.verify.verdict import consequence
from tests.verify.builder import DATA, LOGITS, OUTPUTS, SCRIPT, Run, found, npy


def flip(path, needle, offset=0):
    """Change one bit of the only place in the file that holds `needle`."""
    data = bytearray(path.read_bytes())
    at = data.index(needle) + offset
    data[at] ^= 1
    path.write_bytes(bytes(data))


def verdict(report):
    return report.verdict, report.exit_status


TAMPERED = ("TAMPERED", 21)
UNREADABLE = ("UNREADABLE", 21)


@pytest.mark.parametrize(
    ("needle", "where"),
    [(SCRIPT, "project/train.py"), (DATA, "inputs/data.csv"), (LOGITS[64:], "runs/")],
)
def test_an_edited_script_input_or_output_is_tampering(bench, needle, where):
    bench.pack().replay()
    flip(bench.path, needle)
    report = bench.verify()
    assert verdict(report) == TAMPERED
    damage = found(report, "member-digest", "fail")[0]
    assert damage.where.startswith(where)
    assert len(damage.expected) == len(damage.got) == 64
    assert report.judgements == ()


def test_integrity_alone_finds_it_too(bench):
    bench.pack()
    flip(bench.path, SCRIPT)
    assert verdict(bench.verify(integrity_only=True)) == TAMPERED


@pytest.mark.parametrize("cut", [0, 1, 100, -1])
def test_a_truncated_bundle_is_unreadable(bench, cut):
    data = bench.pack().path.read_bytes()
    bench.path.write_bytes(data[:cut])
    report = bench.verify()
    assert verdict(report) == UNREADABLE
    assert found(report, "container", "fail")
    assert found(report, "manifest", "not-checked")
    assert report.bundle == ""


def test_a_file_that_is_no_bundle_is_unreadable(bench):
    bench.path.write_bytes(b"%PDF-1.4 nothing of ours")
    assert verdict(bench.verify()) == UNREADABLE


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MissingMemberError("it is not there", rule="R"), TAMPERED),
        (StructureError("two entries overlap", rule="R"), UNREADABLE),
    ],
)
def test_what_opening_a_bundle_refuses_decides_the_verdict(
    bench, monkeypatch, error, expected
):
    def refuse(path):
        raise error

    bench.pack()
    monkeypatch.setattr("reprobundle.verify.verify.open_bundle", refuse)
    report = bench.verify()
    assert verdict(report) == expected
    assert error.args[0].partition(" [")[0] in " ".join(report.reasons)


def test_a_newer_minor_version_is_not_understood_completely():
    class Newer:
        newer_minor = True
        part = None
        interrupted = False
        members = ()
        size_bytes = 1

        class manifest:  # noqa: N801 - it stands for an attribute
            version = "1.9"

    (stated,) = [
        one for one in check_opened(cast("Bundle", Newer)) if one.id == "format-version"
    ]
    assert (stated.outcome, stated.got) == ("not-checked", "1.9")
    assert consequence(stated) is Verdict.INCOMPLETE


def test_a_newer_major_version_is_named_as_that(bench):
    bench.pack()
    flip(bench.path, b'"version": "1.0"', offset=len('"version": "'))
    report = bench.verify()
    assert verdict(report) == UNREADABLE


def test_a_manifest_made_anew_by_a_forger_has_another_id(bench):
    honest = bench.pack().id
    bench.policy = Policy(profile="compat")
    bench.pack().replay()
    forged = bench.verify()
    assert forged.exit_status != 21
    assert "expect-id" in forged.not_checked
    caught = bench.verify(expect_id=honest)
    assert verdict(caught) == TAMPERED
    assert found(caught, "expect-id", "fail")[0].got == bench.id


def test_a_replay_of_the_honest_bundle_gives_the_forgery_away(bench):
    honest = bench.pack().id
    alone = bench.replay_alone()
    bench.policy = Policy(profile="compat")
    bench.pack()
    report = bench.verify(replay_file=alone)
    assert verdict(report) == TAMPERED
    stranger = found(report, "replay-bundle", "fail")[0]
    assert (stranger.expected, stranger.got) == (bench.id, honest)


def test_the_expected_id_passes_in_any_case(bench):
    bench.pack()
    report = bench.verify(expect_id=f" {bench.id.upper()} ")
    assert found(report, "expect-id", "pass")


def test_chunk_digests_are_checked_only_when_asked_for(bench):
    big = npy([1.0] * (600 * 1024))
    bench.reference, bench.repeat = Run({"big.npy": big}), None
    bench.pack()
    assert found(bench.verify(), "chunk-digests", "not-checked")
    assert found(bench.verify(deep=True), "chunk-digests", "pass")


# --- sealed records -------------------------------------------------------------------


def sealed_with(bench, **changes):
    bench.reference = Run(changes=changes)
    return bench.pack().verify()


def member(name, digest="0" * 64):
    return ContentMember(name=name, size_bytes=1, blake3=digest)


def test_a_bundle_without_a_policy_is_incomplete(bench):
    bench.left_out = ("policy.json",)
    report = bench.pack().verify()
    assert verdict(report) == ("INCOMPLETE", 11)
    assert found(report, "sealed-document", "not-checked")[0].where == "policy.json"


def test_a_bundle_without_a_reference_run_is_incomplete(bench):
    bench.left_out = ("runs/1/record.json",)
    report = bench.pack().verify()
    assert verdict(report) == ("INCOMPLETE", 11)
    assert "no reference run" in " ".join(report.reasons)


def test_a_sealed_record_that_breaks_its_schema_is_named(bench):
    bench.extra = (Source("runs/9/record.json", "record", b'{"schema": "x"}\n'),)
    report = bench.pack().verify()
    assert verdict(report) == UNREADABLE
    assert found(report, "sealed-document", "fail")[0].where == "runs/9/record.json"


def test_a_lock_that_is_none_is_named(bench):
    bench.lock = b"{}\n"
    report = bench.pack().verify()
    assert verdict(report) == UNREADABLE
    assert found(report, "sealed-document", "fail")[0].where == "lock/environment.json"


@pytest.mark.parametrize(
    "changes", [{"role": "repeat"}, {"role": "replay"}, {"bundle": "ab" * 32}]
)
def test_run_1_must_be_a_reference(bench, changes):
    assert verdict(sealed_with(bench, **changes)) == UNREADABLE


def test_a_record_must_name_every_member_beside_it(bench):
    bench.extra = (Source("runs/1/outputs/hidden.npy", "output", b"x"),)
    report = bench.pack().verify()
    assert verdict(report) == TAMPERED
    lie = found(report, "run-members", "fail")[0]
    assert lie.where == "runs/1/outputs/hidden.npy"
    assert "does not name it" in lie.reason


def test_a_record_must_not_name_what_is_not_there(bench):
    bench.pack()
    record, _ = bench.reference.build(bench.folder)
    report = sealed_with(bench, members=(*record.members, member("outputs/gone.npy")))
    assert verdict(report) == TAMPERED
    assert found(report, "run-members", "fail")[0].where == "runs/1/outputs/gone.npy"


def test_a_record_and_the_manifest_must_agree_on_digests(bench):
    bench.pack()
    record, _ = bench.reference.build(bench.folder)
    changed = tuple(
        member(one.name) if one.name == "stdout.txt" else one for one in record.members
    )
    report = sealed_with(bench, members=changed)
    assert found(report, "run-members", "fail")[0].where == "runs/1/stdout.txt"


def test_an_output_must_have_the_content_it_describes(bench):
    bench.pack()
    record, _ = bench.reference.build(bench.folder)
    lie = msgspec.structs.replace(record.outputs[0], blake3="0" * 64)
    report = sealed_with(bench, outputs=(lie, *record.outputs[1:]))
    assert verdict(report) == TAMPERED
    assert "another one" in found(report, "run-members", "fail")[0].reason


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"stored": "sealed", "member": "runs/9/x"}, "another one"),
        ({"arrays_member": "tensors/gone"}, "tensors are not there"),
    ],
)
def test_an_output_must_not_point_to_nothing(bench, changes, words):
    bench.pack()
    record, _ = bench.reference.build(bench.folder)
    lie = msgspec.structs.replace(record.outputs[0], **changes)
    report = sealed_with(bench, outputs=(lie, *record.outputs[1:]))
    assert words in found(report, "run-members", "fail")[0].reason


def test_a_memory_series_must_be_beside_its_record(bench):
    bench.pack()
    record, _ = bench.reference.build(bench.folder)
    memory = msgspec.structs.replace(record.memory, series="gone.json")
    lie = found(sealed_with(bench, memory=memory), "run-members", "fail")[0]
    assert lie.where == "runs/1/gone.json"


def test_an_output_must_not_be_described_twice(bench):
    bench.pack()
    record, _ = bench.reference.build(bench.folder)
    report = sealed_with(bench, outputs=(*record.outputs, record.outputs[0]))
    assert "twice" in found(report, "run-members", "fail")[0].reason


def test_an_input_must_be_the_one_the_run_read(bench):
    read = FileRead(
        path="project:data.csv", member="inputs/data.csv", size_bytes=1, blake3="0" * 64
    )
    report = sealed_with(bench, reads=(read,))
    assert found(report, "run-members", "fail")[0].where == "inputs/data.csv"


# --- replays --------------------------------------------------------------------------


def test_an_edited_replay_record_does_not_have_its_name_any_more(bench):
    replay = bench.pack().replay(tool="reprobundle 7")
    flip(bench.path, b"reprobundle 7", 12)
    report = bench.verify()
    assert verdict(report) == TAMPERED
    renamed = found(report, "replay-name", "fail")[0]
    assert (renamed.where, renamed.expected) == (
        f"replays/{replay}/record.json",
        replay,
    )


def test_an_edited_replay_output_is_tampering(bench):
    bench.pack().replay(Run({**OUTPUTS, "mine.txt": b"only the replay has this\n"}))
    flip(bench.path, b"only the replay has this")
    report = bench.verify()
    assert verdict(report) == TAMPERED
    assert found(report, "replay-members", "fail")[0].where.endswith("mine.txt")


def shared(bench, **changes):
    """Attach a replay whose log is said to be a sealed member, and verify it."""
    bench.pack()
    record, sources = bench.replay_tree()
    log = next(one for one in record.members if one.name == "stdout.txt")
    with open_bundle(bench.path) as bundle:
        held = bundle.members["runs/1/stdout.txt"]
    usual = {"size_bytes": held.size_bytes, "blake3": held.blake3}
    stated = {"name": log.name, **usual, "sealed": held.path, **changes}
    members = tuple(
        ContentMember(**stated) if one is log else one for one in record.members
    )
    kept = [one for one in sources if one.path != stated["name"]]
    attach_replay(
        bench.path, encode(msgspec.structs.replace(record, members=members)), kept
    )
    return bench.verify()


def test_a_replay_may_refer_to_sealed_content(bench):
    report = shared(bench)
    assert not found(report, "replay-members", "fail")
    assert found(report, "replay-members", "pass")


@pytest.mark.parametrize(
    "changes",
    [
        {"sealed": "runs/9/stdout.txt"},
        {"sealed": "policy.json"},
        {"sealed": "replays/x/stdout.txt"},
        {"blake3": "0" * 64},
        {"size_bytes": 10**6},
    ],
)
def test_a_reference_to_other_content_is_tampering(bench, changes):
    report = shared(bench, **changes)
    assert verdict(report) == TAMPERED
    assert (
        "refers to a sealed member" in found(report, "replay-members", "fail")[0].reason
    )


def test_what_is_referred_to_must_not_lie_beside_too(bench):
    bench.pack()
    record, sources = bench.replay_tree()
    members = tuple(
        msgspec.structs.replace(one, sealed="runs/1/stdout.txt")
        if one.name == "stdout.txt"
        else one
        for one in record.members
    )
    lie = encode(msgspec.structs.replace(record, members=members))
    attach_replay(bench.path, lie, sources)
    reasons = [one.reason for one in found(bench.verify(), "replay-members", "fail")]
    assert any("does not name it" in reason for reason in reasons)


def test_a_memory_series_is_never_that_of_another_run(bench):
    bench.pack()
    with open_bundle(bench.path) as bundle:
        [held] = [
            one
            for one in bundle.members.values()
            if one.path.startswith("runs/1/") and one.role == "series"
        ]
    record, sources = bench.replay_tree()
    name = record.memory.series
    same = ContentMember(
        name=name,
        size_bytes=held.size_bytes,
        blake3=held.blake3,
        sealed=held.path,
    )
    members = tuple(same if one.name == name else one for one in record.members)
    lie = encode(msgspec.structs.replace(record, members=members))
    kept = [one for one in sources if one.path != name]
    attach_replay(bench.path, lie, kept)
    [wrong] = found(bench.verify(), "replay-members", "fail")
    assert "never have one memory series" in wrong.reason


def test_a_sealed_run_keeps_its_members_itself(bench):
    bench.pack()
    record, _ = bench.reference.build(bench.folder)
    changed = tuple(
        msgspec.structs.replace(one, sealed="runs/1/stdout.txt")
        if one.name == "stdout.txt"
        else one
        for one in record.members
    )
    report = sealed_with(bench, members=changed)
    reasons = [one.reason for one in found(report, "run-members", "fail")]
    assert any("keeps its members itself" in reason for reason in reasons)


@pytest.mark.parametrize("keep", [0, 1])
def test_a_replay_must_have_exactly_the_members_it_states(bench, keep):
    bench.pack()
    record, sources = bench.replay_tree()
    extra = [Source("outputs/more.bin", "output", b"x")]
    attach_replay(bench.path, encode(record), sources + extra if keep else sources[1:])
    report = bench.verify()
    assert verdict(report) == TAMPERED
    words = "does not name it" if keep else "it is not there"
    assert words in found(report, "replay-members", "fail")[0].reason


def test_an_attached_record_must_be_a_replay(bench):
    bench.pack().replay(role="reference")
    assert found(bench.verify(), "replay-record", "fail")[0].got == "reference"


def test_an_attached_record_must_conform_to_its_schema(bench):
    bench.pack()
    attach_replay(bench.path, b'{"schema": "reprobundle/record/1"}\n', [])
    report = bench.verify()
    assert verdict(report) == TAMPERED
    assert found(report, "replay-record", "fail")


def test_attaching_changes_neither_the_id_nor_a_sealed_byte(bench):
    before = bench.pack().id
    with open_bundle(bench.path) as bundle:
        manifest = bundle.read(MANIFEST_PATH)
    bench.replay()
    with open_bundle(bench.path) as bundle:
        assert bundle.id == before
        assert bundle.read(MANIFEST_PATH) == manifest


def test_a_file_of_a_run_that_has_no_record_is_named(bench):
    bench.extra = (Source("runs/7/outputs/x.txt", "output", b"x"),)
    report = bench.pack().verify()
    assert verdict(report) == TAMPERED
    assert found(report, "run-members", "fail")[0].where == "runs/7/outputs/x.txt"


def test_a_memory_series_that_is_none_is_named(bench, monkeypatch):
    monkeypatch.setattr("tests.verify.builder.SERIES", b"hello\n")
    report = bench.pack().verify()
    assert verdict(report) == TAMPERED
    assert found(report, "run-members", "fail")[0].where == "runs/1/memory.json"


def test_an_output_whose_stated_size_is_not_its_members_is_named(bench):
    record, _ = Run().build(bench.folder, role="reference")
    first, *rest = record.outputs
    wrong = msgspec.structs.replace(first, size_bytes=first.size_bytes + 1)
    report = sealed_with(bench, outputs=(wrong, *rest))
    assert verdict(report) == TAMPERED
    stated = found(report, "run-members", "fail")[0]
    assert (stated.expected, stated.got) == (
        str(first.size_bytes + 1),
        str(first.size_bytes),
    )


def test_a_failed_process_behind_a_zero_is_seen_without_a_remark(bench):
    bench.pack()
    bench.replay(
        Run(
            changes={
                "processes": (
                    Process(pid=1, kind="main", ended=True, exit_status=0),
                    Process(pid=2, parent_pid=1, ended=True, exit_status=3),
                )
            }
        )
    )
    report = bench.verify()
    assert report.verdict == "NOT REPRODUCED"
    assert "masked-failure" in " ".join(report.reasons)


ROWS = "".join(f"{n},{0.5 + n / 64}\n" for n in range(9)).encode()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"places": 3}, "too few or too many rows"),
        ({"places": 10}, "too few or too many rows"),
        ({"blocks": ()}, "another number of blocks"),
        (None, "says nothing about all its rows"),
    ],
)
def test_a_sample_of_rows_says_how_many_it_holds(bench, changes, words):
    kept = {"losses.csv": b"step,loss\n" + ROWS}
    honest = Run(outputs=kept, sampled=tuple(kept))
    bench.reference = bench.repeat = honest
    assert not found(bench.pack().verify(), "run-members", "fail")

    class Lying(Run):
        def build(self, folder, **fixed):
            record, content = honest.build(folder, **fixed)
            (output,) = record.outputs
            assert output.row_sample is not None
            told = changes and msgspec.structs.replace(output.row_sample, **changes)
            other = msgspec.structs.replace(output, row_sample=told)
            return msgspec.structs.replace(record, outputs=(other,)), content

    bench.reference = bench.repeat = Lying()
    lies = found(bench.pack().verify(), "run-members", "fail")
    assert lies
    assert words in lies[0].reason
