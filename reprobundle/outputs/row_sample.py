"""What is kept of rows too many to keep: some of them, and what is known of all.

The sample is a file of the same format: the first record, which is the header where
there is one, and the records at the places that `reprobundle.outputs.places` gives. So
it can be read, searched for secrets and compared like any other (spec.md, "Sampled
rows").
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, NamedTuple

import numpy as np  # noqa: TID253 - this module is imported only to sample rows
from blake3 import blake3

from reprobundle.format.record import RowSample
from reprobundle.outputs.array_blocks import Array
from reprobundle.outputs.places import places
from reprobundle.outputs.records import (
    ParsedRows,
    Sums,
    read_groups,
)
from reprobundle.outputs.row_blocks import SimpleRows
from reprobundle.outputs.row_places import BLOCK_BYTES, count_of_places

_NAME = "rows"
_READ_BYTES = 1 << 20

Open = Callable[[], BinaryIO]


class TakenRows(NamedTuple):
    """A sample of rows.

    Attributes:
        summary: What is known about all of them.
        text: The first record and the sampled ones, as they stand in the output.
    """

    summary: RowSample
    text: bytes


def sampled_records(summary: RowSample, *, key: str, output: str) -> Array:
    """Return which records a sample holds, ascending from 0, as int64.

    Args:
        summary: What is known about all records.
        key: Digest of the frozen policy.
        output: Name of the output.
    """
    behind = max(0, summary.records - 1)
    count = min(behind, summary.places)
    shape = (summary.records,)
    found = places(key, output, _NAME, shape, size=behind, count=count)
    return np.concatenate([np.zeros(min(1, summary.records), "int64"), found + 1])


def take_rows(
    open_output: Open,
    file_format: str,
    *,
    key: str,
    output: str,
    count: int | None = None,
) -> TakenRows:
    """Return the sample of an output, which is read twice, a block at a time.

    Args:
        open_output: Opens its content anew.
        file_format: One of `reprobundle.outputs.row_places.ROW_FORMATS`.
        key: Digest of the frozen policy.
        output: Name of the output.
        count: At how many places, as the run it is compared with did; by default as
            many as its own size allows.

    Raises:
        UnreadableOutputError: It is no such output, or has too many columns.
    """
    sums, records = Sums(file_format), 0
    with open_output() as stream:
        digested = _Digested(stream)
        for group in read_groups(io.BufferedReader(digested, _READ_BYTES), file_format):
            sums.add_group(group)
            records += len(group.raws)
        size_bytes = digested.size_bytes
    blocks = digested.blocks()
    wanted = count_of_places(records, size_bytes) if count is None else count
    known = RowSample(
        records=records,
        places=min(max(0, records - 1), wanted),
        blocks=blocks,
        columns=(),
    )
    where = sampled_records(known, key=key, output=output)
    with open_output() as stream:
        text = b"".join(_chosen(read_groups(stream, file_format), where))
    summary = RowSample(
        records=records,
        places=known.places,
        blocks=blocks,
        columns=sums.summaries(),
    )
    return TakenRows(summary, text)


class _Digested(io.RawIOBase):
    """A stream of whose blocks the digests are taken while it is read to its end."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._done: list[str] = []
        self._digest = blake3()
        self.size_bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        left = BLOCK_BYTES - self.size_bytes % BLOCK_BYTES
        data = self._stream.read(min(len(buffer), left))
        buffer[: len(data)] = data
        self._digest.update(data)
        self.size_bytes += len(data)
        if data and len(data) == left:
            self._done.append(self._digest.hexdigest())
            self._digest = blake3()
        return len(data)

    def blocks(self) -> tuple[str, ...]:
        rest = [self._digest.hexdigest()] if self.size_bytes % BLOCK_BYTES else []
        return (*self._done, *rest)


def _chosen(groups: Iterable[SimpleRows | ParsedRows], where: Array) -> Iterator[bytes]:
    """Yield the bytes of the records at `where`."""
    seen = 0
    for group in groups:
        raws = group.raws
        first, last = np.searchsorted(where, (seen, seen + len(raws)))
        for place in where[first:last]:
            yield raws[int(place) - seen]
        seen += len(raws)
