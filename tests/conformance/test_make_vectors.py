"""The committed vectors are the ones that their makers make, byte for byte."""

from __future__ import annotations

import subprocess
import sys

import pytest
import zstandard

from tests.conformance.case import Case
from tests.conformance.runner import ROOT, VECTORS
from tests.conformance.zstd_frames import CHUNK_BYTES, frame, frames, xxh64
from tools import make_vectors


@pytest.fixture(scope="module")
def files():
    return make_vectors.made(make_vectors.CASES)


def test_the_committed_bytes_are_the_ones_that_are_made(files):
    assert make_vectors.differing(files, VECTORS) == []


def test_they_are_made_the_same_by_another_process_with_other_hashes(files):
    code = (
        "import sys\n"
        "from hashlib import sha256\n"
        "from tools import make_vectors\n"
        "files = make_vectors.made(make_vectors.CASES)\n"
        "print(sha256(b''.join(files[name] for name in sorted(files))).hexdigest())\n"
    )
    from hashlib import sha256

    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={"PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    )
    joined = b"".join(files[name] for name in sorted(files))
    assert done.stdout.strip() == sha256(joined).hexdigest()


@pytest.mark.parametrize("change", ["other", "missing", "more"])
def test_a_change_of_the_vectors_is_seen(tmp_path, files, change, capsys):
    make_vectors.write(files, tmp_path)
    assert make_vectors.main(["--check"], tmp_path) == 0
    target = tmp_path / "names" / "empty_fail" / "bundle.rpb.zip"
    if change == "missing":
        target.unlink()
    elif change == "more":
        target = target.with_name("more.txt")
        target.write_bytes(b"")
    else:
        target.write_bytes(target.read_bytes() + b"\n")
    assert make_vectors.main(["--check"], tmp_path) == 1
    name = target.relative_to(tmp_path)
    assert capsys.readouterr().err == f"{name} would change\n"


def test_writing_removes_what_is_no_vector_any_more(tmp_path, files):
    make_vectors.write(files, tmp_path)
    (tmp_path / "names" / "old").mkdir()
    (tmp_path / "names" / "old" / "bundle.rpb.zip").write_bytes(b"old")
    assert make_vectors.main([], tmp_path) == 0
    assert make_vectors.differing(files, tmp_path) == []


def test_the_cases_have_names_of_their_own():
    names = [case.id for case in make_vectors.CASES]
    assert len(set(names)) == len(names)


def test_a_case_that_has_a_bundle_of_anothers_is_a_replay_file():
    def make():
        return b""

    own = Case("verdict", "a", "V1", "valid", "INTACT", "x", make)
    alone = Case("verdict", "a", "V1", "invalid", "INTACT", "x", make, (), "verdict/b")
    none = Case("verdict", "a", "V1", "valid", "INTACT", "x", None, (), "verdict/b")
    assert (own.file, own.all_arguments) == ("verdict/a/bundle.rpb.zip", own.arguments)
    assert alone.file == none.file == "verdict/b/bundle.rpb.zip"
    assert alone.all_arguments == ("--replay-file", "verdict/a_fail/replay.rpr.zip")
    assert none.all_arguments == ()


# --- frames by hand


@pytest.mark.parametrize("size", [1, 3, 4, 8, 31, 32, 33, 100, 200_000])
@pytest.mark.parametrize("pattern", [b"\0", bytes(range(251))])
@pytest.mark.parametrize("options", [{}, {"states_size": False}, {"checksum": False}])
def test_a_frame_decodes_to_its_content(size, pattern, options):
    content = (pattern * (size // len(pattern) + 1))[:size]
    stored = frame(content, **options)
    assert zstandard.ZstdDecompressor().decompressobj().decompress(stored) == content


def test_large_content_has_a_frame_for_each_chunk():
    content = bytes(CHUNK_BYTES + 5)
    stored = frames(content)
    first = zstandard.ZstdDecompressor().decompress(stored)
    assert (len(first), stored.count(b"\x28\xb5\x2f\xfd")) == (CHUNK_BYTES, 2)


@pytest.mark.parametrize(
    ("data", "digest"),
    [
        (b"", 0xEF46DB3751D8E999),
        (b"a", 0xD24EC4F1A98C6E5B),
        (b"abc", 0x44BC2CF5AD770999),
    ],
)
def test_the_checksum_has_the_published_values(data, digest):
    assert xxh64(data) == digest


def test_a_wrong_checksum_would_be_seen():
    stored = bytearray(frame(b"hello"))
    stored[-1] ^= 1
    with pytest.raises(zstandard.ZstdError):
        zstandard.ZstdDecompressor().decompress(bytes(stored))
