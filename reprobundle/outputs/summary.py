"""What is known about an output without its content: kind, shapes, counts, moments.

The summary of a damaged file is the summary of plain bytes, with the reason.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from reprobundle.errors import UnreadableOutputError
from reprobundle.format.record import ArraySummary, OutputKind
from reprobundle.outputs.documents import LARGEST_DOCUMENT_BYTES, read_leaves
from reprobundle.outputs.kinds import BYTES, HEAD_BYTES, Kind, detect
from reprobundle.outputs.tables import open_table
from reprobundle.outputs.text import read_lines

if TYPE_CHECKING:
    from reprobundle.outputs.arrays import NamedArray


class Summary(NamedTuple):
    """The fields of a record's output that its content decides.

    Attributes:
        kind, format, arrays, rows: As in `reprobundle.format.record.Output`.
        problem: Why the content counts as plain bytes although its name or first
            bytes say otherwise, or why a checkpoint's tensors are unknown; empty if
            there is nothing to say.
    """

    kind: OutputKind
    format: str
    arrays: tuple[ArraySummary, ...] = ()
    rows: int | None = None
    problem: str = ""


def summarise(name: str, path: Path, *, tensors: Path | None = None) -> Summary:
    """Return what the file at `path` holds.

    Args:
        name: Output name; with the first bytes it decides the kind.
        path: The content.
        tensors: For a checkpoint, its tensors as a safetensors file, if they
            were exported.
    """
    with path.open("rb") as stream:
        kind = detect(name, stream.read(HEAD_BYTES))
        stream.seek(0)
        try:
            if kind.format == "checkpoint":
                return _checkpoint(kind, tensors)
            return _summary(kind, stream)
        except UnreadableOutputError as error:
            return Summary(*BYTES, problem=error.message)


def _summary(kind: Kind, stream: BinaryIO) -> Summary:
    if kind.kind == "arrays":
        return Summary(*kind, arrays=_arrays(stream, kind.format))
    if kind.kind == "table":
        with open_table(stream, kind.format) as table:
            return Summary(*kind, rows=sum(1 for _ in table.rows))
    if kind.kind == "document":
        # Only counting: JSON Lines of any size are read line by line.
        limit = sys.maxsize - 1 if kind.format == "jsonl" else LARGEST_DOCUMENT_BYTES
        leaves = sum(1 for _ in read_leaves(stream, kind.format, limit_bytes=limit))
        return Summary(*kind, rows=leaves if kind.format == "jsonl" else None)
    if kind.kind in ("text", "log"):
        return Summary(*kind, rows=sum(1 for _ in read_lines(stream)))
    return Summary(*kind)


def _checkpoint(kind: Kind, tensors: Path | None) -> Summary:
    if tensors is None:
        return Summary(*kind, problem="the tensors of the checkpoint were not exported")
    with tensors.open("rb") as stream:
        try:
            return Summary(*kind, arrays=_arrays(stream, "safetensors"))
        except UnreadableOutputError as error:
            return Summary(*kind, problem=f"exported tensors: {error.message}")


def _arrays(stream: BinaryIO, file_format: str) -> tuple[ArraySummary, ...]:
    from reprobundle.outputs.arrays import read_arrays
    from reprobundle.outputs.moments import summarise_array

    arrays: tuple[NamedArray, ...] = read_arrays(stream, file_format)
    return tuple(summarise_array(array) for array in arrays)
