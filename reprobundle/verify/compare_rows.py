"""How two outputs stand to each other of which one side or both kept some rows only.

The sampled rows are compared like any table, document or text. What is compared
exactly is compared in all rows, by the digest of each column; of the decimal numbers
the counts and moments of all rows have to agree as far as the tolerance lets them
differ (spec.md, "Sampled rows"). A row more or less always shows: their number is
compared, and the same places then hold other rows.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

import msgspec
import numpy as np  # noqa: TID253 - this module is imported only to compare rows

from reprobundle.errors import UnreadableOutputError
from reprobundle.format.findings import ArrayComparison
from reprobundle.format.policy import Tolerance
from reprobundle.format.record import (
    ArraySummary,
    ColumnSummary,
    Output,
    RowSample,
    as_float,
)
from reprobundle.outputs.records import Sums, in_blocks, read_records
from reprobundle.outputs.row_sample import TakenRows, sampled_records, take_rows
from reprobundle.outputs.tables import columns_of
from reprobundle.verify.compare_cells import (
    Cells,
    Ignore,
    compare_documents,
    compare_tables,
)
from reprobundle.verify.compare_text import compare_text
from reprobundle.verify.content import Content
from reprobundle.verify.sampled_moments import moments_problem

Side = tuple[Output, Content]

_TABLES = ("csv", "tsv")
EXACT = Tolerance(rtol=0.0, atol=0.0)


class Rules(NamedTuple):
    """What of the policy concerns the rows of an output.

    Attributes:
        tolerance: The rule for decimal numbers; None where they count exactly.
        ignored: Tells whether a column is left out.
        first_rows: Only so many rows are compared; None for all.
    """

    tolerance: Tolerance | None
    ignored: Ignore
    first_rows: int | None


class ComparedRows(NamedTuple):
    """The comparison, what a rule left out, and how much of it was compared."""

    parts: tuple[ArrayComparison, ...]
    ignored: tuple[str, ...]
    told: str


def compare_rows(reference: Side, replay: Side, rules: Rules) -> ComparedRows:
    """Return how the rows of a replayed output stand to the reference's.

    Args:
        reference: Output and content of the run that counts as right.
        replay: The same of the other run; of equal kind and format, other digest.
        rules: What the policy says of them.

    Raises:
        UnreadableOutputError: One side kept no rows, they were taken at other places,
            or are not what their record says.
    """
    kept = [one for one, _ in (reference, replay) if one.stored == "sample"]
    key, pattern = kept[0].sample_key, kept[0].row_sample
    if any(one.sample_key != key for one in kept):
        raise UnreadableOutputError("the samples were taken at different places")
    if pattern is None:
        raise UnreadableOutputError("the record says nothing about all rows")
    b, a = (_taken(one, key, pattern.places) for one in (reference, replay))
    if b.summary.records != a.summary.records:
        return _other_count(b.summary, a.summary)
    if b.summary.places != a.summary.places:
        raise UnreadableOutputError("the samples were taken at different places")
    return _Pair(reference[0], key, b, a, rules).result()


def _taken(side: Side, key: str, count: int) -> TakenRows:
    """Return the sample of one side; if it kept everything, it is sampled now."""
    output, content = side
    if output.stored == "none":
        raise UnreadableOutputError("one side kept neither content nor sample")
    if output.stored != "sample":
        return take_rows(
            lambda: content.open(output),
            output.format,
            key=key,
            output=output.name,
            count=count,
        )
    if output.row_sample is None:
        raise UnreadableOutputError("the record says nothing about all rows")
    with content.open_member(output.member) as stream:
        taken = TakenRows(output.row_sample, stream.read())
    held = sum(1 for _ in read_records(io.BytesIO(taken.text), output.format))
    if held != sampled_records(taken.summary, key=key, output=output.name).size:
        raise UnreadableOutputError("the sample lacks rows at some places")
    return taken


def _other_count(b: RowSample, a: RowSample) -> ComparedRows:
    problem = f"{a.records:,} rows and lines, expected {b.records:,}"
    part = _lonely("", abs(b.records - a.records), problem)
    return ComparedRows((part,), (), "")


def _lonely(name: str, outside: int, problem: str) -> ArrayComparison:
    return ArrayComparison(
        name=name,
        dtype="cells",
        elements=0,
        equal=False,
        outside=outside,
        problem=problem,
    )


class _Pair:
    """Two samples of equally many rows, taken at the same places."""

    def __init__(
        self, output: Output, key: str, b: TakenRows, a: TakenRows, rules: Rules
    ) -> None:
        self.format = output.format
        self.b = b
        self.a = a
        self.rules = rules
        where = sampled_records(b.summary, key=key, output=output.name)
        self.rows = where - 1 if _has_header(b.text, output.format) else where
        """The row or line of each sampled record, -1 for the header."""

    def result(self) -> ComparedRows:
        wrong = (
            self._equal_blocks()
            or contradiction(self.b, self.format, "reference")
            or contradiction(self.a, self.format, "replay")
        )
        if wrong:
            return ComparedRows((_lonely("", 1, wrong),), (), "")
        cells = self._cells()
        whole = self._whole_columns(cells.ignored)
        parts = [self._part(part, whole.pop(part.name, "")) for part in cells.parts]
        parts += [_lonely(name, 1, text) for name, text in whole.items() if text]
        return ComparedRows(tuple(parts), cells.ignored, self._told())

    def _equal_blocks(self) -> str:
        if self.b.summary.blocks != self.a.summary.blocks:
            return ""
        return "the digests of all blocks agree although those of the files differ"

    def _cells(self) -> Cells:
        left, right = io.BytesIO(self.b.text), io.BytesIO(self.a.text)
        if self.format == "text":
            part = compare_text(left, right, tolerance=self.rules.tolerance)
            return Cells((part,), (), part.elements)
        formats = (self.format, self.format)
        if self.format == "jsonl":
            return compare_documents(
                left,
                right,
                formats,
                tolerance=self.rules.tolerance or EXACT,
                ignored=self.rules.ignored,
                first_rows=self._first_sampled(),
            )
        return compare_tables(
            lambda: io.BytesIO(self.b.text),
            lambda: io.BytesIO(self.a.text),
            formats,
            tolerance=self.rules.tolerance or EXACT,
            ignored=self.rules.ignored,
            rows=self.rows.size,
            first_rows=self._first_sampled(),
        )

    def _first_sampled(self) -> int | None:
        """Return how many sampled rows lie before those that a rule leaves out."""
        if self.rules.first_rows is None:
            return None
        inside = self.rows[self.rows >= 0] < self.rules.first_rows
        return int(np.count_nonzero(inside))

    # --- all rows

    def _whole_columns(self, ignored: Sequence[str]) -> dict[str, str]:
        """Return what is wrong with each column as a whole; empty if nothing is."""
        if self.rules.first_rows is not None:
            return {}
        if self.format == "text" and self.rules.tolerance is None:
            return {"": self._exact_text()}
        b, a = (
            {one.name: one for one in side.summary.columns} for side in (self.b, self.a)
        )
        return {
            name: self._column_problem(b.get(name), a.get(name))
            for name in {**b, **a}
            if name not in ignored and not self.rules.ignored(_keys(name))
        }

    def _exact_text(self) -> str:
        return f"{self._blocks_told()}; text is compared exactly"

    def _column_problem(self, b: ColumnSummary | None, a: ColumnSummary | None) -> str:
        if b is None or a is None:
            return "only one side has it"
        if b.exact != a.exact:
            return "what is compared exactly differs in some row"
        problem = moments_problem(b.numbers, a.numbers, self.rules.tolerance or EXACT)
        return problem.replace("the whole array", "the whole column")

    # --- what is said

    def _part(self, part: ArrayComparison, problem: str) -> ArrayComparison:
        numbers = [
            column.numbers
            for side in (self.b, self.a)
            for column in side.summary.columns
            if column.name == part.name
        ]
        return msgspec.structs.replace(
            part,
            equal=False,
            sampled_from=max(self.b.summary.records, part.elements),
            outside=part.outside or (1 if problem else 0),
            worst_index=self._in_whole(part.worst_index),
            nan=max((one.nan for one in numbers), default=0),
            zero=part.zero and not any(one.l2 for one in numbers),
            drift=(),
            problem=part.problem or problem,
        )

    def _in_whole(self, index: tuple[int, ...] | None) -> tuple[int, ...] | None:
        """Return the place in the whole output of a place in the sample."""
        if not index:
            return index
        rows = self.rows[self.rows >= 0]
        return (int(rows[index[0]]), *index[1:])

    def _blocks_told(self) -> str:
        pairs = zip_longest(self.b.summary.blocks, self.a.summary.blocks)
        differing = [b == a for b, a in pairs].count(False)
        blocks = max(len(self.b.summary.blocks), len(self.a.summary.blocks))
        differ = "differs" if blocks == 1 else "differ"
        return f"{differing:,} of {blocks:,} blocks {differ}"

    def _told(self) -> str:
        noun = "lines" if self.format in ("text", "jsonl") else "rows"
        rows = self.rows[self.rows >= 0]
        whole = self.b.summary.records - (self.rows.size - rows.size)
        seen = f"sampled at {rows.size:,} {noun} of {whole:,}; {self._blocks_told()}"
        if self.rules.first_rows is not None:
            return f"{seen}; only {noun} before {self.rules.first_rows:,} count"
        return f"{seen}; what counts exactly agrees in all, moments agree"


def _has_header(text: bytes, file_format: str) -> bool:
    if file_format not in _TABLES:
        return False
    first = next(read_records(io.BytesIO(text), file_format), None)
    return first is not None and columns_of(first.cells)[1]


def _keys(column: str) -> tuple[str, ...]:
    """Return the object keys that lead to a column of a document."""
    return tuple(key for key in column.replace("[]", "").split(".") if key)


def contradiction(taken: TakenRows, file_format: str, side: str) -> str:
    """Return how a sample contradicts what its record says of all rows."""
    sums = Sums(file_format)
    for block in in_blocks(read_records(io.BytesIO(taken.text), file_format)):
        sums.add(block)
    stated = {one.name: one for one in taken.summary.columns}
    is_whole = taken.summary.places + 1 >= taken.summary.records
    for seen in sums.summaries():
        known = stated.get(seen.name)
        if known is None:
            return f"the {side}'s sample has a column {seen.name!r} of its own"
        if is_whole and known.exact != seen.exact:
            return f"the {side}'s sample holds all rows, with another digest"
        if not _covers(known.numbers, seen.numbers):
            return f"the {side}'s sample holds values beyond those of its summary"
    return ""


def _covers(known: ArraySummary, seen: ArraySummary) -> bool:
    """Whether numbers as `seen` can be some of those that are `known`."""
    counts = ("nan", "positive_infinity", "negative_infinity")
    if any(getattr(seen, one) > getattr(known, one) for one in counts):
        return False
    if seen.minimum is None or seen.maximum is None:
        return True
    if known.minimum is None or known.maximum is None:
        return False
    return as_float(known.minimum) <= as_float(seen.minimum) and as_float(
        seen.maximum
    ) <= as_float(known.maximum)
