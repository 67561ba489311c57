"""Compressed members: frames that lie about themselves are refused before decoding."""

from __future__ import annotations

import random
from typing import Any

import pytest
import zstandard

from reprobundle.errors import BundleError, StructureError
from reprobundle.format import frames
from reprobundle.format.reader import check_digests, open_bundle

from .conftest import csv_text
from .forge import CHUNK, ForgedBundle

PLAIN = csv_text(2 * CHUNK + 1000)
PATH = "inputs/x.csv"


def compress(data: bytes, **options) -> bytes:
    settings = {"level": 3, "write_checksum": True, "write_content_size": True}
    return zstandard.ZstdCompressor(**{**settings, **options}).compress(data)


def chunks(plain: bytes = PLAIN) -> list[bytes]:
    return [plain[start : start + CHUNK] for start in range(0, len(plain), CHUNK)]


def bundle_with(stored: bytes, plain: bytes = PLAIN) -> ForgedBundle:
    bundle = ForgedBundle({"README.txt": b"r\n", PATH: plain})
    bundle.stored[PATH] = (f"{PATH}.zst", stored)
    return bundle


@pytest.fixture
def read(tmp_path):
    def run(bundle: ForgedBundle) -> bytes:
        path = tmp_path / "forged.rpb.zip"
        path.write_bytes(bundle.build())
        with open_bundle(path) as opened:
            return opened.read(PATH)

    return run


def test_frames_that_are_right_are_read(read):
    assert read(bundle_with(b"".join(map(compress, chunks())))) == PLAIN


def streamed(data: bytes) -> bytes:
    packer = zstandard.ZstdCompressor(write_checksum=True).compressobj()
    return packer.compress(data) + packer.flush()


def with_dictionary(data: bytes) -> bytes:
    samples: list[Any] = [csv_text(4000 + n) for n in range(40)]
    return compress(data, dict_data=zstandard.train_dictionary(2000, samples))


def wide_window(data: bytes) -> bytes:
    # The byte behind the descriptor is made to ask for a window of 2 GiB.
    packed = bytearray(compress(data))
    if packed[4] & 0x20:  # a frame in a single segment has no such byte yet
        packed[4] &= ~0x20
        packed.insert(5, 0)
    packed[5] = 21 << 3
    return bytes(packed)


def raw_blocks(data: bytes, size: int) -> bytes:
    """A frame of raw blocks of `size` bytes each, with a checksum of zero."""
    out = bytearray(b"\x28\xb5\x2f\xfd\xa4" + len(data).to_bytes(4, "little"))
    starts = range(0, len(data), size)
    for start in starts:
        block = data[start : start + size]
        last = start == starts[-1]
        out += (len(block) << 3 | last).to_bytes(3, "little") + block
    return bytes(out + bytes(4))


BAD = {
    "one frame for the whole member": (lambda: compress(PLAIN), "R-4.20"),
    "frames of another size": (
        lambda: b"".join(
            compress(PLAIN[start : start + (1 << 20)])
            for start in range(0, len(PLAIN), 1 << 20)
        ),
        "R-4.20",
    ),
    "no stated size": (
        lambda: b"".join(compress(c, write_content_size=False) for c in chunks()),
        "R-4.20",
    ),
    "a streamed frame": (lambda: b"".join(map(streamed, chunks())), "R-4.20"),
    "no checksum": (
        lambda: b"".join(compress(c, write_checksum=False) for c in chunks()),
        "R-4.20",
    ),
    "a dictionary": (lambda: b"".join(map(with_dictionary, chunks())), "R-4.20"),
    "a window of 2 GiB": (lambda: b"".join(map(wide_window, chunks())), "R-4.20"),
    "a skippable frame": (
        lambda: b"\x50\x2a\x4d\x18\x04\0\0\0evil" + b"".join(map(compress, chunks())),
        "R-4.20",
    ),
    "blocks of half a KiB": (
        lambda: b"".join(raw_blocks(c, 1 << 9) for c in chunks()),
        "R-4.20",
    ),
    "no zstd at all": (lambda: b"x" * 1000, "R-4.20"),
    "a frame too few": (lambda: b"".join(map(compress, chunks()[:-1])), "R-4.20"),
    "a frame cut short": (
        lambda: b"".join(map(compress, chunks()))[:-3],
        "R-4.20",
    ),
    "a frame too many": (
        lambda: b"".join(map(compress, [*chunks(), b"hidden"])),
        "R-4.21",
    ),
    "bytes behind the frames": (
        lambda: b"".join(map(compress, chunks())) + b"\0",
        "R-4.21",
    ),
    "a wrong checksum": (
        lambda: b"".join(raw_blocks(c, 128 << 10) for c in chunks()),
        "R-4.22",
    ),
    "a damaged block": (
        lambda: flip(b"".join(map(compress, chunks())), 1000),
        "R-4.22",
    ),
}


def flip(data: bytes, place: int) -> bytes:
    changed = bytearray(data)
    changed[place] ^= 1
    return bytes(changed)


@pytest.mark.parametrize("case", BAD)
def test_refuses(case, read):
    make, rule = BAD[case]
    with pytest.raises(StructureError) as caught:
        read(bundle_with(make()))
    assert caught.value.rule == rule, caught.value
    assert str(caught.value).isprintable()


def test_a_frame_that_claims_a_gibibyte_is_refused_before_it_is_decoded(read):
    # Made from one frame of zeros by stating another size: no gibibyte is needed.
    frame = bytearray(compress(bytes(1 << 20)))
    assert frame[4] >> 6 == 2
    start = 5 if frame[4] & 0x20 else 6
    frame[start : start + 4] = (1 << 30).to_bytes(4, "little")
    forged = bundle_with(bytes(frame))
    with pytest.raises(StructureError, match="states 1,073,741,824 bytes"):
        read(forged)


def test_a_bomb_inside_a_bomb_is_decoded_one_layer_deep(read):
    inner = compress(compress(bytes(1 << 28)) * 3000)
    plain = zstandard.ZstdDecompressor().decompress(inner)
    forged = bundle_with(b"".join(map(compress, chunks(plain))), plain)
    assert read(forged) == plain


def test_a_small_or_readable_member_may_not_be_compressed(read):
    forged = bundle_with(compress(b"a" * 1000), b"a" * 1000)
    with pytest.raises(StructureError, match="readable without zstd") as caught:
        read(forged)
    assert caught.value.rule == "R-4.23"
    lock = ForgedBundle({"README.txt": b"r\n", "lock/a.txt": PLAIN[:100_000]})
    lock.stored["lock/a.txt"] = ("lock/a.txt.zst", compress(PLAIN[:100_000]))
    with pytest.raises(StructureError) as caught:
        read(lock)
    assert caught.value.rule == "R-4.23"


def test_a_stored_size_beyond_the_plain_one_is_refused(read):
    stored = compress(b"a" * 20_000) + bytes(100_000)
    with pytest.raises(StructureError) as caught:
        read(bundle_with(stored, b"a" * 20_000))
    assert caught.value.rule == "R-4.19"


def test_a_raw_entry_of_another_size_is_refused(read):
    forged = ForgedBundle()
    forged.stored[PATH] = (PATH, b"shorter")
    with pytest.raises(StructureError) as caught:
        read(forged)
    assert caught.value.rule == "R-4.19"


def test_an_entry_that_could_be_two_members_is_refused(read):
    plain = PLAIN[:100_000]
    forged = ForgedBundle({"README.txt": b"r\n", PATH: plain, f"{PATH}.zst": plain})
    forged.stored[PATH] = (f"{PATH}.zst", compress(plain))
    forged.stored[f"{PATH}.zst"] = (f"{PATH}.zst.zst", compress(plain))
    with pytest.raises(BundleError) as caught:
        read(forged)
    assert caught.value.rule == "R-4.18"


def test_the_first_of_several_frames_is_not_taken_for_all_of_them():
    # The library's own decoder stops behind the first frame without a word.
    two = compress(b"a" * 100) + compress(b"b" * 100)
    assert zstandard.ZstdDecompressor().decompress(two) == b"a" * 100
    with pytest.raises(StructureError):
        frames.decompress(two, 200, where="x")


def test_sampling_is_a_fixed_function_of_the_content():
    noise = random.Random(3).randbytes(6 << 20)
    half = noise[: 3 << 20] + bytes(3 << 20)

    assert [level_for(noise), level_for(half), level_for(PLAIN)] == [0, 1, 1]


def level_for(data):
    return frames.best_level(lambda o, n: data[o : o + n], len(data))


def test_level_1_is_taken_where_level_3_is_not_smaller():
    draw = random.Random(5)
    table = "".join(f"{n},{draw.random():.7f}\n" for n in range(150_000)).encode()
    one, three = (len(zstandard.compress(table, level)) for level in (1, 3))
    assert one < three
    assert level_for(table) == 1


def test_level_3_is_taken_where_it_is_smaller_by_more_than_a_thirty_second():
    draw = random.Random(5)
    words = [draw.randbytes(draw.randrange(3, 12)) for _ in range(3000)]
    text = b" ".join(draw.choices(words, k=250_000))
    one, three = (len(zstandard.compress(text, level)) for level in (1, 3))
    assert three < one * 31 / 32
    assert level_for(text) == 3


def test_damage_in_one_frame_is_located_and_the_others_are_read(tmp_path):
    packed = list(map(compress, chunks()))
    packed[1] = flip(packed[1], 2000)
    path = tmp_path / "forged.rpb.zip"
    path.write_bytes(bundle_with(b"".join(packed)).build())
    with open_bundle(path) as bundle:
        (damage,) = check_digests(bundle)
        assert (damage.byte_start, damage.byte_end) == (CHUNK, 2 * CHUNK)
        assert "cannot be decoded" in damage.got
        with bundle.open(PATH) as stream:
            assert stream.read(CHUNK) == PLAIN[:CHUNK]
            stream.seek(2 * CHUNK)
            assert stream.read() == PLAIN[2 * CHUNK :]
            stream.seek(CHUNK + 5)
            with pytest.raises(StructureError):
                stream.read(1)
