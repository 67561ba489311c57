"""Whether a bundle's bytes are what was sealed, and its replays what they say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from reprobundle.errors import (
    BundleError,
    DigestError,
    DocumentError,
    LimitError,
    MissingMemberError,
    UnsafeNameError,
    UnsupportedVersionError,
)
from reprobundle.format.canonical import decode
from reprobundle.format.digests import digest_bytes, digest_stream
from reprobundle.format.findings import Finding
from reprobundle.format.reader import Bundle, ReplayFile, check_digests
from reprobundle.format.record import ContentMember, Output, Record
from reprobundle.verify.checks import finding

_BY_ERROR: tuple[tuple[type[BundleError], str], ...] = (
    (UnsupportedVersionError, "format-version"),
    (LimitError, "limits"),
    (DocumentError, "manifest"),
    (UnsafeNameError, "member-names"),
    (MissingMemberError, "membership"),
    (DigestError, "member-digest"),
    (BundleError, "container"),
)


def refusal(error: BundleError, file: str = "") -> Finding:
    """Return the finding for an error that opening a bundle raised.

    Args:
        error: What was raised.
        file: Name of the file, if it is not the bundle itself.
    """
    name = next(name for kind, name in _BY_ERROR if isinstance(error, kind))
    where = " ".join(part for part in (file, error.where) if part)
    return finding(name, "fail", bare_message(error), where=where, advice=error.advice)


def bare_message(error: BundleError) -> str:
    """Return the message of an error without the place it starts with."""
    return error.message.removeprefix(f"{error.where}: ")


def check_opened(bundle: Bundle) -> Iterator[Finding]:
    """Yield what opening `bundle` has proven already (V1 to V3)."""
    count = len(bundle.members)
    yield finding("container", "pass", f"{bundle.size_bytes:,} bytes")
    yield finding("limits", "pass")
    version = bundle.manifest.version
    if bundle.newer_minor:
        yield finding(
            "format-version",
            "not-checked",
            f"format {version} may state facts that this reader does not know",
            got=version,
            advice="update reprobundle",
        )
    else:
        yield finding("format-version", "pass", got=version)
    yield finding("manifest", "pass")
    yield finding("member-names", "pass", f"{count:,} members")
    yield finding("membership", "pass", f"{count:,} members")


def check_sealed_digests(
    bundle: Bundle,
    *,
    deep: bool,
    progress: Callable[[int], None] | None = None,
) -> Iterator[Finding]:
    """Yield the findings of V4.

    Args:
        bundle: An open bundle.
        deep: Whether to prove the chunk digests too.
        progress: Called with the number of plain bytes just checked.
    """
    damages = [
        damage
        for damage in check_digests(bundle, deep=deep, progress=progress)
        # Replay records are V6's business, which says what a wrong digest means.
        if not damage.path.startswith("replays/")
    ]
    for damage in damages:
        yield finding(
            "member-digest",
            "fail",
            f"bytes {damage.byte_start:,} to {damage.byte_end:,} are not what was "
            "sealed",
            where=damage.path,
            expected=damage.expected,
            got=damage.got,
            advice="obtain the bundle again",
        )
    chunked = sum(bool(member.chunks) for member in bundle.members.values())
    if not damages:
        yield finding("member-digest", "pass", f"{len(bundle.members):,} members")
    if not chunked:
        yield finding("chunk-digests", "not-applicable", "no member has chunks")
    elif deep and not damages:
        yield finding("chunk-digests", "pass", f"{chunked:,} members in chunks")
    elif deep:
        reason = "the members themselves differ"
        yield finding("chunk-digests", "not-checked", reason)
    else:
        yield finding(
            "chunk-digests",
            "not-checked",
            f"the chunk digests of {chunked:,} members were not compared; their "
            "whole digests were",
            advice="use --deep",
        )


def check_identity(bundle: Bundle, expected: str | None) -> Finding:
    """Return the finding of V7: is it the bundle the caller means?"""
    if not expected:
        return finding(
            "expect-id",
            "not-checked",
            "the bundle id was not compared with one obtained elsewhere: digests show "
            "that nothing was damaged, not who made it",
            got=bundle.id,
            advice="use --expect-id with the id the author states",
        )
    if bundle.id == expected.strip().lower():
        return finding("expect-id", "pass", got=bundle.id)
    return finding(
        "expect-id",
        "fail",
        "this is another bundle than the one expected",
        expected=expected,
        got=bundle.id,
    )


# --- sealed records -------------------------------------------------------------------


def check_run_members(bundle: Bundle, runs: Mapping[int, Record]) -> Iterator[Finding]:
    """Yield the findings of V5 about the members of every sealed run."""
    bad = False
    for number, record in sorted(runs.items()):
        for found in _sealed_run(bundle, number, record):
            bad = True
            yield found
    if not bad:
        count = sum(len(record.members) for record in runs.values())
        yield finding("run-members", "pass", f"{count:,} members of {len(runs)} runs")


def _sealed_run(bundle: Bundle, number: int, record: Record) -> Iterator[Finding]:
    top = f"runs/{number}/"
    there = {
        path.removeprefix(top)
        for path in bundle.members
        if path.startswith(top) and path != f"{top}record.json"
    }
    yield from _both_directions("run-members", top, record, there)
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
    yield from _references("run-members", bundle, top, record)
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


def _differs(stated: ContentMember, size_bytes: int, digest: str) -> bool:
    return (stated.size_bytes, stated.blake3) != (size_bytes, digest)


def _both_directions(
    name: str, top: str, record: Record, there: set[str]
) -> Iterator[Finding]:
    """Yield members that are stated but absent, present but unstated, or twice."""
    stated = [member.name for member in record.members]
    for missing in sorted(set(stated) - there):
        yield finding(
            name, "fail", "the record names it, it is not there", where=top + missing
        )
    for extra in sorted(there - set(stated)):
        yield finding(
            name, "fail", "it is there, the record does not name it", where=top + extra
        )
    if len(set(stated)) != len(stated):
        yield finding(name, "fail", "the record names a member twice", where=top)


def _references(
    name: str, bundle: Bundle, top: str, record: Record
) -> Iterator[Finding]:
    """Yield outputs whose content is not the one the record describes."""
    own = {member.name: member.blake3 for member in record.members}
    names = [output.name for output in record.outputs]
    if len(set(names)) != len(names):
        yield finding(name, "fail", "the record describes an output twice", where=top)
    for output in record.outputs:
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


def _held(output: Output, own: Mapping[str, str], bundle: Bundle) -> str | None:
    """Return the digest of the stored content, empty if absent, None if not stored."""
    if output.stored == "none":
        return None
    if output.stored == "here":
        return own.get(output.member, "")
    member = bundle.members.get(output.member)
    return member.blake3 if member is not None else ""


# --- replays --------------------------------------------------------------------------


def read_replay(
    bundle: Bundle, source: ReplayFile, replay_id: str
) -> tuple[Record | None, list[Finding]]:
    """Return a replay's record if all of V6 holds, and the findings.

    Args:
        bundle: The bundle it must be a replay of.
        source: Where the replay lies: that bundle, or a replay file.
        replay_id: Name of its folder below ``replays/``.
    """
    where = f"replays/{replay_id}/record.json"
    try:
        data = source.read_unsealed(where)
        if digest_bytes(data) != replay_id:
            return None, [_renamed(where, replay_id, digest_bytes(data))]
        record = decode(data, Record, where=where, rule="R-7.2")
    except DigestError as error:
        return None, [_renamed(where, error.expected, error.got)]
    except BundleError as error:
        return None, [
            finding("replay-record", "fail", bare_message(error), where=where)
        ]
    bad = [
        *_names_bundle(bundle, record, where),
        *_content(bundle, source, replay_id, record),
    ]
    if bad:
        return None, bad
    return record, [
        finding("replay-record", "pass", where=where),
        finding("replay-name", "pass", where=where),
        finding("replay-bundle", "pass", where=where),
        finding(
            "replay-members",
            "pass",
            f"{len(record.members):,} members",
            where=where,
        ),
    ]


def _renamed(where: str, expected: str, got: str) -> Finding:
    return finding(
        "replay-name",
        "fail",
        "the record was altered after the replay: its digest is not its name",
        where=where,
        expected=expected,
        got=got,
    )


def _names_bundle(bundle: Bundle, record: Record, where: str) -> Iterator[Finding]:
    if record.bundle != bundle.id:
        yield finding(
            "replay-bundle",
            "fail",
            "it is a replay of another bundle",
            where=where,
            expected=bundle.id,
            got=record.bundle or "no bundle",
        )
    if record.role != "replay":
        yield finding(
            "replay-record",
            "fail",
            "an attached record must be a replay",
            where=where,
            expected="replay",
            got=record.role,
        )


def _content(
    bundle: Bundle, source: ReplayFile, replay_id: str, record: Record
) -> Iterator[Finding]:
    top = f"replays/{replay_id}/"
    there = {
        name.removeprefix(top)
        for name in source.replay_entries(replay_id)
        if name != f"{top}record.json"
    }
    yield from _both_directions("replay-members", top, record, there)
    for stated in record.members:
        if stated.name not in there:
            continue
        got = _digest_of(source, top + stated.name)
        if got != stated.blake3:
            yield finding(
                "replay-members",
                "fail",
                "it was altered after the replay",
                where=top + stated.name,
                expected=stated.blake3,
                got=got,
            )
    yield from _references("replay-members", bundle, top, record)


def _digest_of(source: ReplayFile, name: str) -> str:
    try:
        with source.open_unsealed(name) as stream:
            return digest_stream(stream)
    except BundleError as error:
        return error.message
