"""Sealing: the same sources give the same bytes, and all or nothing is written."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
import textwrap
import threading
import zipfile
import zlib
from pathlib import Path

import pytest
from blake3 import blake3
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reprobundle.errors import (
    BundleError,
    DocumentError,
    EnvironmentUnusableError,
    LimitError,
    PackRefusedError,
    UnsafeNameError,
)
from reprobundle.format import archive, digests, frames, limits, store
from reprobundle.format.archive import ArchiveWriter, combine_crc32
from reprobundle.format.canonical import encode
from reprobundle.format.manifest import Manifest
from reprobundle.format.reader import check_digests, open_bundle
from reprobundle.format.source import LocalFile
from reprobundle.format.structure import prove_structure, read_directory
from reprobundle.format.writer import Source, write_bundle

from .conftest import CONTENTS, csv_text, make_sources, pseudo_random, role_of


def names_in(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as opened:
        return opened.namelist()


def left_behind(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_entries_lie_in_layout_order(sealed):
    assert names_in(sealed[0]) == [
        "README.txt",
        "project/empty.txt",
        "project/naïve/ünï.py",
        "project/train.py",
        "inputs/metrics.csv.zst",
        "inputs/noise.bin",
        "inputs/small.csv.zst",
        "external/1/noise.bin",
        "lock/environment.json",
        "policy.json",
        "runs/1/outputs/y.txt",
        "runs/1/record.json",
        "B3SUMS",
        "manifest.json",
    ]


def test_the_id_is_the_digest_of_the_manifest(sealed):
    path, written = sealed
    with zipfile.ZipFile(path) as opened:
        manifest = opened.read("manifest.json")
    assert written.id == blake3(manifest).hexdigest()
    assert manifest == encode(Manifest(members=written.members))
    assert written.size_bytes == path.stat().st_size


def test_the_headers_of_the_file_are_those_of_the_byte_tables(sealed):
    # Read by another program's parser: nothing here shares code with the writer.
    with zipfile.ZipFile(sealed[0]) as opened:
        assert opened.testzip() is None
        for info in opened.infolist():
            assert info.compress_type == zipfile.ZIP_STORED
            assert info.flag_bits == 0x800
            assert info.date_time == (1980, 1, 1, 0, 0, 0)
            assert info.external_attr >> 16 == 0o100644
            assert (info.create_system, info.create_version) == (3, 20)
            assert info.extra == b""
            assert info.comment == b""
        assert opened.comment == b""


def test_large_raw_content_starts_at_a_multiple_of_64(sealed):
    data = sealed[0].read_bytes()
    for path in ("inputs/noise.bin", "external/1/noise.bin"):
        start = data.index(CONTENTS[path])
        assert start % 64 == 0, path


@pytest.mark.parametrize("workers", [1, 2, 3, 5])
def test_the_number_of_workers_does_not_change_a_byte(sealed, tmp_path, workers):
    path = tmp_path / "again.rpb.zip"
    sources = list(reversed(make_sources()))
    assert write_bundle(path, sources, workers=workers) == sealed[1]
    assert path.read_bytes() == sealed[0].read_bytes()


def test_the_place_of_a_source_does_not_change_a_byte(sealed, tmp_path):
    sources = []
    for number, source in enumerate(make_sources()):
        file = tmp_path / f"file{number}"
        file.write_bytes(source.content)
        sources.append(Source(source.path, source.role, file, source.executable))
    path = tmp_path / "again.rpb.zip"
    assert write_bundle(path, sources) == sealed[1]
    assert path.read_bytes() == sealed[0].read_bytes()


def test_another_level_gives_other_bytes_and_the_same_id(sealed, tmp_path):
    path = tmp_path / "again.rpb.zip"
    written = write_bundle(path, make_sources(), level=9)
    assert path.read_bytes() != sealed[0].read_bytes()
    assert (written.id, written.members) == (sealed[1].id, sealed[1].members)


def test_another_decision_on_what_to_compress_gives_the_same_id(
    sealed, tmp_path, monkeypatch
):
    monkeypatch.setattr(frames, "WORTH_RATIO", 0.0)
    path = tmp_path / "again.rpb.zip"
    assert write_bundle(path, make_sources()).id == sealed[1].id
    assert not [name for name in names_in(path) if name.endswith(".zst")]


def test_a_content_of_exactly_one_chunk_has_no_chunk_digests(tmp_path):
    sizes = [limits.CHUNK_BYTES - 1, limits.CHUNK_BYTES, limits.CHUNK_BYTES + 1]
    for compressible in (True, False):
        make = csv_text if compressible else pseudo_random
        sources = [Source(f"inputs/{n}", "input", make(n)) for n in sizes]
        path = tmp_path / "x.rpb.zip"
        written = write_bundle(path, sources)
        counts = [len(m.chunks) for m in written.members if m.role == "input"]
        assert counts == [0, 0, 2]
        with open_bundle(path) as bundle:
            assert check_digests(bundle, deep=True) == []
            for size in sizes:
                assert bundle.read(f"inputs/{size}") == make(size)


def test_equal_content_is_stored_for_every_path(tmp_path):
    # An alias would leave a file missing after a plain unzip.
    content = csv_text(2_000_000)
    path = tmp_path / "x.rpb.zip"
    write_bundle(path, [Source(f"inputs/{n}", "input", content) for n in "ab"])
    assert names_in(path)[1:3] == ["inputs/a.zst", "inputs/b.zst"]


COLLISIONS = {
    "a file of that name": {"inputs/foo.csv.zst": b"their own"},
    "a file of that name but for case": {"inputs/FOO.CSV.ZST": b"their own"},
    "a folder of that name": {"inputs/foo.csv.zst/a": b"theirs"},
}


@pytest.mark.parametrize("case", COLLISIONS)
def test_content_is_kept_raw_where_its_compressed_name_is_taken(case, tmp_path):
    contents = {"inputs/foo.csv": csv_text(300_000), **COLLISIONS[case]}
    path = tmp_path / "x.rpb.zip"
    write_bundle(path, make_sources(contents))
    assert "inputs/foo.csv" in names_in(path)
    with open_bundle(path) as bundle:
        assert check_digests(bundle) == []
        assert bundle.read("inputs/foo.csv") == contents["inputs/foo.csv"]


def test_content_is_kept_raw_where_its_compressed_name_would_be_too_long(tmp_path):
    name = f"inputs/{'x' * 253}"
    path = tmp_path / "x.rpb.zip"
    write_bundle(path, [Source(name, "input", csv_text(300_000))])
    assert name in names_in(path)


RAW = {
    "lock/uv.lock": 3_000_000,
    "policy.json": 200_000,
    "runs/1/record.json": 200_000,
    "project/train.py": 900_000,
    "inputs/small.csv": 16 << 10,
}


@pytest.mark.parametrize("name", RAW)
def test_what_a_person_reads_first_is_never_compressed(name, tmp_path):
    path = tmp_path / "x.rpb.zip"
    write_bundle(path, [Source(name, role_of(name), csv_text(RAW[name]))])
    assert name in names_in(path)


BAD_SOURCES = {
    "an unsafe path": (
        [Source("project/../x", "project", b"")],
        UnsafeNameError,
        "R-5.2",
    ),
    "twins": (
        [Source("inputs/a", "input", b""), Source("inputs/A", "input", b"")],
        UnsafeNameError,
        "R-5.8",
    ),
    "a path not in NFC": (
        [Source("inputs/e\u0301", "input", b"")],
        UnsafeNameError,
        "R-5.5",
    ),
    "a README of its own": (
        [Source("README.txt", "readme", b"")],
        UnsafeNameError,
        "R-5.8",
    ),
    "a manifest of its own": (
        [Source("manifest.json", "policy", b"")],
        UnsafeNameError,
        "R-5.8",
    ),
    "a path without a place": (
        [Source("elsewhere/a", "project", b"")],
        DocumentError,
        "R-6.9",
    ),
    "a role without a place": (
        [Source("lock/a", "output", b"")],
        DocumentError,
        "R-6.9",
    ),
}


@pytest.mark.parametrize("case", BAD_SOURCES)
def test_refuses_and_writes_nothing(case, tmp_path):
    sources, error, rule = BAD_SOURCES[case]
    with pytest.raises(BundleError) as caught:
        write_bundle(tmp_path / "x.rpb.zip", sources)
    assert (type(caught.value), caught.value.rule) == (error, rule)
    assert left_behind(tmp_path) == []


def test_refuses_more_members_than_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "MEMBER_COUNT", 10)
    with pytest.raises(LimitError) as caught:
        write_bundle(tmp_path / "x.rpb.zip", make_sources())
    assert caught.value.rule == "R-6.8"


def test_refuses_a_manifest_that_no_reader_would_take(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "DOCUMENT_BYTES", 500)
    with pytest.raises(LimitError) as caught:
        write_bundle(tmp_path / "x.rpb.zip", make_sources())
    assert caught.value.rule == "R-6.1"
    assert left_behind(tmp_path) == []


def test_refuses_a_directory_that_no_reader_would_take(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "DIRECTORY_BYTES", 500)
    with pytest.raises(LimitError) as caught:
        write_bundle(tmp_path / "x.rpb.zip", make_sources())
    assert caught.value.rule == "R-4.4"
    assert left_behind(tmp_path) == []


def test_refuses_a_source_that_is_no_regular_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(PackRefusedError, match="no regular file"):
        write_bundle(
            tmp_path / "x.rpb.zip", [Source("inputs/p", "input", tmp_path / "pipe")]
        )


def test_says_which_source_is_missing(tmp_path):
    with pytest.raises(EnvironmentUnusableError, match=r"cannot read '.*gone'"):
        write_bundle(
            tmp_path / "x.rpb.zip", [Source("inputs/p", "input", tmp_path / "gone")]
        )
    assert left_behind(tmp_path) == []


def test_says_when_the_target_cannot_be_written(tmp_path):
    with pytest.raises(EnvironmentUnusableError, match="cannot write"):
        write_bundle(tmp_path / "no" / "x.rpb.zip", make_sources())


@pytest.mark.parametrize("size_bytes", [1000, 9_000_000])
@pytest.mark.parametrize("change", ["append", "overwrite", "truncate"])
def test_a_file_that_changes_while_it_is_packed_is_refused(
    tmp_path, monkeypatch, size_bytes, change
):
    file = tmp_path / "data.bin"
    file.write_bytes(bytes(size_bytes))
    changed = threading.Event()
    real = digests.digest_bytes

    def digest_and_change(data):
        # The first digest is made while the file is open and partly read.
        if len(data) > 900 and not changed.is_set():
            changed.set()
            if change == "truncate":
                os.truncate(file, size_bytes // 2)
            else:
                mode = "ab" if change == "append" else "r+b"
                with file.open(mode) as stream:
                    stream.write(b"x")
                os.utime(file, ns=(1, 1))
        return real(data)

    monkeypatch.setattr(store, "digest_bytes", digest_and_change)
    real_read = store._Content.read_at

    def read_and_change(self, offset, count):
        data = real_read(self, offset, count)
        if self.size_bytes == size_bytes and size_bytes < 5000:
            digest_and_change(data)
        return data

    monkeypatch.setattr(store._Content, "read_at", read_and_change)
    with pytest.raises(PackRefusedError, match="changed while it was being packed"):
        write_bundle(tmp_path / "x.rpb.zip", [Source("inputs/d", "input", file)])
    assert left_behind(tmp_path) == ["data.bin"]


def test_progress_adds_up_to_the_size_of_the_members(tmp_path):
    seen: list[int] = []
    written = write_bundle(tmp_path / "x.rpb.zip", make_sources(), progress=seen.append)
    sums = next(m for m in written.members if m.role == "checksums")
    total = sum(member.size_bytes for member in written.members) - sums.size_bytes
    assert sum(seen) == total
    assert len(seen) > 10


def test_a_killed_pack_leaves_the_old_bundle(tmp_path):
    target = tmp_path / "x.rpb.zip"
    target.write_bytes(b"the old bundle")
    script = textwrap.dedent(
        """
        import os, sys
        from pathlib import Path
        from reprobundle.format.writer import Source, write_bundle
        content = b"x" * 30_000_000
        def kill(count):
            if count > 1_000_000:
                os.kill(os.getpid(), 9)
        write_bundle(Path(sys.argv[1]), [Source("inputs/x", "input", content)],
                     progress=kill)
        """
    )
    done = subprocess.run([sys.executable, "-c", script, target], check=False)
    assert done.returncode == -9
    assert target.read_bytes() == b"the old bundle"


def test_the_bundle_is_on_the_disk_before_it_gets_its_name(tmp_path, monkeypatch):
    calls = []
    real_fsync, real_replace = os.fsync, Path.replace

    def note_fsync(descriptor):
        calls.append("fsync")
        real_fsync(descriptor)

    def note_replace(self, target):
        calls.append("rename")
        return real_replace(self, target)

    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr(Path, "replace", note_replace)
    write_bundle(tmp_path / "x.rpb.zip", make_sources({}))
    assert calls == ["fsync", "rename", "fsync"]


@given(first=st.binary(max_size=200), second=st.binary(max_size=5000))
def test_two_checksums_combine_into_that_of_the_whole(first, second):
    combined = combine_crc32(zlib.crc32(first), zlib.crc32(second), len(second))
    assert combined == zlib.crc32(first + second)


def test_sizes_beyond_32_bits_are_written_in_zip64_form(tmp_path, monkeypatch):
    # The limit of 32 bits is lowered, so that a small file needs every ZIP64 field.
    monkeypatch.setattr(archive, "FULL32", 5000)
    monkeypatch.setattr(archive, "FULL16", 4)
    path = tmp_path / "x.zip"
    contents = {"a": b"x" * 6000, "b": b"y", "c": b"z" * 7000, "d": b"", "e": b"1"}
    with path.open("w+b") as stream:
        writer = ArchiveWriter(stream.fileno())
        for name, data in contents.items():
            if name == "b":
                writer.begin(name, 9000, aligned=False)
                writer.write(data)
                writer.finish(zlib.crc32(data))
            else:
                writer.add(name, data, aligned=False)
        writer.close_directory()
        source = LocalFile(stream)
        directory = read_directory(source)
        entries = prove_structure(source, directory)
    assert [(e.name, e.size_bytes) for e in entries] == [
        (name, len(data)) for name, data in contents.items()
    ]
    data = path.read_bytes()
    # Once in the local header, once in the directory.
    assert data.count(struct.pack("<HHQQ", 1, 16, 6000, 6000)) == 2
    assert b"PK\x06\x06" in data
    # The room kept for a size that was not needed became padding.
    assert entries[1].padding_bytes == 20
    for entry, content in zip(entries, contents.values(), strict=True):
        assert data[entry.data_offset : entry.end] == content


path_names = st.text("abcdefghij", min_size=5, max_size=8)
contents_strategy = st.dictionaries(
    path_names.map("inputs/{}".format),
    st.one_of(
        st.binary(max_size=300),
        st.integers(0, 120_000).map(csv_text),
        st.integers(0, 50_000).map(pseudo_random),
    ),
    max_size=5,
)


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(contents=contents_strategy)
def test_what_is_packed_is_read_back(contents, tmp_path):
    path = tmp_path / "x.rpb.zip"
    written = write_bundle(path, make_sources(contents))
    with open_bundle(path) as bundle:
        assert bundle.id == written.id
        assert check_digests(bundle, deep=True) == []
        for name, content in contents.items():
            assert bundle.read(name) == content
    with zipfile.ZipFile(path) as opened:
        assert opened.testzip() is None


def test_nothing_of_this_machine_is_in_the_manifest(sealed):
    with open_bundle(sealed[0]) as bundle:
        text = bundle.read("manifest.json").decode()
    import socket

    assert socket.gethostname() not in text or len(socket.gethostname()) < 4
    assert re.search(r"20\d\d-\d\d-\d\d", text) is None
