"""Which arrays an npy or npz file holds.

Read without numpy's own loader: nothing is unpickled and nothing is mapped, and a
header is believed only as far as the size of the file agrees with it.
"""

from __future__ import annotations

import ast
import math
import zipfile
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np  # noqa: TID253 - this module is imported only to read arrays

from reprobundle.errors import UnreadableOutputError
from reprobundle.outputs.array_blocks import (
    Array,
    NamedArray,
    check_size,
    raw_blocks,
    size_of,
)
from reprobundle.outputs.blocks import read_exactly
from reprobundle.outputs.transposed import c_ordered_blocks

LARGEST_HEADER = 64 << 10
"""As a header of version 1; Python's parser takes 500 times as much memory."""

MOST_AXES = 64
MOST_FIELDS = 1_000
MOST_ARRAYS = 100_000
LARGEST_TOTAL_BYTES = 64 << 30
LARGEST_BYTES_OF_FIELDS = 16 << 30
"""What is read at most of a structured array: all of it, once for each field."""

LARGEST_COPY_BYTES = 4 << 30
"""Room on the disk for temporary files that one array in Fortran order may take."""


class _NpyHeader(NamedTuple):
    dtype: np.dtype[Any]
    fortran_order: bool
    shape: tuple[int, ...]

    @property
    def data_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def _npy_header(stream: BinaryIO) -> _NpyHeader:
    """Read one npy header and leave `stream` at the first element.

    Source: numpy's format description, versions 1.0, 2.0 and 3.0.
    """
    magic = read_exactly(stream, 8)
    if magic[:6] != b"\x93NUMPY" or magic[6] not in (1, 2, 3):
        raise UnreadableOutputError("not an npy file of version 1, 2 or 3")
    width = 2 if magic[6] == 1 else 4
    length = int.from_bytes(read_exactly(stream, width), "little")
    if length > LARGEST_HEADER:
        message = f"the npy header claims {length} bytes, the limit is 64 KiB"
        raise UnreadableOutputError(message)
    encoding = "utf-8" if magic[6] == 3 else "latin1"
    text = read_exactly(stream, length).decode(encoding)
    return _checked_header(ast.literal_eval(text.strip()))


def _checked_header(header: object) -> _NpyHeader:
    keys = {"descr", "fortran_order", "shape"}
    if not isinstance(header, dict) or set(header) != keys:
        raise UnreadableOutputError("the npy header lacks or adds a key")
    shape, order = header["shape"], header["fortran_order"]
    if not isinstance(shape, tuple) or not isinstance(order, bool):
        raise UnreadableOutputError("the npy header has a value of the wrong type")
    if not all(type(extent) is int and extent >= 0 for extent in shape):
        raise UnreadableOutputError(f"the npy header states the shape {shape}")
    if len(shape) > MOST_AXES:
        message = f"the array has {len(shape)} axes, the limit is {MOST_AXES}"
        raise UnreadableOutputError(message)
    dtype = np.lib.format.descr_to_dtype(header["descr"])
    if dtype.hasobject:
        message = "the array holds Python objects, which are never unpickled"
        raise UnreadableOutputError(message)
    if dtype.itemsize == 0:
        raise UnreadableOutputError("the array has elements of no size")
    return _NpyHeader(dtype, order, shape)


def read_npy(stream: BinaryIO) -> Iterator[NamedArray]:
    """Yield the array of an npy file, or one for each field of a structured one."""
    size = size_of(stream)
    stream.seek(0)
    header = _npy_header(stream)
    start = stream.tell()
    check_size(header.data_bytes, size - start)

    def opened() -> BinaryIO:
        stream.seek(start)
        return stream

    yield from _fields("", header, opened)


def _fields(
    name: str, header: _NpyHeader, opened: Callable[[], BinaryIO]
) -> Iterator[NamedArray]:
    """Yield the array, or one array for each field of a structured dtype."""
    leaves = tuple(islice(_leaves(header.dtype), MOST_FIELDS + 1))
    if len(leaves) > MOST_FIELDS:
        raise UnreadableOutputError(f"the array has more than {MOST_FIELDS} fields")
    if len(leaves) * header.data_bytes > LARGEST_BYTES_OF_FIELDS:
        # Each field is read by itself, past all others.
        raise UnreadableOutputError("the array has too many fields for its size")
    for path, dtype in leaves:
        label = "".join(f"[{field}]" for field in path)
        yield NamedArray(
            name + label,
            _dtype_name(dtype.base),
            header.shape + dtype.shape,
            _npy_blocks(header, path, opened),
        )


def _leaves(
    dtype: np.dtype[Any], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], np.dtype[Any]]]:
    if dtype.names is None or dtype.fields is None:
        yield path, dtype
        return
    for field in dtype.names:
        yield from _leaves(dtype.fields[field][0], (*path, field))


def _dtype_name(dtype: np.dtype[Any]) -> str:
    if dtype.kind in "USV":
        return str(dtype.str).lstrip("<>|=")
    return str(dtype.newbyteorder("=").name)


def _npy_blocks(
    header: _NpyHeader, path: tuple[str, ...], opened: Callable[[], BinaryIO]
) -> Callable[[int], Iterator[Array]]:
    def blocks(elements: int) -> Iterator[Array]:
        source = opened()
        if header.fortran_order and len(header.shape) > 1:
            if header.data_bytes > LARGEST_COPY_BYTES:
                message = "an array in Fortran order is larger than 4 GiB"
                raise UnreadableOutputError(message)
            whole = c_ordered_blocks(source, header.dtype, header.shape, elements)
        else:
            count = math.prod(header.shape)
            whole = raw_blocks(source, header.dtype, count, elements)
        for block in whole:
            field = block
            for key in path:
                field = field[key]
            yield _native(field).reshape(-1)

    return blocks


def _native(block: Array) -> Array:
    return block.astype(block.dtype.newbyteorder("="), copy=False)


def read_npz(stream: BinaryIO) -> Iterator[NamedArray]:
    """Yield the arrays of an npz file, in the order of its entries."""
    stream.seek(0)
    archive = zipfile.ZipFile(stream)
    entries = archive.infolist()
    _check_entries(entries)
    for entry in entries:
        with archive.open(entry) as member:
            header = _npy_header(cast("BinaryIO", member))
            start = member.tell()
        check_size(header.data_bytes, entry.file_size - start)
        name = entry.filename.removesuffix(".npy")
        yield from _fields(name, header, _entry_opener(archive, entry, start))


def _check_entries(entries: list[zipfile.ZipInfo]) -> None:
    names = [entry.filename for entry in entries]
    if len(set(names)) != len(names):
        raise UnreadableOutputError("the npz file holds two arrays of one name")
    if len(names) > MOST_ARRAYS:
        message = f"the npz file holds {len(names)} arrays, the limit is {MOST_ARRAYS}"
        raise UnreadableOutputError(message)
    other = next((name for name in names if not name.endswith(".npy")), None)
    if other is not None:
        raise UnreadableOutputError(f"the npz file holds {other!r}, which is no array")
    total = sum(entry.file_size for entry in entries)
    if total > LARGEST_TOTAL_BYTES:
        message = f"the npz file claims {total} bytes of content, the limit is 64 GiB"
        raise UnreadableOutputError(message)


def _entry_opener(
    archive: zipfile.ZipFile, entry: zipfile.ZipInfo, start: int
) -> Callable[[], BinaryIO]:
    def opened() -> BinaryIO:
        member = cast("BinaryIO", archive.open(entry))
        read_exactly(member, start)
        return member

    return opened
