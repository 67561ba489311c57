"""Opening and reading: limits hold, streams are checked, messages say what is wrong."""

from __future__ import annotations

import io
import os
import random
from pathlib import Path

import pytest

from reprobundle.errors import (
    DigestError,
    DocumentError,
    EnvironmentUnusableError,
    LimitError,
    MissingMemberError,
    NotABundleError,
    StructureError,
    UnsupportedVersionError,
)
from reprobundle.format import limits
from reprobundle.format.reader import open_bundle

from .conftest import CONTENTS
from .forge import CHUNK, Forged, ForgedBundle, build_zip


@pytest.fixture
def bundle(sealed):
    with open_bundle(sealed[0]) as opened:
        yield opened


def test_an_opened_bundle_says_what_was_sealed(bundle, sealed):
    path, written = sealed
    assert bundle.id == written.id
    assert tuple(bundle.members.values()) == written.members
    assert bundle.size_bytes == path.stat().st_size
    assert bundle.manifest.version == "1.0"
    assert (bundle.newer_minor, bundle.replay_ids, bundle.signatures) == (False, (), ())


@pytest.mark.parametrize("path", CONTENTS)
def test_a_member_is_read_whole(bundle, path):
    assert bundle.read(path) == CONTENTS[path]


@pytest.mark.parametrize("path", CONTENTS)
def test_a_member_is_streamed(bundle, path):
    with bundle.open(path) as stream:
        assert stream.read() == CONTENTS[path]
        assert stream.read(1) == b""


@pytest.mark.parametrize("path", ["inputs/metrics.csv", "inputs/noise.bin"])
def test_a_stream_gives_the_right_bytes_at_any_place(bundle, path):
    content = CONTENTS[path]
    rng = random.Random(5)
    with bundle.open(path) as stream:
        for _ in range(30):
            start = rng.choice([rng.randrange(len(content)), CHUNK - 5, CHUNK])
            count = rng.choice([1, 17, 5000, 300_000])
            assert stream.seek(start) == start
            assert stream.tell() == start
            assert stream.read(count) == content[start : start + count]
        assert stream.seek(-7, io.SEEK_END) == len(content) - 7
        assert stream.read() == content[-7:]
        stream.seek(10**9)
        assert stream.read() == b""


def test_lines_can_be_read_from_a_stream(bundle):
    with io.TextIOWrapper(bundle.open("inputs/small.csv")) as lines:
        assert sum(1 for _ in lines) == CONTENTS["inputs/small.csv"].count(b"\n") + 1


def test_a_member_above_the_callers_limit_is_not_read(bundle):
    assert len(bundle.read("inputs/small.csv", limit_bytes=200_000)) == 200_000
    with pytest.raises(LimitError, match="at most 199,999") as caught:
        bundle.read("inputs/small.csv", limit_bytes=199_999)
    assert caught.value.rule == "R-4.30"


@pytest.mark.parametrize("ask", ["read", "open", "read_unsealed", "open_unsealed"])
def test_a_path_that_is_not_there_is_named(bundle, ask):
    with pytest.raises(MissingMemberError, match="'inputs/gone'") as caught:
        getattr(bundle, ask)("inputs/gone")
    assert caught.value.rule == "R-4.31"


def test_a_replay_that_is_not_attached_is_named(bundle):
    with pytest.raises(MissingMemberError, match="no replay 'abc'"):
        bundle.replay_entries("abc")


def test_a_closed_bundle_gives_nothing_more(sealed):
    with open_bundle(sealed[0]) as bundle:
        stream = bundle.open("inputs/metrics.csv")
    with pytest.raises(ValueError, match="closed file"):
        stream.read()
    with pytest.raises(ValueError, match="closed file"):
        bundle.read("policy.json")


@pytest.mark.parametrize("path", [p for p in CONTENTS if CONTENTS[p]])
def test_a_flipped_byte_is_never_given_out(bundle_path, path):
    with open_bundle(bundle_path) as bundle:
        entry = bundle.content(path).entry
        place = entry.data_offset + entry.size_bytes // 2
    data = bytearray(bundle_path.read_bytes())
    data[place] ^= 0x10
    bundle_path.write_bytes(data)
    with open_bundle(bundle_path) as bundle:
        with pytest.raises((DigestError, StructureError)):
            bundle.read(path)
        with pytest.raises((DigestError, StructureError)), bundle.open(path) as stream:
            stream.read()


def test_a_flipped_byte_is_named_with_its_place_and_digests(bundle_path):
    data = bytearray(bundle_path.read_bytes())
    data[data.index(b"print('hello')")] ^= 1
    bundle_path.write_bytes(data)
    with (
        open_bundle(bundle_path) as bundle,
        pytest.raises(DigestError, match=r"^project/train.py: blake3 is") as caught,
    ):
        bundle.read("project/train.py")
    sealed_digest = bundle.members["project/train.py"].blake3
    assert (caught.value.rule, caught.value.expected) == ("R-4.25", sealed_digest)


def test_a_flipped_byte_in_the_manifest_is_found_on_opening(bundle_path):
    data = bytearray(bundle_path.read_bytes())
    place = data.rindex(b'"version": "1.0"') + len(b'"version": "1.')
    data[place] ^= 8  # 1.8 would be a version that may be read
    bundle_path.write_bytes(data)
    with pytest.raises(StructureError, match="checksum") as caught:
        open_bundle(bundle_path)
    assert caught.value.rule == "R-4.24"


def test_a_newer_minor_version_is_read_and_said(open_bytes):
    forged = ForgedBundle()
    forged.manifest.update(version="1.4", note="new")
    assert open_bytes(forged.build()).newer_minor is True


def test_a_newer_major_version_is_refused_as_such_whatever_its_structure(open_bytes):
    forged = ForgedBundle()
    forged.manifest.update(version="2.0", chunk_bytes=1 << 30)
    entries = forged.entries()
    entries[1].both(flags=0x0802, time=5)
    entries.append(Forged("new/place", b"?"))
    with pytest.raises(UnsupportedVersionError, match=r"format 2\.0.*update") as caught:
        open_bytes(build_zip(entries))
    assert caught.value.version == "2.0"


def test_a_manifest_of_another_format_is_no_bundle(open_bytes):
    forged = ForgedBundle()
    forged.manifest.update(format="crate")
    with pytest.raises(NotABundleError, match="format is 'crate'"):
        open_bytes(forged.build())


def test_a_manifest_above_the_limit_is_not_read(open_bytes, monkeypatch):
    monkeypatch.setattr(limits, "DOCUMENT_BYTES", 100)
    with pytest.raises(LimitError) as caught:
        open_bytes(ForgedBundle().build())
    assert (caught.value.rule, caught.value.where) == ("R-4.30", "manifest.json")


def test_a_deep_manifest_is_refused(open_bytes):
    data = b'{"format":' + b"[" * 10**5 + b"]" * 10**5 + b"}"
    with pytest.raises(LimitError) as caught:
        open_bytes(build_zip(ForgedBundle().entries(manifest=data)))
    assert caught.value.rule == "R-6.2"


def test_a_repeated_key_in_the_manifest_is_refused(open_bytes):
    forged = ForgedBundle()
    forged.add_checksums()
    data = forged.manifest_bytes().replace(
        b'"role": "project"', b'"role": "project",\n   "role": "input"', 1
    )
    with pytest.raises(DocumentError) as caught:
        open_bytes(build_zip(forged.entries(manifest=data)))
    assert caught.value.rule == "R-6.3"


@pytest.mark.parametrize("kind", ["missing", "a folder", "a pipe"])
def test_what_cannot_be_opened_is_said_in_one_line(tmp_path, kind):
    path = tmp_path / "x.rpb.zip"
    if kind == "a folder":
        path.mkdir()
    if kind == "a pipe":
        os.mkfifo(path)
    with pytest.raises((EnvironmentUnusableError, NotABundleError)) as caught:
        open_bundle(path)
    assert str(caught.value).isprintable()


def test_opening_leaves_no_file_open_after_an_error(tmp_path):
    path = tmp_path / "x.rpb.zip"
    path.write_bytes(ForgedBundle().build(trailing=b"x"))
    before = len(list(Path("/dev/fd").iterdir()))
    for _ in range(5):
        with pytest.raises(StructureError):
            open_bundle(path)
    assert len(list(Path("/dev/fd").iterdir())) == before


def test_signatures_outside_the_seal_are_listed_and_read(tmp_path):
    forged = ForgedBundle()
    forged.unsealed = [Forged("signatures/alice.sig", b"signature")]
    path = tmp_path / "x.rpb.zip"
    path.write_bytes(forged.build())
    with open_bundle(path) as bundle:
        assert bundle.signatures == ("signatures/alice.sig",)
        assert bundle.read_unsealed("signatures/alice.sig") == b"signature"
