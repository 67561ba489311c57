"""How many rows are kept of an output that is too large, and which formats have rows.

Nothing here needs numpy: who checks a record alone asks these questions too.
"""

from __future__ import annotations

from typing import Final

ROW_FORMATS: Final = frozenset({"csv", "tsv", "jsonl", "text"})
"""Formats of outputs that consist of records: rows or lines."""

BLOCK_BYTES: Final = 4 << 20
"""Size of the blocks of which digests are kept."""

SAMPLE_BYTES: Final = 4 << 20
"""Size that the sampled rows should have together; smaller outputs are kept whole."""

MOST_PLACES: Final = 100_000


def count_of_places(records: int, size_bytes: int) -> int:
    """Return at how many places the records behind the first one are sampled.

    Args:
        records: Number of records of the output that a sample is compared with first.
        size_bytes: Its size.
    """
    behind = max(0, records - 1)
    fitting = behind * SAMPLE_BYTES // max(1, size_bytes)
    return min(behind, MOST_PLACES, max(1, fitting))
