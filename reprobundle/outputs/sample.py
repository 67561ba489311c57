"""What is kept of arrays too large to keep: values at some places, digests of all.

A sample is a safetensors file. For array number *n* (from 0, in the order of the
record's summaries) it holds ``<n>.values``, the elements at the places that
`reprobundle.outputs.places` gives, and ``<n>.blocks``, the BLAKE3 digest of every
4 MiB of the array's canonical bytes: its elements in C order, little-endian, without
any header (spec.md, "Samples").
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import numpy as np  # noqa: TID253 - this module is imported only to read arrays
from blake3 import blake3

from reprobundle.errors import UnreadableOutputError
from reprobundle.format.record import ArraySummary
from reprobundle.outputs.array_blocks import Array, NamedArray
from reprobundle.outputs.arrays import read_arrays
from reprobundle.outputs.places import counts, places
from reprobundle.outputs.safetensors_file import CODES
from reprobundle.outputs.text import printable

BLOCK_BYTES: Final = 4 << 20
DIGEST_BYTES: Final = 32

_STEP_ELEMENTS = 1 << 18
_LARGEST_SIZE = 1 << 47
_ALIGNMENT = 8


class ArraySample(NamedTuple):
    """What a sample holds of one array.

    Attributes:
        places: The sampled places, ascending; int64, shape (count,).
        values: The bytes of the elements there; uint8, shape (count, item size).
        blocks: Digest of each block of canonical bytes; uint8, shape (blocks, 32).
    """

    places: Array
    values: Array
    blocks: Array


class Shape(NamedTuple):
    """The parts of an array's description that decide its places."""

    name: str
    dtype: str
    shape: tuple[int, ...]


def take_samples(
    arrays: Sequence[NamedArray], *, key: str, output: str
) -> Iterator[ArraySample]:
    """Yield the sample of each array of an output; its elements are read once.

    Args:
        arrays: All arrays of the output.
        key: Digest of the frozen policy.
        output: Name of the output.

    Raises:
        UnreadableOutputError: The elements cannot be read to their end.
    """
    shapes = [Shape(printable(one.name), one.dtype, one.shape) for one in arrays]
    for array, where in zip(arrays, _places(shapes, key, output), strict=True):
        yield _take(array, where)


def _places(shapes: Sequence[Shape], key: str, output: str) -> Iterator[Array]:
    sizes = [_size(one) for one in shapes]
    sampled = [
        0 if one.dtype.startswith(("U", "S", "V")) else size
        for one, size in zip(shapes, sizes, strict=True)
    ]
    for one, size, count in zip(shapes, sizes, counts(sampled), strict=True):
        yield places(key, output, one.name, one.shape, size=size, count=count)


def _size(one: Shape) -> int:
    size = math.prod(one.shape)
    if min(one.shape, default=0) < 0 or size >= _LARGEST_SIZE:
        message = f"{one.name!r} has the shape {list(one.shape)}, which nobody stores"
        raise UnreadableOutputError(message)
    return size


def _take(array: NamedArray, where: Array) -> ArraySample:
    digests = BlockDigests()
    parts: list[Array] = []
    seen = 0
    for block in array.blocks(_STEP_ELEMENTS):
        rows = canonical(block)
        digests.update(rows)
        first, last = np.searchsorted(where, (seen, seen + block.size))
        parts.append(rows[where[first:last] - seen])
        seen += block.size
    values = np.concatenate(parts) if parts else np.empty((0, 1), "u1")
    return ArraySample(where, values, digests.finish())


def canonical(block: Array) -> Array:
    """Return the canonical bytes of each element; uint8, shape (elements, size)."""
    width = block.dtype.itemsize
    unit = width // 2 if block.dtype.kind == "c" else width
    raw = np.ascontiguousarray(block).view(f"u{unit}" if unit in (2, 4, 8) else "u1")
    little = raw.astype(raw.dtype.newbyteorder("<"), copy=False)
    return little.view("u1").reshape(block.size, width)


class BlockDigests:
    """The digest of every 4 MiB of a stream of bytes."""

    def __init__(self) -> None:
        self._done: list[bytes] = []
        self._hasher = blake3()
        self._filled = 0

    def update(self, data: Array) -> None:
        """Add bytes, in any shape."""
        left = np.ascontiguousarray(data).reshape(-1).data if data.size else b""
        while left:
            part = left[: BLOCK_BYTES - self._filled]
            self._hasher.update(part)
            self._filled += len(part)
            left = left[len(part) :]
            if self._filled == BLOCK_BYTES:
                self._close()

    def _close(self) -> None:
        self._done.append(self._hasher.digest())
        self._hasher, self._filled = blake3(), 0

    def finish(self) -> Array:
        """Return the digests; uint8, shape (blocks, 32)."""
        if self._filled:
            self._close()
        return np.frombuffer(b"".join(self._done), "u1").reshape(-1, DIGEST_BYTES)


def write_sample(
    source: Path, file_format: str, target: Path, *, key: str, output: str
) -> None:
    """Write the sample of the arrays in `source` to a new file.

    Memory stays within some tens of megabytes whatever the arrays' sizes are.

    Args:
        source: The output's file; for a checkpoint, its exported tensors.
        file_format: ``npy``, ``npz`` or ``safetensors``.
        target: In a folder for temporary files.
        key: Digest of the frozen policy.
        output: Name of the output.

    Raises:
        UnreadableOutputError: The elements cannot be read to their end.
    """
    with source.open("rb") as stream:
        arrays = read_arrays(stream, file_format)
        samples = list(take_samples(arrays, key=key, output=output))
    tensors = chain.from_iterable(
        _tensors(number, array.dtype, sample)
        for number, (array, sample) in enumerate(zip(arrays, samples, strict=True))
    )
    target.write_bytes(_safetensors(list(tensors)))


def _tensors(
    number: int, dtype: str, sample: ArraySample
) -> Iterator[tuple[str, str, tuple[int, ...], Array]]:
    """Yield name, code, shape and bytes of what the file holds of one array."""
    values = sample.values
    code = CODES.get(dtype, "U8")
    shape = values.shape if code == "U8" and dtype != "uint8" else values.shape[:1]
    yield f"{number}.values", code, shape, values
    yield f"{number}.blocks", "U8", sample.blocks.shape, sample.blocks


def _safetensors(tensors: Iterable[tuple[str, str, tuple[int, ...], Array]]) -> bytes:
    header: dict[str, object] = {}
    data = []
    end = 0
    for name, code, shape, values in tensors:
        start, end = end, end + values.nbytes
        header[name] = {"dtype": code, "shape": shape, "data_offsets": (start, end)}
        data.append(values.tobytes())
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    return b"".join((len(text).to_bytes(8, "little"), text, *data))


def read_sample(
    stream: BinaryIO, arrays: Sequence[ArraySummary], *, key: str, output: str
) -> tuple[ArraySample, ...]:
    """Return what a sample holds of each array that a record describes.

    Args:
        stream: The sample.
        arrays: The arrays as the record summarises them.
        key: Digest of the frozen policy.
        output: Name of the output.

    Raises:
        UnreadableOutputError: It is damaged, or not the sample of such arrays.
    """
    held = {array.name: array for array in read_arrays(stream, "safetensors")}
    if len(held) != 2 * len(arrays):
        message = f"the sample holds {len(held)} tensors for {len(arrays)} arrays"
        raise UnreadableOutputError(message)
    shapes = [Shape(one.name, one.dtype, one.shape) for one in arrays]
    return tuple(
        _read_one(held, number, shape, where)
        for number, (shape, where) in enumerate(
            zip(shapes, _places(shapes, key, output), strict=True)
        )
    )


def _read_one(
    held: dict[str, NamedArray], number: int, array: Shape, where: Array
) -> ArraySample:
    values = _raw(held, f"{number}.values")
    blocks = _raw(held, f"{number}.blocks")
    width = values.size // where.size if where.size else 1
    if values.size != where.size * width or (where.size and not width):
        message = f"the sample of {array.name!r} lacks values at some places"
        raise UnreadableOutputError(message)
    expected = -(-math.prod(array.shape) * width // BLOCK_BYTES)
    rows = blocks.size // DIGEST_BYTES
    if blocks.size % DIGEST_BYTES or (where.size and rows != expected):
        message = f"the sample of {array.name!r} has {rows} digests of blocks"
        raise UnreadableOutputError(message)
    return ArraySample(
        where, values.reshape(where.size, width), blocks.reshape(-1, DIGEST_BYTES)
    )


def _raw(held: dict[str, NamedArray], name: str) -> Array:
    if name not in held:
        raise UnreadableOutputError(f"the sample has no tensor {name!r}")
    parts = [block.view("u1").copy() for block in held[name].blocks(_STEP_ELEMENTS)]
    return np.concatenate(parts) if parts else np.empty(0, "u1")
