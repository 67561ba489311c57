"""Frames of image files: every sample, with all its bits, or a stated reason."""

import io
import sys
import zlib

import numpy as np
import pytest

from reprobundle.errors import DecoderMissingError, UnreadableOutputError
from reprobundle.outputs import images
from tests.outputs.pictures import chunk, png, saved

Image = pytest.importorskip("PIL.Image")

DRAWN = np.random.default_rng(3)
DEEP = DRAWN.integers(0, 1 << 16, (11, 13, 4)).astype("u2")
SHALLOW = DRAWN.integers(0, 256, (11, 13, 4)).astype("u1")
COLOURS = Image.fromarray(SHALLOW[:, :, :3].copy())


def frames(data):
    """Return facts and samples of every frame."""
    return [
        (frame.facts, whole(frame)) for frame in images.read_frames(io.BytesIO(data))
    ]


def whole(frame):
    blocks = [block.copy() for block in frame.samples.blocks(40)]
    return np.concatenate(blocks).reshape(frame.samples.shape)


@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize(("colour", "channels"), [(2, 3), (4, 2), (6, 4)])
def test_colour_of_sixteen_bits_keeps_all_of_them(colour, channels, interlaced):
    samples = DEEP[:, :, :channels].copy()
    data = png(samples, colour=colour, filters=(0, 1, 2, 3, 4), interlaced=interlaced)
    ((facts, got),) = frames(data)
    assert facts["colour mode"].endswith(";16")
    np.testing.assert_array_equal(got, samples)


@pytest.mark.parametrize("interlaced", [False, True])
def test_colour_of_eight_bits_is_read_as_it_stands(interlaced):
    data = png(SHALLOW, colour=6, filters=(4, 3, 2), interlaced=interlaced)
    ((facts, got),) = frames(data)
    assert facts["colour mode"] == "RGBA"
    np.testing.assert_array_equal(got, SHALLOW)


def test_grey_of_sixteen_bits_keeps_all_of_them():
    samples = DEEP[:, :, :1].copy()
    ((facts, got),) = frames(png(samples, colour=0, filters=(1, 4)))
    assert facts["colour mode"] == "I;16"
    np.testing.assert_array_equal(got, samples[:, :, 0])


@pytest.mark.parametrize(
    ("file_format", "options"),
    [
        ("BMP", {}),
        ("TIFF", {"compression": "tiff_lzw"}),
        ("WEBP", {"lossless": True}),
        ("PNG", {}),
    ],
)
def test_lossless_formats_give_what_was_written(file_format, options):
    ((facts, got),) = frames(saved(COLOURS, file_format, **options))
    assert (facts["format"], facts["colour mode"]) == (file_format, "RGB")
    assert facts["size"] == "13 x 11"
    np.testing.assert_array_equal(got, SHALLOW[:, :, :3])


def test_a_jpeg_is_judged_by_the_pixels_that_it_decodes_to():
    grey = Image.new("L", (16, 16), 77)
    ((_, got),) = frames(saved(grey, "JPEG", quality=100))
    np.testing.assert_array_equal(got, np.full((16, 16), 77))


def test_floats_and_bits_of_a_tiff_are_kept():
    values = np.array([[0.1, np.nan, -0.0]], "f4")
    ((_, got),) = frames(saved(Image.fromarray(values), "TIFF"))
    np.testing.assert_array_equal(got.view("u4"), values.view("u4"))
    bits = Image.new("1", (3, 1))
    bits.putpixel((1, 0), 1)
    ((_, got),) = frames(saved(bits, "TIFF"))
    np.testing.assert_array_equal(got, [[0, 1, 0]])


def test_a_palette_is_resolved_with_its_transparency():
    places = Image.new("P", (3, 1))
    places.putpalette([0, 0, 0, 9, 8, 7, 1, 2, 3])
    for column in range(3):
        places.putpixel((column, 0), column)
    ((facts, got),) = frames(saved(places, "PNG", transparency=2))
    assert facts["colour mode"] == "RGBA"
    np.testing.assert_array_equal(got, [[[0, 0, 0, 255], [9, 8, 7, 255], [1, 2, 3, 0]]])


@pytest.mark.parametrize("file_format", ["GIF", "PNG", "WEBP"])
def test_every_frame_of_an_animation_is_read_with_its_duration(file_format):
    shown = [Image.new("RGB", (4, 4), (value, 0, 0)) for value in (10, 120, 250)]
    options = {"lossless": True} if file_format == "WEBP" else {}
    data = saved(
        shown[0],
        file_format,
        save_all=True,
        append_images=shown[1:],
        duration=[10, 20, 30],
        **options,
    )
    got = frames(data)
    assert [facts["duration"] for facts, _ in got] == ["10.0", "20.0", "30.0"]
    assert [int(samples[0, 0, 0]) for _, samples in got] == [10, 120, 250]


def test_orientation_and_profile_are_facts_and_resolution_is_none():
    exif = Image.Exif()
    exif[0x0112] = 6
    plain, turned, profiled, dense = (
        frames(saved(COLOURS, "JPEG", **options))[0][0]
        for options in ({}, {"exif": exif}, {"icc_profile": b"x" * 9}, {"dpi": (9, 9)})
    )
    assert (plain["orientation"], turned["orientation"]) == ("1", "6")
    assert "colour profile" in profiled
    assert "colour profile" not in plain
    assert plain == dense


@pytest.mark.parametrize("name", [b"gAMA", b"sBIT", b"cICP"])
def test_a_chunk_that_says_how_colours_look_is_a_fact(name):
    body = b"\0\0\xb1\x8f" if name == b"gAMA" else b"\x08\x08\x08\x08"
    plain = frames(png(SHALLOW, colour=6))[0][0]
    told = frames(png(SHALLOW, colour=6, extra=[(name, body)]))[0][0]
    assert set(told) - set(plain) == {f"colour chunk {name.decode()}"}


def deep_tiff():
    """Return a TIFF file of one pixel of three samples with 16 bits."""
    tags = (
        (256, 3, 1, 1),
        (257, 3, 1, 1),
        (258, 3, 3, 8 + 2 + 9 * 12 + 4),
        (259, 3, 1, 1),
        (262, 3, 1, 2),
        (273, 4, 1, 8 + 2 + 9 * 12 + 4 + 6),
        (277, 3, 1, 3),
        (278, 3, 1, 1),
        (279, 4, 1, 6),
    )
    entries = b"".join(
        tag.to_bytes(2, "little")
        + kind.to_bytes(2, "little")
        + count.to_bytes(4, "little")
        + value.to_bytes(4, "little")
        for tag, kind, count, value in tags
    )
    head = b"II*\0" + (8).to_bytes(4, "little") + len(tags).to_bytes(2, "little")
    bits = (16).to_bytes(2, "little") * 3
    return head + entries + bytes(4) + bits + b"\1\2\3\4\5\6"


def animation(rows):
    """Return an animated PNG whose second frame states that it has so many rows."""
    first = png(SHALLOW[:2], colour=6)
    control = b"\0\0\0\1\0\0\0\x0d" + rows.to_bytes(4, "big") + bytes(14)
    data = png(SHALLOW[2:4], colour=6).split(b"IDAT")[1][:-16]
    start = chunk(b"acTL", b"\0\0\0\2\0\0\0\0")
    still = chunk(b"fcTL", bytes(7) + b"\x0d\0\0\0\2" + bytes(14))
    second = chunk(b"fcTL", control) + chunk(b"fdAT", b"\0\0\0\2" + data)
    head, tail = first[:33], first[33:]
    return head + start + still + tail[:-12] + second + tail[-12:]


def test_a_hand_made_animation_has_two_frames():
    assert len(frames(animation(rows=2))) == 2


ANIMATED = png(DEEP, colour=6, extra=[(b"acTL", bytes(8))])
PLAIN = png(SHALLOW, colour=6)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(PLAIN[:-5], "truncated", id="cut off"),
        pytest.param(PLAIN.replace(b"IDAT", b"IDAX"), "checksum", id="checksum"),
        pytest.param(PLAIN + b"more", "truncated", id="goes on"),
        pytest.param(
            png(SHALLOW, colour=6, size=(1 << 20, 1 << 20)), "pixels", id="bomb"
        ),
        pytest.param(
            png(DEEP, colour=6, size=(1 << 20, 1 << 20)), "1048576", id="deep bomb"
        ),
        pytest.param(
            png(DEEP, colour=6, size=(13, 12)), "not as long", id="deep, short"
        ),
        pytest.param(png(SHALLOW, colour=6, size=(13, 12)), "not as long", id="short"),
        pytest.param(png(SHALLOW, colour=6, size=(13, 10)), "not as long", id="long"),
        pytest.param(animation(rows=3), "not as long", id="frame cut off"),
        pytest.param(ANIMATED, "animations of 16-bit", id="deep animation"),
        pytest.param(deep_tiff(), "16 bits of a sample", id="deep tiff"),
        pytest.param(saved(COLOURS, "JPEG")[:300], "decoded", id="jpeg cut off"),
        pytest.param(saved(COLOURS, "GIF")[:60], "decoded", id="gif cut off"),
        pytest.param(b"RIFF\0\0\0\0WEBPVP8X" + bytes(8), "no size", id="webp"),
        pytest.param(
            b"RIFF\0\0\0\0WEBPVP8X" + bytes(8) + b"\xff" * 6, "16777216", id="webp bomb"
        ),
    ],
)
def test_what_cannot_be_read_whole_is_refused_with_the_reason(data, reason):
    with pytest.raises(UnreadableOutputError, match=reason):
        frames(data)


def test_limits_hold_for_frames_and_their_sum(monkeypatch):
    shown = [Image.new("L", (2, 2), value) for value in (1, 90, 200)]
    data = saved(shown[0], "GIF", save_all=True, append_images=shown[1:])
    assert len(frames(data)) == 3
    monkeypatch.setattr(images, "MOST_FRAMES", 2)
    with pytest.raises(UnreadableOutputError, match="too many frames"):
        frames(data)
    monkeypatch.setattr(images, "MOST_FRAMES", 3)
    monkeypatch.setattr(images, "MOST_PIXELS_OF_ALL_FRAMES", 11)
    with pytest.raises(UnreadableOutputError, match="too many frames"):
        frames(data)
    monkeypatch.setattr(images, "LARGEST_FILE_BYTES", 20)
    with pytest.raises(UnreadableOutputError, match="larger"):
        frames(data)


def test_text_chunks_that_unpack_to_much_are_refused():
    text = b"k\0\0" + zlib.compress(bytes(100 << 20))
    data = png(SHALLOW, colour=6, extra=[(b"zTXt", text)])
    with pytest.raises(UnreadableOutputError, match="too large"):
        frames(data)


@pytest.mark.parametrize("data", [PLAIN, png(DEEP, colour=6)])
def test_without_the_decoder_nothing_is_decoded(data, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(DecoderMissingError, match="Pillow is not installed") as caught:
        frames(data)
    assert "reprobundle[images]" in caught.value.advice


@pytest.mark.parametrize(
    ("head", "file_format"),
    [
        (PLAIN[:32], "PNG"),
        (saved(COLOURS, "BMP")[:32], "BMP"),
        (b"BM" + bytes(30), ""),
        (b"\xff\xd8\xff\xe0", "JPEG"),
        (b"GIF89a", "GIF"),
        (b"RIFF....WAVE", ""),
        (b"", ""),
        (chunk(b"IHDR", b""), ""),
    ],
)
def test_the_first_bytes_tell_the_format(head, file_format):
    assert images.image_format(head) == file_format
