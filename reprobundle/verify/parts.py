"""A record as far as the part of a bundle that is here can show it.

An output whose content lies in the other part is one whose content was not kept: equal
digests still tell that it is the same, and nothing else can be told.
"""

from __future__ import annotations

import msgspec

from reprobundle.format.reader import Bundle
from reprobundle.format.record import Output, Record
from reprobundle.verify.sealed import Sealed


def as_far_as_here(bundle: Bundle, sealed: Sealed) -> Sealed:
    """Return the documents of a part with each record as far as it is here."""
    if not bundle.absent:
        return sealed
    runs = {
        number: without_absent(bundle, record, f"runs/{number}/")
        for number, record in sealed.runs.items()
    }
    return sealed._replace(runs=runs)


def without_absent(bundle: Bundle, record: Record, top: str) -> Record:
    """Return a record without the contents that lie in the other part.

    Args:
        bundle: The bundle or part.
        record: One of its records.
        top: What the names of the record's own members are relative to.
    """
    if not bundle.absent:
        return record
    outputs = tuple(_known(bundle, output, top) for output in record.outputs)
    memory = record.memory
    if top + memory.series in bundle.absent:
        memory = msgspec.structs.replace(memory, series="")
    return msgspec.structs.replace(record, outputs=outputs, memory=memory)


def _known(bundle: Bundle, output: Output, top: str) -> Output:
    names = filter(None, (output.member, output.arrays_member))
    if not any({name, top + name} & bundle.absent for name in names):
        return output
    return msgspec.structs.replace(
        output,
        stored="none",
        member="",
        arrays_member="",
        sample_key="",
        row_sample=None,
    )
