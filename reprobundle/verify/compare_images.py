"""Whether two files are PNG images with the same pixels (spec.md, "Known limits")."""

from __future__ import annotations

from typing import BinaryIO, NamedTuple

from reprobundle.errors import UnreadableOutputError
from reprobundle.outputs import png


class ImageComparison(NamedTuple):
    """Whether every pixel is known to be identical, and if not, why not."""

    equal: bool
    reason: str


def compare_images(reference: BinaryIO, replay: BinaryIO) -> ImageComparison:
    """Return whether both are PNG images and no pixel differs."""
    sides = [one.read(len(png.SIGNATURE)) for one in (reference, replay)]
    if any(side != png.SIGNATURE for side in sides):
        return ImageComparison(equal=False, reason="")
    try:
        first, second = (_decoded(one) for one in (reference, replay))
    except UnreadableOutputError as error:
        return ImageComparison(equal=False, reason=f"not by pixel: {error.message}")
    reason = png.difference(first, second)
    return ImageComparison(equal=not reason, reason=reason)


def _decoded(stream: BinaryIO) -> png.Png:
    data = png.SIGNATURE + stream.read(png.LARGEST_FILE_BYTES)
    return png.decode_png(data)
