"""Replays come and go behind the seal; no sealed byte and no crash is lost."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from reprobundle.errors import (
    BadCallError,
    DigestError,
    LimitError,
    MissingMemberError,
    NotABundleError,
    PackRefusedError,
    StructureError,
    UnsafeNameError,
)
from reprobundle.format import limits
from reprobundle.format.attach import (
    attach_replay,
    attach_replay_file,
    detach_replay,
    restore_bundle,
    write_replay_file,
)
from reprobundle.format.digests import digest_bytes
from reprobundle.format.journal import journal_path
from reprobundle.format.pairing import check_attached
from reprobundle.format.reader import check_digests, open_bundle, open_replay_file
from reprobundle.format.writer import Source, write_bundle

from .conftest import csv_text, make_sources, pseudo_random
from .forge import Forged, build_zip

TREES = [
    (b'{"n": 1}', [Source("outputs/big.bin", "output", pseudo_random(300_000))]),
    (
        b'{"n": 2}',
        [
            Source("stdout.txt", "log", b"hello\n"),
            Source("outputs/a.csv", "output", csv_text(100_000)),
            Source("outputs/a.csv.zst", "output", b"their own"),
        ],
    ),
    (b'{"n": 3}', []),
]
IDS = [digest_bytes(record) for record, _ in TREES]


@pytest.fixture
def small_path(tmp_path):
    path = tmp_path / "small.rpb.zip"
    write_bundle(path, make_sources({"policy.json": b"{}\n", "inputs/x": b"1" * 900}))
    return path


def attach_all(path):
    return [attach_replay(path, record, tree) for record, tree in TREES]


def test_an_attached_replay_is_named_by_its_record_and_read_back(small_path):
    assert attach_all(small_path) == IDS
    with open_bundle(small_path) as bundle:
        assert list(bundle.replay_ids) == IDS
        assert check_digests(bundle, deep=True) == []
        for replay_id, (record, tree) in zip(IDS, TREES, strict=True):
            contents = {f"replays/{replay_id}/{s.path}": s.content for s in tree}
            names = bundle.replay_entries(replay_id)
            assert names[0] == f"replays/{replay_id}/record.json"
            assert names[1:] == tuple(sorted(contents))
            assert bundle.read_unsealed(names[0]) == record
            for name, content in contents.items():
                assert bundle.read_unsealed(name) == content
                with bundle.open_unsealed(name) as stream:
                    assert stream.read() == content


def test_attaching_changes_no_sealed_byte_and_no_id(small_path):
    before = small_path.read_bytes()
    with open_bundle(small_path) as bundle:
        bundle_id, sealed_end = bundle.id, bundle.entries[-1].end
    attach_all(small_path)
    assert small_path.read_bytes()[:sealed_end] == before[:sealed_end]
    with open_bundle(small_path) as bundle:
        assert bundle.id == bundle_id


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0], [1, 0, 2], [1, 2, 0]])
def test_detaching_gives_the_bytes_of_a_bundle_without_it(small_path, order):
    original = small_path.read_bytes()
    attach_all(small_path)
    left = [0, 1, 2]
    for number in order:
        detach_replay(small_path, IDS[number])
        left.remove(number)
        expected = small_path.with_name("expected.rpb.zip")
        expected.write_bytes(original)
        for other in left:
            attach_replay(expected, *TREES[other])
        assert small_path.read_bytes() == expected.read_bytes()
    assert small_path.read_bytes() == original
    assert not journal_path(small_path).exists()


def test_detaching_keeps_signatures(tmp_path, small_path):
    attach_replay(small_path, *TREES[0])
    data = small_path.read_bytes()
    with open_bundle(small_path) as bundle:
        end = bundle.entries[-1].end
    # A signature behind the replay, as another tool may write one.
    local = build_zip([Forged("signatures/a.sig", b"sig")])
    local = local[: local.index(b"PK\x01\x02")]
    directory = data[end:-22]
    entry = build_zip([Forged("signatures/a.sig", b"sig", central={"offset": end})])
    entry = entry[entry.index(b"PK\x01\x02") : -22]
    record = bytearray(data[-22:])
    count = int.from_bytes(record[8:10], "little") + 1
    record[8:12] = count.to_bytes(2, "little") * 2
    record[12:16] = (len(directory) + len(entry)).to_bytes(4, "little")
    record[16:20] = (end + len(local)).to_bytes(4, "little")
    small_path.write_bytes(data[:end] + local + directory + entry + bytes(record))
    detach_replay(small_path, IDS[0])
    with open_bundle(small_path) as bundle:
        assert (bundle.replay_ids, bundle.signatures) == ((), ("signatures/a.sig",))
        assert bundle.read_unsealed("signatures/a.sig") == b"sig"


def test_attaching_twice_is_refused(small_path):
    attach_replay(small_path, *TREES[0])
    before = small_path.read_bytes()
    with pytest.raises(BadCallError, match="attached already"):
        attach_replay(small_path, *TREES[0])
    assert small_path.read_bytes() == before


def test_detaching_what_is_not_attached_is_refused(small_path):
    with pytest.raises(MissingMemberError):
        detach_replay(small_path, IDS[0])


@pytest.mark.parametrize(
    "name", ["../x", "/x", "record.json", "a/../b", "Record.JSON", "aux.txt"]
)
def test_an_unsafe_name_is_refused_and_changes_nothing(small_path, name):
    before = small_path.read_bytes()
    with pytest.raises(UnsafeNameError):
        attach_replay(small_path, b"{}", [Source(name, "output", b"")])
    assert small_path.read_bytes() == before


def test_a_source_that_cannot_be_read_changes_nothing(small_path, tmp_path):
    before = small_path.read_bytes()
    sources = [
        Source("outputs/a", "output", pseudo_random(5_000_000)),
        Source("outputs/folder", "output", tmp_path),
    ]
    with pytest.raises(PackRefusedError):
        attach_replay(small_path, b"{}", sources)
    assert small_path.read_bytes() == before
    assert not journal_path(small_path).exists()


def test_more_entries_than_a_reader_takes_are_refused(small_path, monkeypatch):
    monkeypatch.setattr(limits, "ENTRY_COUNT", 7)
    attach_replay(small_path, *TREES[0])
    with pytest.raises(LimitError, match="detach older replays"):
        attach_replay(small_path, *TREES[1])


def test_more_replays_than_are_judged_are_refused(small_path, tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "REPLAY_COUNT", 1)
    attach_replay(small_path, *TREES[0])
    before = small_path.read_bytes()
    refusal = (
        r"2 replays are attached, the limit is 1 \[R-4\.34\]; detach older replays"
    )
    with pytest.raises(LimitError, match=refusal) as caught:
        attach_replay(small_path, *TREES[1])
    assert caught.value.rule == "R-4.34"
    alone = tmp_path / "x.rpr.zip"
    with pytest.raises(LimitError, match="write them to several files"):
        write_replay_file(alone, TREES)
    write_replay_file(alone, TREES[1:2])
    with pytest.raises(LimitError, match=refusal):
        attach_replay_file(small_path, alone)
    assert small_path.read_bytes() == before


def test_a_bundle_with_more_than_are_judged_is_not_read(small_path, monkeypatch):
    attach_all(small_path)
    monkeypatch.setattr(limits, "REPLAY_COUNT", 2)
    with pytest.raises(LimitError, match="3 replays are attached, the limit is 2"):
        open_bundle(small_path)


def test_so_is_one_with_more_acceptance_records():
    counted = limits.ACCEPTANCE_COUNT
    check_attached(limits.REPLAY_COUNT, counted)
    with pytest.raises(LimitError, match=r"1,001 acceptance records .* \[R-4\.34\]"):
        check_attached(0, counted + 1)


def test_a_bundle_behind_a_link_is_changed_in_its_place(small_path, tmp_path):
    link = tmp_path / "link.rpb.zip"
    link.symlink_to(small_path)
    attach_replay(link, *TREES[0])
    assert link.is_symlink()
    with open_bundle(small_path) as bundle:
        assert list(bundle.replay_ids) == IDS[:1]


CRASH = textwrap.dedent(
    """
    import os, sys
    from pathlib import Path
    from reprobundle.format.attach import attach_replay, detach_replay
    from reprobundle.format.writer import Source

    def dying(real, state):
        def call(*args, **options):
            state["left"] -= 1
            if state["left"] == 0:
                os._exit(9)
            return real(*args, **options)
        return call

    def change(path, verb):
        if verb == "attach":
            attach_replay(path, b'{"n": 9}', [Source("a", "output", b"x" * 3_000_000)])
        else:
            detach_replay(path, sys.argv[3])

    source, folder, verb = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[4]
    number = 0
    while True:
        number += 1
        path = folder / f"{number}.rpb.zip"
        path.write_bytes(source.read_bytes())
        child = os.fork()
        if not child:
            state = {"left": number}
            names = ("pwrite", "fsync", "ftruncate", "unlink", "replace")
            for name in names:
                setattr(os, name, dying(getattr(os, name), state))
            for name in ("replace", "unlink"):
                setattr(Path, name, dying(getattr(Path, name), state))
            change(path, verb)
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status == 0:
            break
        assert status == 9, status
    print(number)
    """
)


@pytest.mark.parametrize("verb", ["attach", "detach"])
def test_a_crash_at_any_moment_leaves_the_old_bundle_or_the_new_one(
    small_path, tmp_path, verb
):
    attach_all(small_path)
    folder = tmp_path / "crashes"
    folder.mkdir()
    command = [sys.executable, "-c", CRASH, small_path, folder, IDS[1], verb]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    count = int(done.stdout)
    old = small_path.read_bytes()
    new = (folder / f"{count}.rpb.zip").read_bytes()
    assert count > 8
    assert new != old
    outcomes = set()
    for number in range(1, count):
        path = folder / f"{number}.rpb.zip"
        state = path.read_bytes()
        if state not in (old, new):
            assert journal_path(path).exists()
            with open_bundle(path) as bundle:
                assert bundle.interrupted
                assert list(bundle.replay_ids) == IDS
        restored = restore_bundle(path)
        outcomes.add((state == old, state == new, restored))
        assert path.read_bytes() == (old if restored or state == old else new)
        assert not journal_path(path).exists()
        # The next attach works in any case.
        attach_replay(path, b'{"n": 10}', [])
    assert (False, False, True) in outcomes


def test_the_next_attach_first_undoes_what_was_cut_off(small_path):
    original = small_path.read_bytes()
    attach_replay(small_path, *TREES[0])
    cut_off(small_path, original)
    with open_bundle(small_path) as bundle:
        assert (bundle.interrupted, bundle.replay_ids) == (True, ())
    attach_replay(small_path, *TREES[2])
    detach_replay(small_path, IDS[2])
    assert small_path.read_bytes() == original


def test_a_bundle_copied_without_its_journal_names_it_and_is_read_with_it(small_path):
    original = small_path.read_bytes()
    attach_replay(small_path, *TREES[0])
    cut_off(small_path, original)
    kept = journal_path(small_path).read_bytes()
    journal_path(small_path).unlink()
    with pytest.raises(NotABundleError, match=r"put the \.journal that lay"):
        open_bundle(small_path)
    journal_path(small_path).write_bytes(kept)
    with open_bundle(small_path) as bundle:
        assert check_digests(bundle, deep=True) == []


def cut_off(path, original):
    """Leave `path` as an attach that was stopped would."""
    from reprobundle.format.journal import _write_journal

    whole = path.read_bytes()
    path.write_bytes(original)
    with open_bundle(path) as bundle, path.open("rb") as stream:
        end = bundle.entries[-1].end
        _write_journal(journal_path(path), stream.fileno(), end, bundle.anchor)
    path.write_bytes(whole[: (end + len(whole)) // 2])


def test_a_journal_of_another_bundle_is_not_applied(small_path, tmp_path):
    other = tmp_path / "other.rpb.zip"
    write_bundle(other, make_sources({"policy.json": b"{ }\n"}))
    original = other.read_bytes()
    attach_replay(other, *TREES[0])
    cut_off(other, original)
    journal_path(other).rename(journal_path(small_path))
    before = small_path.read_bytes()
    with pytest.raises(StructureError, match="belongs to another bundle") as caught:
        attach_replay(small_path, *TREES[0])
    assert caught.value.rule == "R-4.32"
    assert small_path.read_bytes() == before
    with open_bundle(small_path) as bundle:
        assert bundle.replay_ids == ()


@pytest.mark.parametrize("place", [3, 50, -1])
def test_a_damaged_journal_is_not_applied(small_path, place):
    original = small_path.read_bytes()
    attach_replay(small_path, *TREES[0])
    cut_off(small_path, original)
    journal = journal_path(small_path)
    data = bytearray(journal.read_bytes())
    data[place] ^= 1
    journal.write_bytes(data)
    with pytest.raises(StructureError, match="it is damaged"):
        restore_bundle(small_path)


def test_a_bundle_whose_journal_is_damaged_says_so(small_path):
    original = small_path.read_bytes()
    attach_replay(small_path, *TREES[0])
    cut_off(small_path, original)
    journal = journal_path(small_path)
    journal.write_bytes(journal.read_bytes()[:-1] + b"?")
    with pytest.raises(StructureError, match="cannot be used") as raised:
        open_bundle(small_path)
    assert raised.value.rule == "R-4.29"


def test_a_new_bundle_at_the_same_name_takes_no_journal_over(small_path):
    original = small_path.read_bytes()
    attach_replay(small_path, *TREES[0])
    cut_off(small_path, original)
    write_bundle(small_path, make_sources({"policy.json": b"{ }\n"}))
    assert restore_bundle(small_path) is False
    with open_bundle(small_path) as bundle:
        assert check_digests(bundle) == []


# -- replays that travel alone


def test_a_replay_file_holds_the_same_trees(tmp_path, small_path):
    target = tmp_path / "mac.rpr.zip"
    assert write_replay_file(target, TREES) == IDS
    with open_replay_file(target) as replays:
        assert list(replays.replay_ids) == IDS
        names = replays.replay_entries(IDS[1])
        assert replays.read_unsealed(names[0]) == TREES[1][0]
    assert attach_replay_file(small_path, target) == IDS
    other = tmp_path / "other.rpb.zip"
    write_bundle(other, make_sources({"policy.json": b"{}\n", "inputs/x": b"1" * 900}))
    attach_all(other)
    assert small_path.read_bytes() == other.read_bytes()


def test_only_new_replays_of_a_file_are_attached(tmp_path, small_path):
    target = tmp_path / "mac.rpr.zip"
    write_replay_file(target, TREES)
    attach_replay(small_path, *TREES[1])
    assert attach_replay_file(small_path, target) == [IDS[0], IDS[2]]
    before = small_path.read_bytes()
    assert attach_replay_file(small_path, target) == []
    assert small_path.read_bytes() == before


def test_a_forged_record_in_a_replay_file_is_refused(tmp_path, small_path):
    target = tmp_path / "mac.rpr.zip"
    write_replay_file(target, TREES)
    target.write_bytes(target.read_bytes().replace(b'{"n": 2}', b'{"n": 4}'))
    before = small_path.read_bytes()
    with pytest.raises(DigestError) as caught:
        attach_replay_file(small_path, target)
    assert caught.value.rule == "R-4.28"
    assert small_path.read_bytes() == before


def test_a_record_is_compared_with_its_id_when_it_is_read(tmp_path):
    target = tmp_path / "mac.rpr.zip"
    target.write_bytes(build_zip([Forged(f"replays/{'0' * 64}/record.json", b"{}")]))
    with (
        open_replay_file(target) as replays,
        pytest.raises(DigestError, match="blake3"),
    ):
        replays.read_unsealed(f"replays/{'0' * 64}/record.json")


def test_a_bundle_is_no_replay_file_and_the_other_way_round(tmp_path, small_path):
    target = tmp_path / "mac.rpr.zip"
    write_replay_file(target, TREES)
    with pytest.raises(NotABundleError, match=r"without manifest\.json"):
        open_bundle(target)
    with pytest.raises(StructureError) as caught:
        open_replay_file(small_path)
    assert caught.value.rule == "R-4.26"


def test_a_replay_file_without_a_replay_is_refused(tmp_path):
    with pytest.raises(BadCallError, match="no replay to write"):
        write_replay_file(tmp_path / "x.rpr.zip", [])
    (tmp_path / "x.rpr.zip").write_bytes(build_zip([]))
    with pytest.raises(NotABundleError, match="without a replay"):
        open_replay_file(tmp_path / "x.rpr.zip")
