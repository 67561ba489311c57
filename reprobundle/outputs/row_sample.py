"""What is kept of rows too many to keep: some of them, and what is known of all.

The sample is a file of the same format: the first record, which is the header where
there is one, and the records at the places that `reprobundle.outputs.places` gives. So
it can be read, searched for secrets and compared like any other (spec.md, "Sampled
rows").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple

import numpy as np  # noqa: TID253 - this module is imported only to sample rows

from reprobundle.format.digests import digest_bytes
from reprobundle.format.record import RowSample
from reprobundle.outputs.array_blocks import Array
from reprobundle.outputs.blocks import read_block
from reprobundle.outputs.places import places
from reprobundle.outputs.records import (
    Row,
    Sums,
    count_records,
    in_blocks,
    read_records,
)
from reprobundle.outputs.row_places import BLOCK_BYTES, count_of_places

_NAME = "rows"

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
    """Return the sample of an output, which is read three times, a block at a time.

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
    with open_output() as stream:
        blocks = tuple(map(digest_bytes, _blocks(stream)))
        size_bytes = stream.tell()
    with open_output() as stream:
        records = count_records(stream, file_format)
    wanted = count_of_places(records, size_bytes) if count is None else count
    known = RowSample(
        records=records,
        places=min(max(0, records - 1), wanted),
        blocks=blocks,
        columns=(),
    )
    where = sampled_records(known, key=key, output=output)
    sums = Sums(file_format)
    with open_output() as stream:
        text = b"".join(_chosen(read_records(stream, file_format), where, sums))
    summary = RowSample(
        records=records,
        places=known.places,
        blocks=blocks,
        columns=sums.summaries(),
    )
    return TakenRows(summary, text)


def _blocks(stream: BinaryIO) -> Iterator[bytes]:
    while block := read_block(stream, BLOCK_BYTES):
        yield block


def _chosen(rows: Iterator[Row], where: Array, sums: Sums) -> Iterator[bytes]:
    """Add all rows to `sums` and yield the bytes of those at `where`."""
    seen = 0
    for block in in_blocks(rows):
        sums.add(block)
        first, last = np.searchsorted(where, (seen, seen + len(block)))
        for place in where[first:last]:
            yield block[int(place) - seen].raw
        seen += len(block)
