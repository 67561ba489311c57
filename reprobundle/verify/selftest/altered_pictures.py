"""Other content for an image: the same format, mode and size, and one other pixel."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from reprobundle.format.policy import Policy
from reprobundle.format.record import Output
from reprobundle.verify.rules import rule_for
from reprobundle.verify.selftest.mutation import NotPossibleError
from reprobundle.verify.selftest.subject import Draft, Subject, reference_member

if TYPE_CHECKING:
    from PIL import Image


def with_other_pixel(subject: Subject, draft: Draft) -> Draft:
    """Return a replay whose first image has another pixel in its corner.

    Raises:
        NotPossibleError: There is no compared image, or no decoder here.
    """
    for output in subject.reference.outputs:
        if _may_be_image(output, subject.sealed.policy):
            data = subject.read(reference_member(output.member))
            altered = _altered(data)
            if altered:
                return draft.with_output(subject.folder, output, altered)
    raise NotPossibleError("no output is an image")


def _may_be_image(output: Output, policy: Policy) -> bool:
    rule = rule_for(policy, output.name)
    is_compared = rule is None or rule.compare
    return output.kind == "bytes" and output.stored == "here" and is_compared


def _altered(data: bytes) -> bytes:
    """Return the image with another pixel, or nothing if it is none."""
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        message = "Pillow is not installed (reprobundle[images])"
        raise NotPossibleError(message) from error
    try:
        with Image.open(io.BytesIO(data)) as image:
            file_format = image.format
            changed = image.convert() if image.mode == "P" else image.copy()
    except UnidentifiedImageError:
        return b""
    _change_corner(changed)
    stream = io.BytesIO()
    changed.save(stream, file_format)
    return stream.getvalue()


def _change_corner(image: Image.Image) -> None:
    pixel = image.getpixel((0, 0))
    if isinstance(pixel, tuple):
        image.putpixel((0, 0), tuple(255 - int(value) for value in pixel))
    elif pixel is not None:
        image.putpixel((0, 0), 0 if pixel else 255)
