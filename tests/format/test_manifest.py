"""A manifest that contradicts itself or its format is refused."""

from __future__ import annotations

import pytest

from reprobundle.errors import (
    BundleError,
    DocumentError,
    LimitError,
    NotABundleError,
    UnsafeNameError,
    UnsupportedVersionError,
)
from reprobundle.format import limits
from reprobundle.format.canonical import encode
from reprobundle.format.digests import digest_bytes
from reprobundle.format.manifest import decode_manifest

from .forge import CHUNK, ForgedBundle, canonical, member


def forged(**changes) -> ForgedBundle:
    bundle = ForgedBundle()
    bundle.add_checksums()
    bundle.manifest.update(changes)
    return bundle


def changed(path="inputs/x.csv", **facts) -> bytes:
    return forged().change(path, **facts).manifest_bytes()


def with_members(change) -> bytes:
    bundle = ForgedBundle()
    change(bundle.members)
    bundle.add_checksums()
    return bundle.manifest_bytes()


def test_a_manifest_that_is_right_is_read_and_written_back_the_same():
    data = forged().manifest_bytes()
    manifest = decode_manifest(data)
    assert [m.path for m in manifest.members][:2] == ["README.txt", "project/train.py"]
    assert encode(manifest) == data


def swap(members):
    members[1], members[2] = members[2], members[1]


BAD = {
    "another format": (
        lambda: forged(format="else").manifest_bytes(),
        NotABundleError,
        "R-6.5",
    ),
    "another JSON document": (lambda: b'{"a": 1}', DocumentError, "R-6.6"),
    "no JSON": (lambda: b"hello", DocumentError, "R-6.4"),
    "a newer major version": (
        lambda: forged(version="2.0").manifest_bytes(),
        UnsupportedVersionError,
        "R-6.5",
    ),
    "version zero": (
        lambda: forged(version="0.9").manifest_bytes(),
        UnsupportedVersionError,
        "R-6.5",
    ),
    "a version that is none": (
        lambda: forged(version="one").manifest_bytes(),
        DocumentError,
        "R-6.6",
    ),
    "a version with a leading zero": (
        lambda: forged(version="1.00").manifest_bytes(),
        DocumentError,
        "R-6.6",
    ),
    "another chunk size": (
        lambda: forged(chunk_bytes=1 << 20).manifest_bytes(),
        DocumentError,
        "R-6.6",
    ),
    "an unknown field": (
        lambda: forged(note="x").manifest_bytes(),
        DocumentError,
        "R-6.6",
    ),
    "an unknown field of a member": (
        lambda: changed(note="x"),
        DocumentError,
        "R-6.6",
    ),
    "an unknown role": (lambda: changed(role="virus"), DocumentError, "R-6.6"),
    "a negative size": (lambda: changed(size_bytes=-1), DocumentError, "R-6.6"),
    "a size beyond 2^53": (lambda: changed(size_bytes=1 << 60), DocumentError, "R-6.6"),
    "a size that is no integer": (
        lambda: changed(size_bytes=8.5),
        DocumentError,
        "R-6.6",
    ),
    "a digest that is none": (lambda: changed(blake3="0" * 63), DocumentError, "R-6.6"),
    "a digest with a line break": (
        lambda: changed(blake3="0" * 64 + "\n"),
        DocumentError,
        "R-6.6",
    ),
    "a digest in capitals": (lambda: changed(blake3="A" * 64), DocumentError, "R-6.6"),
    "another indent": (
        lambda: forged().manifest_bytes().replace(b"\n ", b"\n  "),
        DocumentError,
        "R-6.7",
    ),
    "no line break at the end": (
        lambda: forged().manifest_bytes().rstrip(b"\n"),
        DocumentError,
        "R-6.7",
    ),
    "a default that is written out": (
        lambda: changed(executable=False),
        DocumentError,
        "R-6.7",
    ),
    "a repeated key": (
        lambda: (
            forged()
            .manifest_bytes()
            .replace(b' "format"', b' "format": "reprobundle",\n "format"', 1)
        ),
        DocumentError,
        "R-6.3",
    ),
    "members larger than 2^53 together": (
        lambda: with_members(
            lambda members: [
                m.update(size_bytes=limits.FILE_BYTES) for m in members[1:3]
            ]
        ),
        LimitError,
        "R-6.8",
    ),
    "a path without a place": (
        lambda: with_members(lambda m: m.append(member("zzz/a", b"", role="output"))),
        DocumentError,
        "R-6.9",
    ),
    "a file where a folder is due": (
        lambda: with_members(
            lambda m: m.append(member("external", b"", role="external"))
        ),
        DocumentError,
        "R-6.9",
    ),
    "a role at the wrong place": (
        lambda: changed("project/train.py", role="policy"),
        DocumentError,
        "R-6.9",
    ),
    "a record that has another role": (
        lambda: changed("runs/1/record.json", role="output"),
        DocumentError,
        "R-6.9",
    ),
    "a record elsewhere": (
        lambda: changed("runs/1/outputs/y.txt", role="record"),
        DocumentError,
        "R-6.9",
    ),
    "a replay inside the seal": (
        lambda: with_members(
            lambda m: m.append(
                member(f"replays/{'0' * 64}/record.json", b"", role="record")
            )
        ),
        DocumentError,
        "R-6.9",
    ),
    "members out of order": (lambda: with_members(swap), DocumentError, "R-6.10"),
    "chunk digests of a small member": (
        lambda: changed(chunks=["0" * 64]),
        DocumentError,
        "R-6.11",
    ),
    "a chunk digest too few": (
        lambda: changed(size_bytes=2 * CHUNK + 1, chunks=["0" * 64] * 2),
        DocumentError,
        "R-6.11",
    ),
    "no README": (
        lambda: with_members(lambda m: m.pop(0)),
        DocumentError,
        "R-6.12",
    ),
    "no B3SUMS": (
        lambda: ForgedBundle().manifest_bytes(),
        DocumentError,
        "R-6.12",
    ),
    "a B3SUMS that says otherwise": (
        lambda: changed(blake3="0" * 64),
        DocumentError,
        "R-6.12",
    ),
    "an unsafe path": (
        lambda: with_members(lambda m: m.insert(1, member("project/../x", b""))),
        UnsafeNameError,
        "R-5.2",
    ),
    "a path twice": (
        lambda: with_members(lambda m: m.insert(1, m[1])),
        UnsafeNameError,
        "R-5.8",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_refuses(case):
    make, error, rule = BAD[case]
    with pytest.raises(BundleError) as caught:
        decode_manifest(make())
    assert (type(caught.value), caught.value.rule) == (error, rule), caught.value
    assert str(caught.value).isprintable()


def test_refuses_more_members_than_the_limit(monkeypatch):
    monkeypatch.setattr(limits, "MEMBER_COUNT", 3)
    with pytest.raises(LimitError, match="7 members, at most 3") as caught:
        decode_manifest(forged().manifest_bytes())
    assert caught.value.rule == "R-6.8"


def test_a_newer_minor_version_may_add_fields():
    bundle = forged(version="1.7", note={"new": [1.5]})
    bundle.change("inputs/x.csv", media="text/csv")
    manifest = decode_manifest(bundle.manifest_bytes())
    assert manifest.version == "1.7"
    assert [m.path for m in manifest.members][2] == "inputs/x.csv"


@pytest.mark.parametrize(
    ("facts", "rule"),
    [({"role": "virus"}, "R-6.6"), ({"chunks": ["0" * 64]}, "R-6.11")],
)
def test_a_newer_minor_version_may_change_nothing_else(facts, rule):
    bundle = forged(version="1.7").change("inputs/x.csv", **facts)
    with pytest.raises(DocumentError) as caught:
        decode_manifest(bundle.manifest_bytes())
    assert caught.value.rule == rule


def test_a_newer_minor_version_may_not_repeat_a_key():
    data = forged(version="1.7").manifest_bytes()
    doubled = data.replace(b' "format"', b' "format": "reprobundle",\n "format"', 1)
    with pytest.raises(DocumentError) as caught:
        decode_manifest(doubled)
    assert caught.value.rule == "R-6.3"


def test_the_update_is_advised_for_a_newer_major_version():
    with pytest.raises(UnsupportedVersionError, match="update reprobundle") as caught:
        decode_manifest(canonical({"format": "reprobundle", "version": "3.1"}))
    assert caught.value.version == "3.1"


def test_the_manifest_holds_nothing_but_facts_about_content(sealed):
    # A time, a host, an offset or a library version would change the id of equal files.
    _, written = sealed
    fields = set(written.members[0].__struct_fields__)
    assert fields == {"path", "size_bytes", "blake3", "role", "executable", "chunks"}
    assert digest_bytes(b"") == written.members[1].blake3
