"""Which arrays a file holds, and their elements block by block.

Reads ``npy``, ``npz`` and ``safetensors`` without numpy's own loader: nothing is
unpickled, nothing is mapped, and memory stays bounded by one block whatever a header
claims (a header is believed only as far as the file's size agrees with it).

numpy is imported with this module, so import it only where arrays are read.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import math
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np  # noqa: TID253 - this module is imported only to read arrays

from reprobundle.errors import UnreadableOutputError
from reprobundle.outputs.blocks import read_exactly

BLOCK_ELEMENTS = 4 * 1024 * 1024
LARGEST_NPY_HEADER = 1 << 20
LARGEST_SAFETENSORS_HEADER = 100_000_000
MOST_ARRAYS = 100_000
LARGEST_TOTAL_BYTES = 64 << 30
_COPY_BYTES = 1 << 20

Array = np.ndarray[Any, np.dtype[Any]]

_PARSER_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    NotImplementedError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
)

_SAFETENSORS_DTYPES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "U16": "uint16",
    "I16": "int16",
    "U32": "uint32",
    "I32": "int32",
    "U64": "uint64",
    "I64": "int64",
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
    "C64": "complex64",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E8M0": "float8_e8m0fnu",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
}


class NamedArray(NamedTuple):
    """One array of a file.

    Attributes:
        name: Key inside the file; empty when the file is the array.
        dtype: As numpy names it, or ``bfloat16``, ``float8_e4m3fn`` and so on;
            without byte order, which is no property of the values.
        shape: Extent of each axis.
        blocks: Call it with a number of elements to get the elements in C order, in
            one-dimensional blocks of at most that many, in native byte order. A block
            is valid until the next one is taken.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    blocks: Callable[[int], Iterator[Array]]

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


def read_arrays(stream: BinaryIO, file_format: str) -> tuple[NamedArray, ...]:
    """Return the arrays of a file, in the order in which the file lists them.

    The elements stay in the file: `stream` must remain open, and only one iterator of
    blocks may be in use at a time.

    Args:
        stream: Seekable, read from its start.
        file_format: ``npy``, ``npz`` or ``safetensors``.

    Raises:
        UnreadableOutputError: The content is damaged, truncated, has more bytes than
            its header says, or holds Python objects.
    """
    with _refusing(file_format):
        return tuple(
            array._replace(blocks=_guarded(array.blocks, file_format))
            for array in _READERS[file_format](stream)
        )


@contextlib.contextmanager
def _refusing(file_format: str) -> Iterator[None]:
    """Turn whatever a parser raises on damaged content into one error."""
    try:
        yield
    except UnreadableOutputError:
        raise
    except _PARSER_ERRORS as error:
        message = f"not a readable {file_format} file: {_one_line(error)}"
        raise UnreadableOutputError(message) from error


def _guarded(
    blocks: Callable[[int], Iterator[Array]], file_format: str
) -> Callable[[int], Iterator[Array]]:
    def guarded(elements: int) -> Iterator[Array]:
        with _refusing(file_format):
            yield from blocks(elements)

    return guarded


def dtype_of(name: str) -> np.dtype[Any]:
    """Return the numpy dtype called `name`, among them those of ml_dtypes."""
    if name.startswith(("bfloat16", "float8")):
        import ml_dtypes

        return cast("np.dtype[Any]", np.dtype(getattr(ml_dtypes, name)))
    return np.dtype(name)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


def _size_of(stream: BinaryIO) -> int:
    return stream.seek(0, 2)


def _fill(stream: BinaryIO, buffer: memoryview) -> None:
    """Read exactly as many bytes as `buffer` has room for."""
    filled = 0
    while filled < len(buffer):
        got = cast("io.BufferedIOBase", stream).readinto(buffer[filled:])
        if not got:
            message = f"the content ends {len(buffer) - filled} bytes too early"
            raise UnreadableOutputError(message)
        filled += got


# --- npy -----------------------------------------------------------------------------


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
    if length > LARGEST_NPY_HEADER:
        message = f"the npy header claims {length} bytes, the limit is 1 MiB"
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
    dtype = np.lib.format.descr_to_dtype(header["descr"])
    if dtype.hasobject:
        message = "the array holds Python objects, which are never unpickled"
        raise UnreadableOutputError(message)
    if dtype.itemsize == 0:
        raise UnreadableOutputError("the array has elements of no size")
    return _NpyHeader(dtype, order, shape)


def _npy(stream: BinaryIO) -> Iterator[NamedArray]:
    size = _size_of(stream)
    stream.seek(0)
    header = _npy_header(stream)
    start = stream.tell()
    _check_size(header.data_bytes, size - start)

    def opened() -> BinaryIO:
        stream.seek(start)
        return stream

    yield from _fields("", header, opened)


def _check_size(expected: int, got: int) -> None:
    if expected != got:
        message = f"the header describes {expected} bytes of elements, {got} follow"
        raise UnreadableOutputError(message)


def _fields(
    name: str, header: _NpyHeader, opened: Callable[[], BinaryIO]
) -> Iterator[NamedArray]:
    """Yield the array, or one array for each field of a structured dtype."""
    for path, dtype in _leaves(header.dtype):
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
            whole = _transposed_blocks(source, header, elements)
        else:
            count = math.prod(header.shape)
            whole = _raw_blocks(source, header.dtype, count, elements)
        for block in whole:
            field = block
            for key in path:
                field = field[key]
            yield _native(field).reshape(-1)

    return blocks


def _raw_blocks(
    stream: BinaryIO, dtype: np.dtype[Any], count: int, elements: int
) -> Iterator[Array]:
    # One buffer for all blocks: fresh memory for each costs more than the reading.
    buffer = memoryview(bytearray(min(elements, count) * dtype.itemsize))
    for start in range(0, count, elements):
        part = buffer[: min(elements, count - start) * dtype.itemsize]
        _fill(stream, part)
        yield np.frombuffer(part, dtype)


def _transposed_blocks(
    stream: BinaryIO, header: _NpyHeader, elements: int
) -> Iterator[Array]:
    """Yield a Fortran-ordered array in C order, by way of a temporary file."""
    with tempfile.TemporaryFile() as copy:
        left = header.data_bytes
        while left:
            piece = read_exactly(stream, min(left, _COPY_BYTES))
            copy.write(piece)
            left -= len(piece)
        copy.flush()
        if not header.data_bytes:
            return
        array = np.memmap(copy, header.dtype, "r", 0, header.shape, "F")
        for start in range(0, array.size, elements):
            # flat walks in C order whatever the layout is, and copies one block.
            yield np.asarray(array.flat[start : start + elements])


def _native(block: Array) -> Array:
    return block.astype(block.dtype.newbyteorder("="), copy=False)


# --- npz -----------------------------------------------------------------------------


def _npz(stream: BinaryIO) -> Iterator[NamedArray]:
    stream.seek(0)
    archive = zipfile.ZipFile(stream)
    entries = archive.infolist()
    _check_entries(entries)
    for entry in entries:
        with archive.open(entry) as member:
            header = _npy_header(cast("BinaryIO", member))
            start = member.tell()
        _check_size(header.data_bytes, entry.file_size - start)
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


# --- safetensors ---------------------------------------------------------------------


def _safetensors(stream: BinaryIO) -> Iterator[NamedArray]:
    """Yield the tensors of a safetensors file, checking that no byte is left over.

    Source: safetensors format description: 8 bytes header length (little endian),
    the JSON header, then the data without holes.
    """
    size = _size_of(stream)
    stream.seek(0)
    length = int.from_bytes(read_exactly(stream, 8), "little")
    if length > min(LARGEST_SAFETENSORS_HEADER, size - 8):
        raise UnreadableOutputError(f"the header claims {length} bytes")
    header = json.loads(read_exactly(stream, length), object_pairs_hook=_without_twins)
    header.pop("__metadata__", None)
    data_start = 8 + length
    by_offset = sorted(header.items(), key=lambda item: item[1]["data_offsets"])
    end = 0
    for name, tensor in by_offset:
        array, end = _tensor(stream, name, tensor, end, data_start)
        yield array
    _check_size(end, size - data_start)


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise UnreadableOutputError("the header names one key twice")
    return result


def _tensor(
    stream: BinaryIO, name: str, tensor: dict[str, Any], expected: int, base: int
) -> tuple[NamedArray, int]:
    start, end = tensor["data_offsets"]
    shape = tuple(tensor["shape"])
    if not all(type(n) is int and n >= 0 for n in (start, end, *shape)):
        raise UnreadableOutputError(f"{name!r} has a shape or offset that is no count")
    if start != expected or end < start:
        message = f"{name!r} starts at {start}, the tensor before it ends at {expected}"
        raise UnreadableOutputError(message)
    stored = str(tensor["dtype"])
    known = _SAFETENSORS_DTYPES.get(stored)
    if known is None:
        # A dtype of a later safetensors release, perhaps below one byte: its bytes
        # are compared one by one.
        dtype, count, label = np.dtype("uint8"), end - start, stored
        shape = (*shape, count) if math.prod(shape) != count else shape
    else:
        dtype, count, label = dtype_of(known), math.prod(shape), known
        _check_size(count * dtype.itemsize, end - start)

    def blocks(elements: int) -> Iterator[Array]:
        stream.seek(base + start)
        return _raw_blocks(stream, dtype, count, elements)

    return NamedArray(name, label, shape, blocks), end


_READERS: dict[str, Callable[[BinaryIO], Iterator[NamedArray]]] = {
    "npy": _npy,
    "npz": _npz,
    "safetensors": _safetensors,
}
