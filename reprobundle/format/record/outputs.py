"""What a run wrote and recorded, with the summaries that are compared."""

from typing import Literal

import msgspec

from reprobundle.format.record.values import Count, Digest, DigestOrEmpty, Number


class ArraySummary(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """What is known about one array without its content.

    Attributes:
        name: Key inside the file; empty when the file is the array.
        dtype: As numpy names it, or ``bfloat16``, ``float8_e4m3fn`` and so on.
        shape: Extent of each axis.
        nan, positive_infinity, negative_infinity, negative_zero: Counts.
        minimum, maximum, mean, l2: Over the finite elements, in float64; None when
            there is none, or when the dtype has no order.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    nan: Count = 0
    positive_infinity: Count = 0
    negative_infinity: Count = 0
    negative_zero: Count = 0
    minimum: Number | None = None
    maximum: Number | None = None
    mean: Number | None = None
    l2: Number | None = None


class ColumnSummary(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """What is known about all cells of one column of an output kept as sampled rows.

    Attributes:
        name: As comparisons name it; empty for the lines of a text.
        exact: Digest of everything in it that is compared exactly (spec.md, "Sampled
            rows").
        numbers: Counts and moments of its decimal numbers; the shape is their count.
    """

    name: str
    exact: Digest
    numbers: ArraySummary


class RowSample(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is known about all rows of an output of which only some are kept.

    Attributes:
        records: Records of the whole: rows with the header, lines.
        places: Records that are kept besides the first one.
        blocks: Digest of every 4 MiB of the whole.
        columns: One for each column.
    """

    records: Count
    places: Count
    blocks: tuple[Digest, ...]
    columns: tuple[ColumnSummary, ...]


OutputKind = Literal["arrays", "table", "document", "text", "log", "bytes"]
OutputRole = Literal[
    "",
    "checkpoint",
    "metrics",
    "prediction",
    "figure",
    "export",
    "report",
    "log",
    "metadata",
]
RoleSource = Literal["", "form", "stated"]


class Output(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing the run produced that a replay is compared by.

    Attributes:
        name: Path below the project, or ``record:<name>`` for a recorded value.
        kind: How it is compared (spec.md, "Comparison").
        format: ``npy``, ``npz``, ``safetensors``, ``checkpoint``, ``csv``, ``tsv``,
            ``json``, ``jsonl``, ``notebook``, ``text``, ``bytes``.
        size_bytes: Size of its content.
        blake3: Digest of its content.
        stored: ``here`` (a member beside the record), ``sealed`` (equal to the sealed
            member of the same digest), ``sample`` (too large to keep: a member holds
            the elements or rows at some places; spec.md, "Samples"),
            ``none`` (only the summary is kept), ``withheld`` (its author keeps the
            content; there are `arrays` and `rows` only if the author lets them out).
        member: Member name relative to the record when stored here, full sealed path
            when sealed, either of them for a sample, empty otherwise.
        sample_key: For a sample, the digest of the policy that decided its places.
        row_sample: For a sample of rows, what is known about all of them.
        arrays_member: For checkpoints: the member with their tensors as safetensors,
            relative to the record.
        arrays: Summaries of its arrays.
        rows: Rows of a table, lines of a text; None for other kinds.
        role: What it is for; empty if neither its form shows it nor anybody states it.
        role_source: ``form`` (its format, or that it is one number) or ``stated`` (the
            policy's `roles`).
        replaced_input: Whether the run read a file of this name before writing it.
    """

    name: str
    kind: OutputKind
    format: str
    size_bytes: Count
    blake3: Digest
    stored: Literal["here", "sealed", "sample", "none", "withheld"]
    member: str = ""
    sample_key: DigestOrEmpty = ""
    row_sample: RowSample | None = None
    arrays_member: str = ""
    arrays: tuple[ArraySummary, ...] = ()
    rows: int | None = None
    role: OutputRole = ""
    role_source: RoleSource = ""
    replaced_input: bool = False
