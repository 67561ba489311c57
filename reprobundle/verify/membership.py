"""Whether a run record and the members that belong to it agree (V5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reprobundle.errors import BundleError
from reprobundle.format.canonical import decode
from reprobundle.format.findings import Finding
from reprobundle.format.reader import Bundle
from reprobundle.format.record import ContentMember, MemorySeries, Output, Record
from reprobundle.outputs.row_places import BLOCK_BYTES, count_of_places
from reprobundle.verify.checks import finding
from reprobundle.verify.sealed import POLICY


def check_run_members(bundle: Bundle, runs: Mapping[int, Record]) -> Iterator[Finding]:
    """Yield the findings of V5 about the members of every sealed run."""
    bad = False
    for found in _stand_ins(bundle, runs):
        bad = True
        yield found
    for number, record in sorted(runs.items()):
        for found in _sealed_run(bundle, number, record):
            bad = True
            yield found
    for found in _without_record(bundle, runs):
        bad = True
        yield found
    if not bad:
        count = sum(len(record.members) for record in runs.values())
        yield finding("run-members", "pass", f"{count:,} members of {len(runs)} runs")


def _without_record(bundle: Bundle, runs: Mapping[int, Record]) -> Iterator[Finding]:
    tops = tuple(f"runs/{number}/" for number in runs)
    for path in bundle.members:
        if path.startswith("runs/") and not path.startswith(tops):
            yield finding(
                "run-members", "fail", "it belongs to no run record", where=path
            )


def _stand_ins(bundle: Bundle, runs: Mapping[int, Record]) -> Iterator[Finding]:
    """Yield samples that stand for nothing, and files both withheld and held."""
    withheld = {one.name for record in runs.values() for one in record.withheld}
    results = {
        output.name
        for record in runs.values()
        for output in record.outputs
        if output.stored == "withheld"
    }
    for path in bundle.members:
        group, _, name = path.partition("/")
        if group == "stand-ins" and name not in withheld | results:
            yield finding(
                "run-members", "fail", "no file is withheld in its place", where=path
            )
        elif group in ("project", "inputs") and name in withheld:
            yield finding(
                "run-members",
                "fail",
                "a record states that the bundle does not hold this file",
                where=path,
            )


def _sealed_run(bundle: Bundle, number: int, record: Record) -> Iterator[Finding]:
    top = f"runs/{number}/"
    there = {
        path.removeprefix(top)
        for path in bundle.members
        if path.startswith(top) and path != f"{top}record.json"
    }
    yield from check_presence("run-members", top, record, there)
    for stated in record.members:
        member = bundle.members.get(top + stated.name)
        if member is not None and _differs(stated, member.size_bytes, member.blake3):
            yield finding(
                "run-members",
                "fail",
                "the record states another digest than the manifest",
                where=top + stated.name,
                expected=stated.blake3,
                got=member.blake3,
            )
    yield from _whole(top, record)
    yield from check_references("run-members", bundle, top, record)
    where = top + record.memory.series
    if record.memory.series in there and where not in bundle.absent:
        yield from check_series("run-members", where, bundle.read(where), record)
    for read in record.reads:
        held = bundle.members.get(read.member) if read.member else None
        if read.member and (held is None or held.blake3 != read.blake3):
            yield finding(
                "run-members",
                "fail",
                "the bundle does not hold the input that the run read",
                where=read.member,
                expected=read.blake3,
                got=held.blake3 if held else "no such member",
            )


def _whole(top: str, record: Record) -> Iterator[Finding]:
    """Yield members of a sealed run that are said to lie elsewhere: only a replay's."""
    for stated in record.members:
        if stated.sealed:
            yield finding(
                "run-members",
                "fail",
                "a sealed run keeps its members itself, this refers to another one",
                where=top + stated.name,
                got=stated.sealed,
            )


def check_series(
    name: str, where: str, data: bytes, record: Record
) -> Iterator[Finding]:
    """Yield what is wrong with the memory series of `record`."""
    try:
        series = decode(data, MemorySeries, where=where, rule="R-7.2")
    except BundleError as error:
        yield finding(name, "fail", error.message, where=where)
        return
    stated, held = record.memory.samples, len(series.samples)
    if held != stated:
        reason = "the memory series does not hold as many samples as its record states"
        yield finding(name, "fail", reason, where=where, expected=stated, got=held)


def _differs(stated: ContentMember, size_bytes: int, digest: str) -> bool:
    return (stated.size_bytes, stated.blake3) != (size_bytes, digest)


def check_presence(
    name: str, top: str, record: Record, there: set[str]
) -> Iterator[Finding]:
    """Yield members that are stated but absent, present but unstated, or twice."""
    stated = [member.name for member in record.members]
    beside = {member.name for member in record.members if not member.sealed}
    for missing in sorted(beside - there):
        yield finding(
            name, "fail", "the record names it, it is not there", where=top + missing
        )
    for extra in sorted(there - beside):
        yield finding(
            name, "fail", "it is there, the record does not name it", where=top + extra
        )
    if len(set(stated)) != len(stated):
        yield finding(name, "fail", "the record names a member twice", where=top)


def check_shared(
    name: str, bundle: Bundle, top: str, record: Record
) -> Iterator[Finding]:
    """Yield members of a replay that refer to a sealed member of other content."""
    for stated in record.members:
        if not stated.sealed:
            continue
        held = bundle.members.get(stated.sealed)
        if stated.name == record.memory.series:
            yield finding(
                name,
                "fail",
                "two runs never have one memory series: this is that of another run",
                where=top + stated.name,
                got=stated.sealed,
            )
        elif held is None or _differs(stated, held.size_bytes, held.blake3):
            yield finding(
                name,
                "fail",
                "it refers to a sealed member that is not there or has other content",
                where=f"{top}{stated.name} -> {stated.sealed}",
                expected=stated.blake3,
                got=held.blake3 if held else "no such member",
            )


def check_references(
    name: str, bundle: Bundle, top: str, record: Record
) -> Iterator[Finding]:
    """Yield outputs whose content is not the one the record describes."""
    own = {member.name: member.blake3 for member in record.members}
    sizes = {member.name: member.size_bytes for member in record.members}
    names = [output.name for output in record.outputs]
    if len(set(names)) != len(names):
        yield finding(name, "fail", "the record describes an output twice", where=top)
    for output in record.outputs:
        if output.stored == "withheld" and (output.member or output.arrays_member):
            yield finding(
                name,
                "fail",
                "the record states that its content is withheld, and names a member",
                where=f"{top}{output.name}",
                got=output.member or output.arrays_member,
            )
        held = _held(output, own, bundle)
        if held is not None and held != output.blake3:
            yield finding(
                name,
                "fail",
                "the content stored for this output is another one",
                where=f"{top}{output.name}",
                expected=output.blake3,
                got=held or "no such member",
            )
        size_bytes = sizes.get(output.member, output.size_bytes)
        if output.stored == "here" and size_bytes != output.size_bytes:
            yield finding(
                name,
                "fail",
                "the record states two sizes for this output",
                where=f"{top}{output.name}",
                expected=output.size_bytes,
                got=size_bytes,
            )
        yield from _sample(name, bundle, top, output, own)
        tensors = output.arrays_member
        if tensors and tensors not in own and tensors not in bundle.members:
            yield finding(
                name, "fail", "the output's tensors are not there", where=top + tensors
            )
    series = record.memory.series
    if series and series not in own:
        yield finding(
            name, "fail", "the memory series is not there", where=top + series
        )


def _sample(
    name: str, bundle: Bundle, top: str, output: Output, own: Mapping[str, str]
) -> Iterator[Finding]:
    """Yield what is wrong with a sample as far as the record alone tells."""
    if output.stored != "sample":
        return
    if output.member not in own and output.member not in bundle.members:
        where = top + output.member
        yield finding(name, "fail", "the output's sample is not there", where=where)
    policy = bundle.members.get(POLICY)
    if policy is not None and output.sample_key != policy.blake3:
        yield finding(
            name,
            "fail",
            "the sample was not taken at the places that this bundle's policy decides",
            where=f"{top}{output.name}",
            expected=policy.blake3,
            got=output.sample_key or "no policy",
        )
    yield from _sampled_rows(name, top, output)


def _sampled_rows(name: str, top: str, output: Output) -> Iterator[Finding]:
    """Yield what is wrong with the description of an output kept as sampled rows."""
    has_rows = output.kind in ("table", "document", "text", "log")
    known = output.row_sample
    where = f"{top}{output.name}"
    if known is None:
        if has_rows:
            yield finding(
                name, "fail", "the record says nothing about all its rows", where=where
            )
        return
    blocks = -(-output.size_bytes // BLOCK_BYTES)
    if len(known.blocks) != blocks:
        yield finding(
            name,
            "fail",
            "the sample has digests for another number of blocks",
            where=where,
            expected=blocks,
            got=len(known.blocks),
        )
    # The replay takes as many as the reference did, whose size may be a little other.
    least = count_of_places(known.records, 2 * output.size_bytes)
    if not least <= known.places < max(1, known.records):
        yield finding(
            name,
            "fail",
            "the sample holds too few or too many rows",
            where=where,
            expected=f"at least {least:,} and below {known.records:,}",
            got=known.places,
        )


def _held(output: Output, own: Mapping[str, str], bundle: Bundle) -> str | None:
    """Return the digest of the stored content, empty if absent, None if not stored."""
    if output.stored in ("none", "sample", "withheld"):
        return None
    if output.stored == "here":
        return own.get(output.member, "")
    member = bundle.members.get(output.member)
    return member.blake3 if member is not None else ""
