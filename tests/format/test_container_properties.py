"""What is written is read again, and no other bytes read as the same bundle."""

from __future__ import annotations

import contextlib
import io
import zipfile

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reprobundle.errors import BundleError
from reprobundle.format.attach import attach_replay
from reprobundle.format.manifest import decode_manifest
from reprobundle.format.reader import (
    check_digests,
    extract,
    open_any,
    open_bundle,
    open_replay_file,
)
from reprobundle.format.writer import Source, write_bundle
from tests.format.forge import CHUNK, Forged, ForgedBundle, build_zip, canonical, member

from .conftest import pseudo_random

FEW = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

words = st.text("abcXYZ019éß語-_ .", min_size=1, max_size=8).filter(
    lambda word: word[-1] not in ". " and word not in {".", ".."}
)
paths = st.lists(words, min_size=1, max_size=4).map("/".join)


sizes = st.sampled_from([0, 1, 100, (16 << 10) - 1, 16 << 10, (16 << 10) + 1, 70_000])
kinds = st.sampled_from([bytes, pseudo_random])


@st.composite
def contents(draw):
    """Return members by name: of sizes around each limit of storage, any in folders."""
    names = draw(st.lists(st.tuples(st.booleans(), paths), max_size=6))
    # The numbers keep twins away, which have tests of their own.
    return {
        f"{'shared/' if shared else ''}{number}{name}": draw(kinds)(draw(sizes))
        for number, (shared, name) in enumerate(names)
    }


@FEW
@given(made=contents(), level=st.sampled_from([1, 3]))
def test_any_members_come_out_as_they_went_in(made, level, tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    path = folder / "x.rpb.zip"
    sources = [Source(f"inputs/{name}", "input", data) for name, data in made.items()]
    written = write_bundle(path, sources, level=level)
    with open_bundle(path) as bundle:
        assert check_digests(bundle, deep=True) == []
        assert bundle.id == written.id
        extract(bundle, folder / "out")
        for name, data in made.items():
            assert bundle.read(f"inputs/{name}") == data
            with bundle.open(f"inputs/{name}") as stream:
                assert stream.read() == data
    inputs = folder / "out" / "inputs"
    files = (one for one in inputs.rglob("*") if one.is_file())
    found = {one.relative_to(inputs).as_posix(): one.read_bytes() for one in files}
    assert found == made
    other = folder / "other.rpb.zip"
    assert write_bundle(other, sources[::-1], level=level).id == bundle.id
    assert other.read_bytes() == path.read_bytes()


@FEW
@given(made=contents())
def test_another_program_reads_the_same_files(made, tmp_path_factory):
    path = tmp_path_factory.mktemp("made") / "x.rpb.zip"
    sources = [Source(f"inputs/{name}", "input", data) for name, data in made.items()]
    write_bundle(path, sources)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        for name, data in made.items():
            if f"inputs/{name}" in archive.namelist():
                assert archive.read(f"inputs/{name}") == data
            else:
                assert f"inputs/{name}.zst" in archive.namelist()


def _replay_file() -> bytes:
    from blake3 import blake3

    record = b'{"n":1}\n'
    top = f"replays/{blake3(record).hexdigest()}"
    entries = [
        Forged(f"{top}/record.json", record),
        Forged(f"{top}/outputs/a.bin", b"1" * 40),
        Forged(f"{top}/outputs/b.bin", b""),
    ]
    return build_zip(entries)


REPLAYS = _replay_file()


def read_all(path):
    """Return everything that a replay file gives out, or the rule that it breaks."""
    try:
        with open_replay_file(path) as opened:
            names = opened.unsealed_contents()
            return {name: opened.read_unsealed(name) for name in names}
    except BundleError as error:
        return str(error)


@settings(FEW, max_examples=150)
@given(place=st.integers(0, len(REPLAYS) - 1), bits=st.integers(1, 255))
def test_a_changed_byte_of_a_replay_file_is_refused_or_in_a_member_or_its_crc(
    place, bits, tmp_path
):
    path = tmp_path / "x.rpr.zip"
    path.write_bytes(REPLAYS)
    whole = read_all(path)
    changed = bytearray(REPLAYS)
    changed[place] ^= bits
    path.write_bytes(changed)
    found = read_all(path)
    if isinstance(found, str):
        assert found.isprintable()
        return
    # What the record says of its members is compared by `verify`: names and content.
    assert [len(data) for data in found.values()] == [
        len(data) for data in whole.values()
    ]
    record = next(iter(whole))
    assert found[record] == whole[record]


@FEW
@given(length=st.integers(0, len(REPLAYS) - 1), more=st.binary(min_size=1, max_size=40))
def test_a_cut_or_longer_replay_file_is_refused(length, more, tmp_path):
    path = tmp_path / "x.rpr.zip"
    for data in (REPLAYS[:length], REPLAYS + more):
        path.write_bytes(data)
        assert isinstance(read_all(path), str)


@FEW
@given(data=st.binary(max_size=300), start=st.sampled_from([b"", b"PK\x03\x04"]))
def test_no_bytes_end_in_anything_but_our_errors(data, start, tmp_path):
    path = tmp_path / "x.rpb.zip"
    for whole in (start + data, start + data + REPLAYS[-22:]):
        path.write_bytes(whole)
        with contextlib.suppress(BundleError):
            open_any(path).close()


# --- manifests -----------------------------------------------------------------------


def manifest_of(made) -> bytes:
    forged = ForgedBundle({"README.txt": b"r", **made})
    forged.entries()
    return forged.manifest_bytes()


small = st.dictionaries(
    st.text("abc", min_size=1, max_size=5).map(lambda word: f"inputs/{word}"),
    st.binary(max_size=20),
    max_size=5,
)


@FEW
@given(made=small)
def test_a_manifest_says_what_its_files_are(made):
    manifest = decode_manifest(manifest_of(made))
    told = {one.path: (one.size_bytes, one.blake3) for one in manifest.members}
    for path, data in made.items():
        facts = member(path, data)
        assert told[path] == (facts["size_bytes"], facts["blake3"])


values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(
        [-1, 2**53, CHUNK, CHUNK + 1, "0" * 64, [], {}, "project", "..", ""]
    ),
)


@settings(FEW, max_examples=120)
@given(
    key=st.sampled_from(
        ["path", "size_bytes", "blake3", "role", "executable", "chunks"]
    ),
    value=values,
    which=st.integers(0, 2),
)
def test_another_value_in_a_manifest_is_refused_or_another_manifest(key, value, which):
    made = {"inputs/a": b"1", "project/b.py": b"2"}
    forged = ForgedBundle({"README.txt": b"r", **made})
    forged.entries()
    before = decode_manifest(forged.manifest_bytes())
    forged.members[which][key] = value
    changed = canonical({**forged.manifest, "members": forged.members})
    with contextlib.suppress(BundleError):
        after = decode_manifest(changed)
        default = {"executable": False}.get(key, before.members[which])
        assert (
            after != before
            or value == default
            or value == getattr(before.members[which], key)
        )


@FEW
@given(data=st.binary(max_size=200))
def test_no_bytes_as_a_manifest_end_in_anything_but_our_errors(data):
    with contextlib.suppress(BundleError):
        decode_manifest(data)


def test_attaching_adds_to_any_bundle_without_a_change_of_its_id(tmp_path):
    path = tmp_path / "x.rpb.zip"
    before = write_bundle(path, [Source("inputs/a", "input", b"1")]).id
    attach_replay(path, b'{"n": 1}', [Source("b", "output", io.BytesIO(b"2").read())])
    with open_bundle(path) as bundle:
        assert bundle.id == before
