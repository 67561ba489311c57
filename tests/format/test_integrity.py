"""Whatever is not what was sealed is found, and the place is named."""

from __future__ import annotations

import subprocess
import sys
import zlib

import pytest

from reprobundle.format import integrity
from reprobundle.format.attach import attach_replay
from reprobundle.format.reader import Damage, check_digests, open_bundle

from .conftest import CONTENTS
from .forge import CHUNK, FILES, ForgedBundle, build_zip

SEALED = [*CONTENTS, "README.txt", "B3SUMS"]


def check(path, **options):
    with open_bundle(path) as bundle:
        return check_digests(bundle, **options)


def flip(path, member, share):
    with open_bundle(path) as bundle:
        entry = bundle.content(member).entry
        place = entry.data_offset + int((entry.size_bytes - 1) * share)
    data = bytearray(path.read_bytes())
    data[place] ^= 0x40
    path.write_bytes(data)


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("workers", [None, 1, 2, 4])
def test_an_intact_bundle_has_no_damage(sealed, deep, workers):
    assert check(sealed[0], deep=deep, workers=workers) == []


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("member", [m for m in SEALED if CONTENTS.get(m, b"x")])
def test_a_flipped_byte_in_any_member_is_found(bundle_path, member, share):
    flip(bundle_path, member, share)
    damages = check(bundle_path)
    assert {damage.path for damage in damages} == {member}
    assert all(0 <= d.byte_start < d.byte_end for d in damages)


def test_the_damaged_chunk_of_a_raw_member_is_named(bundle_path):
    flip(bundle_path, "inputs/noise.bin", 0.99)
    (damage,) = check(bundle_path)
    with open_bundle(bundle_path) as bundle:
        member = bundle.members["inputs/noise.bin"]
    assert (damage.byte_start, damage.byte_end) == (CHUNK, 4_500_000)
    assert damage.expected == member.chunks[1]
    assert len(damage.got) == 64


def test_several_damages_are_all_named(bundle_path):
    for member in ("inputs/noise.bin", "policy.json", "inputs/metrics.csv"):
        flip(bundle_path, member, 0.0)
    assert [d.path for d in check(bundle_path)] != []
    assert {d.path for d in check(bundle_path)} == {
        "inputs/noise.bin",
        "policy.json",
        "inputs/metrics.csv",
    }


def test_damage_in_a_large_member_is_found_by_the_split_check(bundle_path, monkeypatch):
    monkeypatch.setattr(integrity, "SPLIT_BYTES", 1 << 20)
    assert check(bundle_path, deep=True, workers=3) == []
    flip(bundle_path, "inputs/noise.bin", 0.0)
    flip(bundle_path, "inputs/metrics.csv", 0.9)
    found = {(d.path, d.byte_start // CHUNK) for d in check(bundle_path, workers=3)}
    assert found == {("inputs/noise.bin", 0), ("inputs/metrics.csv", 2)} or found == {
        ("inputs/noise.bin", 0),
        ("inputs/metrics.csv", 1),
    }


def write_forged(tmp_path, forged):
    path = tmp_path / "forged.rpb.zip"
    path.write_bytes(forged.build())
    return path


def large_forgery():
    return ForgedBundle({"README.txt": b"r", "inputs/x.bin": bytes(CHUNK + 9)})


def test_a_whole_digest_that_fits_none_of_its_chunks_is_found(tmp_path):
    forged = large_forgery().change("inputs/x.bin", blake3="0" * 64)
    (damage,) = check(write_forged(tmp_path, forged))
    assert (damage.byte_start, damage.byte_end) == (0, CHUNK + 9)
    assert damage.expected == "0" * 64


def test_a_chunk_digest_that_fits_no_content_is_found_by_the_deep_check_alone(
    tmp_path,
):
    forged = large_forgery()
    digests = forged.members[1]["chunks"]
    forged.change("inputs/x.bin", chunks=[digests[0], "0" * 64])
    path = write_forged(tmp_path, forged)
    assert check(path) == []
    (damage,) = check(path, deep=True)
    assert damage == Damage("inputs/x.bin", CHUNK, CHUNK + 9, "0" * 64, digests[1])


def test_a_zip_checksum_that_is_wrong_in_both_headers_is_found_by_the_deep_check(
    tmp_path,
):
    entries = ForgedBundle().entries()
    entries[2].both(crc=7)
    path = tmp_path / "forged.rpb.zip"
    path.write_bytes(build_zip(entries))
    assert check(path) == []
    (damage,) = check(path, deep=True)
    right = zlib.crc32(FILES["inputs/x.csv"])
    assert (damage.path, damage.expected) == ("inputs/x.csv", "crc32 00000007")
    assert damage.got == f"crc32 {right:08x}"


def test_a_replay_record_that_is_not_what_it_is_named_by_is_found(bundle_path):
    record = b'{"a": "xyzzy"}'
    replay_id = attach_replay(bundle_path, record, [])
    assert check(bundle_path) == []
    data = bundle_path.read_bytes().replace(b"xyzzy", b"XYZZY")
    bundle_path.write_bytes(data)
    (damage,) = check(bundle_path)
    assert damage.path == f"replays/{replay_id}/record.json"
    assert damage.expected == replay_id


def test_progress_adds_up_to_the_size_of_the_members(sealed):
    seen: list[int] = []
    check(sealed[0], progress=seen.append)
    assert sum(seen) == sum(member.size_bytes for member in sealed[1].members)


def test_a_small_bundle_is_checked_without_threads_or_a_decoder(tmp_path):
    # Both would cost more start-up time than the check itself.
    path = write_forged(tmp_path, ForgedBundle())
    script = (
        "import sys; from pathlib import Path\n"
        "from reprobundle.format.reader import check_digests, open_bundle\n"
        "with open_bundle(Path(sys.argv[1])) as bundle:\n"
        "    assert check_digests(bundle) == []\n"
        "heavy = {'concurrent.futures', 'zstandard', 'numpy', 'torch', 'rich',\n"
        "         'jsonschema', 'asyncio', 'importlib.metadata'}\n"
        "print(sorted(heavy & sys.modules.keys()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, path], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
