"""Which frames an image file holds, decoded by Pillow with bounded work.

Pillow is an optional part of the installation (``reprobundle[images]``). Every limit is
checked against what the file states before anything is allocated for its pixels, and
what Pillow would read with fewer bits or channels than the file has is refused: two
images that differ in what was dropped would look equal.
"""

from __future__ import annotations

import contextlib
import io
import struct
import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import numpy as np  # noqa: TID253 - this module is imported only to compare images

from reprobundle.errors import DecoderMissingError, UnreadableOutputError
from reprobundle.format.digests import digest_bytes
from reprobundle.outputs import png
from reprobundle.outputs.array_blocks import Array, NamedArray

if TYPE_CHECKING:
    from PIL import Image

PIXEL = "pixel"
"""The dtype of samples in policies and reports, whatever their depth."""

LARGEST_FILE_BYTES = 64 << 20
MOST_PIXELS = 1 << 25
MOST_PIXELS_OF_ALL_FRAMES = 1 << 28
MOST_FRAMES = 4096
MOST_SCANS = 100
"""Of a JPEG; each goes over all pixels anew, and a scan of nothing has ten bytes."""

_START_OF_SCAN = b"\xff\xda"
_ORIENTATION = 0x0112
_BITS_PER_SAMPLE, _SAMPLES_PER_PIXEL = 258, 277
_BITS = {
    **dict.fromkeys(("L", "LA", "P", "PA", "RGB", "RGBA", "CMYK", "YCbCr", "LAB"), 8),
    "1": 1,
    "I;16": 16,
    "I;16B": 16,
    "I;16L": 16,
    "I": 32,
    "F": 32,
}
_BMP_HEADERS = (12, 40, 52, 56, 64, 108, 124)


class Frame(NamedTuple):
    """One decoded frame.

    Attributes:
        facts: What has to be equal exactly: format, colour mode, size, duration and
            whatever else changes how the samples look.
        samples: Rows, columns and, if there are several, channels.
        peak: Largest value of a sample; 0 if the mode has none.
    """

    facts: Mapping[str, str]
    samples: NamedArray
    peak: int


def image_format(head: bytes) -> str:
    """Return Pillow's name of the format that the first 32 bytes show, or nothing."""
    if head.startswith(png.SIGNATURE):
        return "PNG"
    if head.startswith(b"\xff\xd8\xff"):
        return "JPEG"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "GIF"
    if head.startswith((b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")):
        return "TIFF"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "WEBP"
    # Two letters alone are no evidence.
    is_bmp = head.startswith(b"BM") and head[6:10] == bytes(4)
    return "BMP" if is_bmp and head[14:18] in map(_u4, _BMP_HEADERS) else ""


def _u4(value: int) -> bytes:
    return value.to_bytes(4, "little")


def read_frames(stream: BinaryIO) -> Iterator[Frame]:
    """Yield the frames of an image file, in order.

    A frame's samples are valid until the next frame is asked for.

    Raises:
        DecoderMissingError: Pillow is not installed.
        UnreadableOutputError: Damaged, beyond a limit, or of a form that Pillow would
            not read whole.
    """
    data = stream.read(LARGEST_FILE_BYTES + 1)
    if len(data) > LARGEST_FILE_BYTES:
        raise UnreadableOutputError("the image file is larger than 64 MiB")
    file_format = image_format(data[:32])
    facts = {"format": file_format}
    if file_format == "PNG":
        chunks = png.read_chunks(data)
        facts |= png.colour_facts(chunks)
        if png.is_deep_colour(chunks):
            yield _deep_frame(chunks, facts)
            return
        _check_pixels(*struct.unpack(">II", chunks[0].body[:8]))
        png.check_complete(chunks)
    if file_format == "JPEG" and data.count(_START_OF_SCAN) > MOST_SCANS:
        raise UnreadableOutputError(f"the JPEG has more than {MOST_SCANS} scans")
    if file_format == "WEBP":
        _check_pixels(*_webp_canvas(data))
    image = _opened(data, file_format)
    pixels = 0
    for number in range(MOST_FRAMES + 1):
        frame = _frame(image, number, facts)
        if frame is None:
            return
        pixels += int(np.prod(frame.samples.shape[:2]))
        if number == MOST_FRAMES or pixels > MOST_PIXELS_OF_ALL_FRAMES:
            raise UnreadableOutputError("the image has too many frames to compare")
        yield frame


@contextlib.contextmanager
def _refusing() -> Iterator[None]:
    """Turn whatever Pillow raises on damaged content into one error."""
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            yield
    except UnreadableOutputError:
        raise
    except (
        Image.DecompressionBombError,
        Image.DecompressionBombWarning,
        ArithmeticError,
        AssertionError,
        AttributeError,
        EOFError,
        LookupError,
        MemoryError,
        OSError,
        RuntimeError,
        SyntaxError,
        TypeError,
        ValueError,
        struct.error,
    ) as error:
        text = " ".join(str(error).split())[:200] or type(error).__name__
        raise UnreadableOutputError(f"the image cannot be decoded: {text}") from error


def _opened(data: bytes, file_format: str) -> Image.Image:
    try:
        from PIL import Image
    except ImportError as error:
        raise DecoderMissingError(
            "Pillow is not installed, so the pixels were not compared",
            advice="pip install 'reprobundle[images]'",
        ) from error
    with _refusing():
        return Image.open(io.BytesIO(data), formats=[file_format])


def _frame(image: Image.Image, number: int, facts: Mapping[str, str]) -> Frame | None:
    """Return one frame, or None if there are no more."""
    with _refusing():
        try:
            image.seek(number)
        except EOFError:
            return None
        _check_pixels(*image.size)
        _check_whole(image)
        image.load()
        # Later frames of a GIF have the colours of all before: its own colour table
        # says nothing about how it looks.
        is_gif = facts["format"] == "GIF"
        told = {**facts, **_facts(image, has_palette=is_gif)}
        shown = image.convert("RGBA") if is_gif else _resolved(image)
        return _described(shown, told)


def _described(shown: Image.Image, facts: Mapping[str, str]) -> Frame:
    mode = shown.mode
    bits = _BITS.get(mode, 0)
    told = {**facts, "colour mode": mode, "size": _size(shown)}
    peak = 0 if bits > 16 else 2**bits - 1
    return Frame(told, _samples(shown), peak)


def _size(image: Image.Image) -> str:
    return f"{image.width} x {image.height}"


def _resolved(image: Image.Image) -> Image.Image:
    """Return the image with the colours in place of places in a palette."""
    if image.mode == "PA":
        return image.convert("RGBA")
    return image.convert() if image.mode == "P" else image


def _facts(image: Image.Image, *, has_palette: bool) -> dict[str, str]:
    """Return what besides samples, mode and size changes how a frame looks."""
    info = image.info
    facts = {"duration": str(float(info.get("duration") or 0))}
    facts["loops"] = str(info.get("loop", "none"))
    profile = info.get("icc_profile")
    if profile:
        facts["colour profile"] = digest_bytes(bytes(profile))
    if image.mode not in ("P", "PA") and not has_palette:
        facts["transparent colour"] = str(info.get("transparency", "none"))
    # Pillow turns a TIFF itself.
    if image.format != "TIFF":
        facts["orientation"] = str(image.getexif().get(_ORIENTATION, 1))
    return facts


def _check_pixels(width: int, height: int) -> None:
    if not 0 < width * height <= MOST_PIXELS:
        message = f"an image of {width} x {height} pixels is not read by pixel"
        raise UnreadableOutputError(message)


def _check_whole(image: Image.Image) -> None:
    """Refuse what Pillow would read with fewer bits or channels than there are."""
    bits = _BITS.get(image.mode)
    if bits is None:
        raise UnreadableOutputError(f"the colour mode {image.mode} is not read")
    tags = getattr(image, "tag_v2", None)
    if tags is None:
        return
    stated = tags.get(_BITS_PER_SAMPLE, (1,))
    if max(stated) > bits:
        message = f"{max(stated)} bits of a sample would be read as {bits}"
        raise UnreadableOutputError(message)
    if tags.get(_SAMPLES_PER_PIXEL, 1) > len(image.getbands()):
        raise UnreadableOutputError("the image has channels that are not read")


def _webp_canvas(data: bytes) -> tuple[int, int]:
    """Return width and height that a WebP file states (RFC 9649, section 2)."""
    kind = data[12:16]
    if kind == b"VP8X" and len(data) >= 30:
        width, height = (int.from_bytes(data[at : at + 3], "little") for at in (24, 27))
        return width + 1, height + 1
    if kind == b"VP8L" and len(data) >= 25:
        bits = int.from_bytes(data[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 " and len(data) >= 30:
        width, height = struct.unpack("<HH", data[26:30])
        return width & 0x3FFF, height & 0x3FFF
    raise UnreadableOutputError("the WebP file states no size")


# --- samples -------------------------------------------------------------------------


def _samples(*layers: Image.Image) -> NamedArray:
    """Return the samples of an image, or of one that lies in two halves of 8 bits."""
    first = layers[0]
    channels = len(first.getbands())
    shape = (first.height, first.width, *((channels,) if channels > 1 else ()))

    def blocks(elements: int) -> Iterator[Array]:
        rows = max(1, elements // (first.width * channels))
        for top in range(0, first.height, rows):
            box = (0, top, first.width, min(first.height, top + rows))
            yield _joined([np.asarray(layer.crop(box)) for layer in layers])

    return NamedArray("", PIXEL, shape, blocks)


def _joined(strips: list[Array]) -> Array:
    if len(strips) > 1:
        upper, lower = strips
        return np.asarray((upper.astype("u2") << 8) | lower).reshape(-1)
    strip = strips[0].reshape(-1)
    # A truth value is no number that can be subtracted.
    kind = "u1" if strip.dtype.kind == "b" else strip.dtype.newbyteorder("=")
    return strip.astype(kind, copy=False)


def _deep_frame(chunks: tuple[png.Chunk, ...], facts: Mapping[str, str]) -> Frame:
    width, height = struct.unpack(">II", chunks[0].body[:8])
    _check_pixels(width, height)
    parts = [_opened(half, "PNG") for half in png.halves(chunks)]
    with _refusing():
        for part in parts:
            part.load()
        key = next((one.body.hex() for one in chunks if one.name == b"tRNS"), "none")
        exif = next((one.body for one in chunks if one.name == b"eXIf"), b"")
        told = {
            **facts,
            "transparent colour": key,
            "orientation": _orientation(exif),
            "colour mode": f"{parts[0].mode};16",
            "size": _size(parts[0]),
        }
        return Frame(told, _samples(*parts), 65535)


def _orientation(exif: bytes) -> str:
    from PIL import Image

    read = Image.Exif()
    if exif:
        read.load(exif)
    return str(read.get(_ORIENTATION, 1))
