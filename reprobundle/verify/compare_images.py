"""How the pixels of an image stand to the reference's, frame by frame.

What a file says of its frames (format, colour mode, size, number, duration, colour
chunks, orientation) is exact. Samples are exact too, unless a rule of the policy names
the dtype ``pixel``: then they are compared under it like the elements of an array.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import BinaryIO

import msgspec

from reprobundle.errors import UnreadableOutputError
from reprobundle.format.findings import ArrayComparison
from reprobundle.format.policy import Tolerance
from reprobundle.format.record import as_float
from reprobundle.outputs.images import PIXEL, Frame, image_format, read_frames
from reprobundle.verify.compare_arrays import EXACT, compare_floats

_HEAD_BYTES = 32

Opened = Callable[[], BinaryIO]


def are_images(reference: BinaryIO, replay: BinaryIO) -> bool:
    """Whether both begin like an image; nothing is decoded."""
    return all(image_format(one.read(_HEAD_BYTES)) for one in (reference, replay))


def compare_images(
    reference: BinaryIO, replay: BinaryIO, tolerance: Tolerance | None
) -> tuple[ArrayComparison, ...]:
    """Return one comparison for each frame.

    Args:
        reference: The reference's content.
        replay: The replay's content.
        tolerance: The rule for samples, in steps of their own depth; None is exact.

    Raises:
        DecoderMissingError: Pillow is not installed.
        UnreadableOutputError: One of them cannot be decoded, or is beyond a limit.
    """
    pairs = zip_longest(
        _told("reference", read_frames(reference)), _told("replay", read_frames(replay))
    )
    parts = []
    for number, (b, a) in enumerate(pairs):
        parts.append(_part(f"frame {number}", b, a, tolerance))
        if b is None or a is None:
            # How many more there are, nobody needs to decode.
            break
    return tuple(parts) if len(parts) > 1 else (_renamed(parts[0], ""),)


def _told(side: str, frames: Iterator[Frame]) -> Iterator[Frame]:
    """Yield the frames; an error says on which side it is."""
    try:
        yield from frames
    except UnreadableOutputError as error:
        raise UnreadableOutputError(f"{side}: {error.message}") from error


def _part(
    name: str, b: Frame | None, a: Frame | None, tolerance: Tolerance | None
) -> ArrayComparison:
    if b is None or a is None:
        some = b or a
        problem = "missing in the replay" if a is None else "not in the reference"
        return _problem(name, problem, some.samples.size if some else 1)
    for fact in {**b.facts, **a.facts}:
        expected, got = b.facts.get(fact, "none"), a.facts.get(fact, "none")
        if expected != got:
            problem = f"{fact} {got}, expected {expected}"
            return _problem(name, problem, max(b.samples.size, a.samples.size))
    part = _renamed(compare_floats(b.samples, a.samples, tolerance or EXACT), name)
    return msgspec.structs.replace(part, note=_noise(part, b.peak))


def _noise(part: ArrayComparison, peak: int) -> str:
    """Return the peak signal-to-noise ratio in words; it is shown and not judged."""
    if part.equal or not peak or part.relative_l2 is None or part.scale is None:
        return ""
    error = as_float(part.relative_l2) * as_float(part.scale)
    return f"PSNR {20 * math.log10(peak / error):.1f} dB" if error else ""


def _problem(name: str, problem: str, outside: int) -> ArrayComparison:
    return ArrayComparison(
        name=name,
        dtype=PIXEL,
        elements=0,
        equal=False,
        outside=max(1, outside),
        problem=problem,
    )


def _renamed(part: ArrayComparison, name: str) -> ArrayComparison:
    return msgspec.structs.replace(part, name=name)
