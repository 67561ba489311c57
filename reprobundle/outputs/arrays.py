"""Which arrays a file holds, and their elements block by block.

Reads ``npy``, ``npz`` and ``safetensors`` without numpy's own loader: nothing is
unpickled, nothing is mapped, and memory stays bounded by one block whatever a header
claims (a header is believed only as far as the file's size agrees with it).

numpy is imported with this module, so import it only where arrays are read.
"""

from __future__ import annotations

import contextlib
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO

from reprobundle.errors import UnreadableOutputError
from reprobundle.outputs.array_blocks import Array, NamedArray
from reprobundle.outputs.npy import read_npy, read_npz
from reprobundle.outputs.safetensors_file import read_safetensors
from reprobundle.outputs.safetensors_file import read_texts as _read_texts

__all__ = ["Array", "NamedArray", "read_arrays", "read_texts"]

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


_READERS: dict[str, Callable[[BinaryIO], Iterator[NamedArray]]] = {
    "npy": read_npy,
    "npz": read_npz,
    "safetensors": read_safetensors,
}


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


def read_texts(stream: BinaryIO, file_format: str) -> dict[str, str]:
    """Return the texts that a file holds beside its arrays, by name.

    Only safetensors has any: entries of an npz that are no arrays are refused.

    Args:
        stream: Seekable, read from its start.
        file_format: ``npy``, ``npz`` or ``safetensors``.

    Raises:
        UnreadableOutputError: The content is damaged.
    """
    if file_format != "safetensors":
        return {}
    with _refusing(file_format):
        return _read_texts(stream)


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


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
