"""Which tensors a safetensors file holds."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any, BinaryIO, cast

import numpy as np  # noqa: TID253 - this module is imported only to read arrays

from reprobundle.errors import UnreadableOutputError
from reprobundle.format.canonical import measure
from reprobundle.outputs.array_blocks import (
    Array,
    NamedArray,
    check_size,
    raw_blocks,
    size_of,
)
from reprobundle.outputs.blocks import read_exactly

LARGEST_HEADER = 32 << 20
MOST_TENSORS = 100_000
MOST_VALUES = 20 * MOST_TENSORS
MOST_AXES = 64
_METADATA = "__metadata__"

_DTYPES = {
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
CODES = {dtype: code for code, dtype in _DTYPES.items()}
"""The code by which the format calls each dtype it has."""


def read_safetensors(stream: BinaryIO) -> Iterator[NamedArray]:
    """Yield the tensors of a safetensors file, checking that no byte is left over.

    Source: safetensors format description: 8 bytes header length (little endian),
    the JSON header, then the data without holes.
    """
    size = size_of(stream)
    header, length = _header(stream, size)
    header.pop(_METADATA, None)
    if len(header) > MOST_TENSORS:
        message = f"the file has {len(header)} tensors, the limit is {MOST_TENSORS}"
        raise UnreadableOutputError(message)
    data_start = 8 + length
    by_offset = sorted(header.items(), key=lambda item: item[1]["data_offsets"])
    end = 0
    for name, tensor in by_offset:
        array, end = _tensor(stream, name, tensor, end, data_start)
        yield array
    check_size(end, size - data_start)


def read_texts(stream: BinaryIO) -> dict[str, str]:
    """Return the texts that the header holds beside the tensors, by name.

    Raises:
        UnreadableOutputError: The header is damaged, or one of them is no text.
    """
    header, _ = _header(stream, size_of(stream))
    texts = header.get(_METADATA, {})
    if not isinstance(texts, dict) or not all(map(_is_text, texts.values())):
        raise UnreadableOutputError(f"{_METADATA} holds something else than texts")
    return texts


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _header(stream: BinaryIO, size: int) -> tuple[dict[str, Any], int]:
    """Return the header and its length in bytes."""
    stream.seek(0)
    length = int.from_bytes(read_exactly(stream, 8), "little")
    if length > min(LARGEST_HEADER, size - 8):
        raise UnreadableOutputError(f"the header claims {length} bytes")
    text = read_exactly(stream, length)
    if measure(text)[1] > MOST_VALUES:
        raise UnreadableOutputError("the header holds too many values")
    return json.loads(text, object_pairs_hook=_without_twins), length


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
    if len(shape) > MOST_AXES:
        message = f"{name!r} has {len(shape)} axes, the limit is {MOST_AXES}"
        raise UnreadableOutputError(message)
    if not all(type(n) is int and n >= 0 for n in (start, end, *shape)):
        raise UnreadableOutputError(f"{name!r} has a shape or offset that is no count")
    if start != expected or end < start:
        message = f"{name!r} starts at {start}, the tensor before it ends at {expected}"
        raise UnreadableOutputError(message)
    stored = str(tensor["dtype"])
    known = _DTYPES.get(stored)
    if known is None:
        # A dtype of a later safetensors release, perhaps below one byte: its bytes
        # are compared one by one.
        dtype, count, label = np.dtype("uint8"), end - start, stored
        shape = (*shape, count) if math.prod(shape) != count else shape
    else:
        dtype, count, label = dtype_of(known), math.prod(shape), known
        check_size(count * dtype.itemsize, end - start)

    def blocks(elements: int) -> Iterator[Array]:
        stream.seek(base + start)
        return raw_blocks(stream, dtype, count, elements)

    return NamedArray(name, label, shape, blocks), end


def dtype_of(name: str) -> np.dtype[Any]:
    """Return the dtype of one of the names in `CODES`."""
    if name.startswith(("bfloat16", "float8")):
        import ml_dtypes

        return cast("np.dtype[Any]", np.dtype(getattr(ml_dtypes, name)))
    return np.dtype(name)
