"""Keep the outputs of a run within a size: what does not fit is kept as a sample.

Of arrays some elements are kept, of tables, JSON Lines, texts and logs some rows. JSON
documents and notebooks are always kept whole: they have no rows, and a value without
what stands around it is none. Where they do not fit, the record says so.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from reprobundle.errors import UnreadableOutputError
from reprobundle.format.digests import digest_file
from reprobundle.format.record import ContentMember, Output, Record, Remark
from reprobundle.outputs.row_places import ROW_FORMATS, SAMPLE_BYTES
from reprobundle.run.finished import Assembled

OUTPUT_BUDGET_BYTES = 16 << 20

# What its author can do about a large output that has no rows and no elements.
_REMEDIES = {
    "json": "write JSON Lines, whose rows can be sampled, ",
    "notebook": "clear what is no result from the outputs of its cells, ",
}
_REDUCIBLE = frozenset({"arrays", "bytes"})


@dataclass(frozen=True)
class Budget:
    """How much the outputs of one record may take.

    Attributes:
        budget_bytes: Size of all outputs kept whole together.
        key: Digest of the frozen policy, which decides the places of samples.
        always: Names of outputs that are cut down whatever their size, because the
            run they are compared with did so.
        never: Names of outputs that are kept whole, for the same reason.
        places: Name of an output → number of places at which the run it is compared
            with sampled its rows.
        sealed: Digest → sealed member of equal content, which is not stored again.
    """

    budget_bytes: int
    key: str
    always: frozenset[str] = frozenset()
    never: frozenset[str] = frozenset()
    places: Mapping[str, int] = dataclasses.field(default_factory=dict)
    sealed: Mapping[str, str] = dataclasses.field(default_factory=dict)


def places_of_rows(record: Record) -> dict[str, int]:
    """Return at how many places a record sampled the rows of each such output."""
    return {
        output.name: output.row_sample.places
        for output in record.outputs
        if output.row_sample is not None
    }


def kept_whole(record: Record) -> frozenset[str]:
    """Return the names of the outputs whose whole content a record keeps."""
    return frozenset(
        output.name for output in record.outputs if output.stored in ("here", "sealed")
    )


def not_whole(record: Record) -> frozenset[str]:
    """Return the names of the outputs whose content was too large to keep."""
    return frozenset(output.name for output in record.outputs) - kept_whole(record)


def within_budget(
    assembled: Assembled, budget: Budget, folder: Path, *, say: Callable[[str], None]
) -> Assembled:
    """Return the record with its content cut down to the budget.

    Args:
        assembled: A record with its whole content.
        budget: What it may take.
        folder: A folder for the samples.
        say: Takes one line for each output that is not kept whole.
    """
    content = dict(assembled.content)
    outputs = []
    reduced = _too_large(assembled, budget)
    for number, output in enumerate(assembled.record.outputs):
        if output.name not in reduced:
            outputs.append(_shared(output, content, budget.sealed))
            continue
        target = folder / f"sample.{number}"
        outputs.append(_reduce(output, content, budget, target))
        say(_told(output, outputs[-1]))
    whole = [] if budget.never else list(_over_budget(outputs, budget.budget_bytes))
    for remark in whole:
        if remark.where not in reduced:
            say(f"output {remark.where}: {remark.text}")
    record = msgspec.structs.replace(
        assembled.record,
        outputs=tuple(outputs),
        remarks=(*assembled.record.remarks, *whole),
        members=_members(assembled.record.members, content),
    )
    return dataclasses.replace(assembled, record=record, content=content)


def _too_large(assembled: Assembled, budget: Budget) -> set[str]:
    """Return the names of the outputs that are not kept whole: the largest ones."""
    own = {
        output.name: sum(
            assembled.content[member].stat().st_size
            for member in (output.member, output.arrays_member)
            if member in assembled.content
        )
        for output in assembled.record.outputs
    }
    reducible = {
        output.name
        for output in assembled.record.outputs
        if _is_reducible(output, budget)
        and own[output.name]
        and output.name not in budget.never
    }
    reduced = reducible & budget.always
    left = budget.budget_bytes
    left -= sum(size for name, size in own.items() if name not in reducible)
    for name in sorted(reducible - reduced, key=lambda name: (own[name], name)):
        left -= own[name]
        if left < 0:
            reduced.add(name)
    return reduced


def _over_budget(outputs: Iterable[Output], budget_bytes: int) -> Iterator[Remark]:
    """Yield a remark for each large output that was kept whole and did not fit."""
    kept = [output for output in outputs if output.stored == "here"]
    if sum(output.size_bytes for output in kept) <= budget_bytes:
        return
    for output in kept:
        if output.size_bytes > SAMPLE_BYTES:
            remedy = _REMEDIES.get(output.format, "")
            yield Remark(
                id="output-over-budget",
                severity="gap",
                where=output.name,
                text=f"{output.size_bytes:,} bytes of {output.format} were kept whole, "
                f"as no sample can stand for them, and the outputs take more than "
                f"--output-budget; {remedy}keep it with you by --hash-only, or raise "
                "the budget",
            )


def _is_reducible(output: Output, budget: Budget) -> bool:
    if output.kind in _REDUCIBLE:
        return True
    # A sample of smaller ones would be no smaller.
    is_large = output.size_bytes > SAMPLE_BYTES
    return output.format in ROW_FORMATS and (is_large or output.name in budget.always)


def _shared(
    output: Output, content: dict[str, Path], sealed: Mapping[str, str]
) -> Output:
    """Name the sealed member in place of content that equals it."""
    twin = sealed.get(output.blake3, "") if output.size_bytes else ""
    if not twin or output.stored != "here":
        return output
    del content[output.member]
    output = msgspec.structs.replace(output, stored="sealed", member=twin)
    tensors = content.get(output.arrays_member)
    twin = sealed.get(digest_file(tensors), "") if tensors else ""
    if twin:
        del content[output.arrays_member]
        output = msgspec.structs.replace(output, arrays_member=twin)
    return output


def _reduce(
    output: Output, content: dict[str, Path], budget: Budget, target: Path
) -> Output:
    """Take the content of `output` out of `content` and put a sample in its place."""
    if output.format in ROW_FORMATS:
        return _reduce_rows(output, content, budget, target)
    whole = content.pop(output.member, None)
    tensors = content.pop(output.arrays_member, None)
    member = ""
    is_checkpoint = output.format == "checkpoint"
    source = tensors if is_checkpoint else whole
    if output.arrays and source is not None:
        file_format = "safetensors" if is_checkpoint else output.format
        member = _sample(output, source, file_format, content, budget, target)
    return msgspec.structs.replace(
        output,
        stored="sample" if member else "none",
        member=member,
        arrays_member="",
        sample_key=budget.key if member else "",
    )


def _sample(
    output: Output,
    source: Path,
    file_format: str,
    content: dict[str, Path],
    budget: Budget,
    target: Path,
) -> str:
    """Return the member that holds the sample, empty if none can be taken."""
    # Imported here: reading arrays takes numpy, and most outputs need none.
    from reprobundle.outputs.sample import write_sample

    try:
        write_sample(source, file_format, target, key=budget.key, output=output.name)
    except UnreadableOutputError:
        return ""
    name = f"samples/{output.member}.safetensors"
    return _placed(name, target, content, budget)


def _placed(name: str, target: Path, content: dict[str, Path], budget: Budget) -> str:
    """Return the member that a sample is, a sealed one where its content equals."""
    twin = budget.sealed.get(digest_file(target), "")
    if not twin:
        content[name] = target
    return twin or name


def _reduce_rows(
    output: Output, content: dict[str, Path], budget: Budget, target: Path
) -> Output:
    """Put a sample of its rows in the place of an output, if one can be taken."""
    # Imported here for the same reason: column sums take numpy.
    from reprobundle.outputs.row_sample import take_rows

    whole = content[output.member]
    try:
        taken = take_rows(
            lambda: whole.open("rb"),
            output.format,
            key=budget.key,
            output=output.name,
            count=budget.places.get(output.name),
        )
    except UnreadableOutputError:
        return output
    del content[output.member]
    target.write_bytes(taken.text)
    return msgspec.structs.replace(
        output,
        stored="sample",
        member=_placed(f"samples/{output.member}", target, content, budget),
        sample_key=budget.key,
        row_sample=taken.summary,
    )


def _members(
    stated: Iterable[ContentMember], content: Mapping[str, Path]
) -> tuple[ContentMember, ...]:
    """Return the members that are left, and the new ones."""
    known = {member.name: member for member in stated}
    kept = {name: member for name, member in known.items() if member.sealed}
    for name, path in content.items():
        kept[name] = known.get(name) or ContentMember(
            name=name, size_bytes=path.stat().st_size, blake3=digest_file(path)
        )
    return tuple(member for _, member in sorted(kept.items()))


def _told(output: Output, kept: Output) -> str:
    if kept.stored == "here":
        how = "over the budget and kept whole: no sample of its rows can be taken"
    elif kept.row_sample is not None:
        how = (
            f"a sample of {kept.row_sample.places:,} of its {_rows(kept)} and the "
            "digests and sums of all are kept"
        )
    elif kept.stored == "sample":
        how = "a sample of its elements and the digests of all are kept"
    else:
        how = "only its digest and summary are kept"
    return f"output {output.name}: {output.size_bytes:,} bytes, {how}"


def _rows(output: Output) -> str:
    if output.kind == "table":
        return f"{output.rows or 0:,} rows"
    return f"{output.row_sample.records if output.row_sample else 0:,} lines"
