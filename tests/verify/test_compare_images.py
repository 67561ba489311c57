"""PNG images are equal if, and only if, every sample is."""

import io
import struct
import zlib

import pytest

from reprobundle.verify.compare_images import compare_images
from tests.verify.builder import Run


def chunk(name, body):
    return (
        struct.pack(">I", len(body))
        + name
        + body
        + struct.pack(">I", zlib.crc32(name + body))
    )


def png(rows, *, depth=8, colour=6, width=2, level=9, text=b"", height=None):
    head = struct.pack(">IIBBBBB", width, height or len(rows), depth, colour, 0, 0, 0)
    extra = chunk(b"tEXt", text) if text else b""
    data = chunk(b"IDAT", zlib.compress(b"".join(rows), level))
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + extra + data + chunk(b"IEND", b"")
    )


PLAIN = [b"\0\1\2\3\4\5\6\7\x08", b"\0\1\2\3\4\5\6\7\x08"]


def compared(first, second):
    return compare_images(io.BytesIO(first), io.BytesIO(second))


@pytest.mark.parametrize(
    "rows",
    [
        [b"\1\1\2\3\4\4\4\4\4", b"\2" + bytes(8)],
        [b"\4\1\2\3\4\4\4\4\4", b"\4" + bytes(8)],
        [b"\0\1\2\3\4\5\6\7\x08", b"\3\1\1\2\2\2\2\2\2"],
    ],
)
def test_other_filters_compression_and_text_are_identical_pixels(rows):
    assert compared(png(PLAIN), png(rows, level=0, text=b"a\0b")).equal


def test_a_difference_in_alpha_only_names_its_place():
    result = compared(png(PLAIN), png([PLAIN[0], PLAIN[1][:-1] + b"\x09"]))
    assert not result.equal
    assert "row 1, column 1" in result.reason


def test_the_last_of_sixteen_bits_is_a_difference():
    rows = b"\0" + bytes(12), b"\0" + bytes(11) + b"\1"
    first, second = (png([row], depth=16, colour=2) for row in rows)
    assert not compared(first, second).equal


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (png(PLAIN)[:-5], "truncated"),
        (png(PLAIN, width=1 << 20, height=1 << 20), "32 MiB"),
        (png([PLAIN[0]], height=2), "not as long"),
        (png([b"\x09" + bytes(8)]), "unknown filter"),
        (png(PLAIN).replace(b"IDAT", b"IDAX"), "checksum"),
    ],
)
def test_a_hostile_file_is_never_equal_and_says_why(data, reason):
    result = compared(data, data)
    assert not result.equal
    assert reason in result.reason


def test_another_format_is_not_compared_by_pixel():
    assert not compared(png(PLAIN), b"\xff\xd8\xff\xe0" + bytes(20)).equal


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        pytest.param(PLAIN, "REPRODUCED, bit-identical", id="same pixels"),
        pytest.param(
            [PLAIN[0], PLAIN[1][:-1] + b"\t"], "NOT REPRODUCED", id="one sample"
        ),
    ],
)
def test_the_verdict_follows_the_pixels(bench, rows, verdict):
    bench.reference = Run(outputs={"a.png": png(PLAIN)})
    bench.repeat = Run(outputs={"a.png": png(PLAIN)})
    bench.pack().replay(Run(outputs={"a.png": png(rows, level=0)}))
    report = bench.verify()
    assert report.verdict == verdict, report.reasons
