"""Acceptance records lie outside the seal, named by their digest."""

from __future__ import annotations

import shutil

import pytest

from reprobundle.errors import (
    BadCallError,
    DigestError,
    MissingMemberError,
    StructureError,
)
from reprobundle.format.attach import (
    attach_acceptance,
    attach_replay,
    detach_replay,
)
from reprobundle.format.canonical import encode
from reprobundle.format.digests import digest_bytes
from reprobundle.format.journal import journal_path
from reprobundle.format.reader import check_digests, open_bundle, open_replay_file
from tests.format.forge import Forged, ForgedBundle, build_zip


@pytest.fixture
def path(tmp_path, bundle_path):
    target = tmp_path / "small.rpb.zip"
    shutil.copy(bundle_path, target)
    return target


def document(path, text="A"):
    with open_bundle(path) as bundle:
        return encode({"bundle": bundle.id, "by": text})


def test_attaching_changes_no_sealed_byte_and_detaching_gives_the_file_back(path):
    before = path.read_bytes()
    data = document(path)
    identifier = attach_acceptance(path, data)
    assert identifier == digest_bytes(data)
    with open_bundle(path) as bundle:
        assert bundle.acceptance_ids == (identifier,)
        assert bundle.read_unsealed(f"acceptance/{identifier}.json") == data
        assert not bundle.replay_ids
        end = bundle.entries[-2].end
    assert path.read_bytes()[:end] == before[:end]
    assert not journal_path(path).exists()
    detach_replay(path, identifier)
    assert path.read_bytes() == before


def test_records_and_replays_lie_in_the_order_of_attaching(path):
    with open_bundle(path) as bundle:
        record = encode({"bundle": bundle.id})
    first = attach_acceptance(path, document(path, "A"))
    replay = attach_replay(path, record, [])
    second = attach_acceptance(path, document(path, "x" * 20_000))
    with open_bundle(path) as bundle:
        assert bundle.acceptance_ids == (first, second)
        assert bundle.replay_ids == (replay,)
    detach_replay(path, replay)
    with open_bundle(path) as bundle:
        assert bundle.acceptance_ids == (first, second)
        assert not check_digests(bundle, deep=True)


def test_one_is_attached_once(path):
    data = document(path)
    attach_acceptance(path, data)
    with pytest.raises(BadCallError, match="attached already"):
        attach_acceptance(path, data)


def test_that_of_another_bundle_is_refused(path):
    before = path.read_bytes()
    with pytest.raises(BadCallError, match="is of bundle 0000"):
        attach_acceptance(path, encode({"bundle": "0" * 64}))
    assert path.read_bytes() == before


def test_what_is_not_there_cannot_be_detached(path):
    with pytest.raises(MissingMemberError):
        detach_replay(path, "0" * 64)


def test_a_changed_one_has_not_the_digest_it_is_named_by(tmp_path):
    name = f"acceptance/{digest_bytes(b'{}')}.json"
    target = tmp_path / "a.rpb.zip"
    forged = ForgedBundle()
    forged.unsealed = [Forged(name, b'{"by": "me"}')]
    target.write_bytes(forged.build())
    with open_bundle(target) as bundle:
        with pytest.raises(DigestError):
            bundle.read_unsealed(name)
        assert [one.path for one in check_digests(bundle)] == [name]


@pytest.mark.parametrize(
    "name",
    ["acceptance/a.json", f"acceptance/{'0' * 64}", f"acceptance/{'A' * 64}.json"],
)
def test_another_name_is_refused(tmp_path, name):
    target = tmp_path / "a.rpb.zip"
    forged = ForgedBundle()
    forged.unsealed = [Forged(name, b"{}")]
    target.write_bytes(forged.build())
    with pytest.raises(StructureError) as caught:
        open_bundle(target)
    assert caught.value.rule == "R-4.26"


def test_a_replay_file_holds_none(tmp_path):
    record = encode({"bundle": ""})
    target = tmp_path / "a.rpr.zip"
    target.write_bytes(
        build_zip(
            [
                Forged(f"replays/{digest_bytes(record)}/record.json", record),
                Forged(f"acceptance/{'0' * 64}.json", b"{}"),
            ]
        )
    )
    with pytest.raises(StructureError) as caught:
        open_replay_file(target)
    assert caught.value.rule == "R-4.27"
