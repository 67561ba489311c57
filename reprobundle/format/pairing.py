"""Match the entries of an archive with what they are: sealed members, or replays."""

from __future__ import annotations

import re
from collections.abc import Sequence

from reprobundle.errors import (
    BundleError,
    LimitError,
    MissingMemberError,
    StructureError,
)
from reprobundle.format import limits
from reprobundle.format.archive import Entry
from reprobundle.format.content import Content
from reprobundle.format.manifest import ALWAYS_RAW, MANIFEST_PATH, Member
from reprobundle.format.source import ByteSource

RECORD_NAME = "record.json"

_SIGNATURE = re.compile(r"signatures/[^/]+")
_ACCEPTANCE = re.compile(r"acceptance/([0-9a-f]{64})\.json")
_REPLAY = re.compile(r"replays/([0-9a-f]{64})/(.+)", re.DOTALL)


def pair_members(
    file: ByteSource, members: Sequence[Member], entries: Sequence[Entry]
) -> dict[str, Content]:
    """Return the content of each member, by path; every entry belongs to one.

    Args:
        file: The open archive.
        members: The members of a proven manifest.
        entries: The proven entries before ``manifest.json``.

    Raises:
        MissingMemberError: A member has no entry.
        StructureError: An entry has no member, lies at another place than the
            manifest's order says, could belong to two, or has an impossible size.
    """
    left = {entry.name: entry for entry in entries}
    paths = {member.path for member in members}
    contents: dict[str, Content] = {}
    order = []
    for member in members:
        entry = left.pop(member.path, None)
        if entry is None:
            name = f"{member.path}.zst"
            entry = left.pop(name, None)
            if entry is None:
                raise MissingMemberError(
                    "listed in the manifest, but not in the file",
                    rule="R-4.15",
                    where=member.path,
                )
            if name in paths:
                raise _wrong(name, "could be two members of the manifest", "R-4.18")
        order.append(entry)
        contents[member.path] = _content(file, member, entry)
    for name in left:
        raise _wrong(name, "in the file, but not listed in the manifest", "R-4.16")
    for due, entry in zip(order, entries, strict=True):
        if due is not entry:
            raise _wrong(entry.name, f"{due.name!r} is due at this place", "R-4.17")
    return contents


def group_replays(entries: Sequence[Entry]) -> dict[str, tuple[str, ...]]:
    """Return the names of each replay's entries, by replay id, in order.

    Args:
        entries: The proven entries outside the seal.

    Raises:
        LimitError: There are more of a kind than a verification judges.
        StructureError: An entry is no signature, no acceptance record and no part of a
            replay, or a replay is scattered, out of order or without its record.
    """
    groups: dict[str, list[str]] = {}
    last = ""
    for entry in entries:
        check_aligned(entry)
        match = _REPLAY.fullmatch(entry.name)
        if match is None:
            if not _is_alone(entry.name):
                raise _misplaced(entry)
            last = ""
            continue
        replay_id = match[1]
        if replay_id != last:
            if replay_id in groups:
                raise _wrong(entry.name, "apart from the rest of its replay", "R-4.27")
            if match[2] != RECORD_NAME:
                raise _wrong(entry.name, f"{RECORD_NAME} must come first", "R-4.27")
            groups[replay_id] = []
            last = replay_id
        groups[replay_id].append(entry.name)
    check_attached(len(groups), sum(bool(acceptance_id(e.name)) for e in entries))
    for names in groups.values():
        if names[1:] != sorted(names[1:], key=str.encode):
            raise _wrong(names[0], "the files behind it are not sorted", "R-4.27")
    return {replay_id: tuple(names) for replay_id, names in groups.items()}


def check_attached(replays: int, acceptances: int, advice: str = "") -> None:
    """Refuse more replays or acceptance records than one file may hold.

    Args:
        replays: How many there are.
        acceptances: How many acceptance records.
        advice: What to do about it.

    Raises:
        LimitError: There are too many.
    """
    for kind, count, most in (
        ("replays", replays, limits.REPLAY_COUNT),
        ("acceptance records", acceptances, limits.ACCEPTANCE_COUNT),
    ):
        if count > most:
            message = f"{count:,} {kind} are attached, the limit is {most:,}"
            raise LimitError(message, rule="R-4.34", advice=advice)


def record_id(name: str) -> str:
    """Return the digest that a file outside the seal is named by, else nothing.

    The record of a replay is named so, and an acceptance record.
    """
    match = _REPLAY.fullmatch(name)
    if match:
        return match[1] if match[2] == RECORD_NAME else ""
    return acceptance_id(name)


def acceptance_id(name: str) -> str:
    """Return the id if `name` is that of an acceptance record, else nothing."""
    match = _ACCEPTANCE.fullmatch(name)
    return match[1] if match else ""


def acceptance_name(acceptance_id: str) -> str:
    """Return the name of the entry that holds an acceptance record."""
    return f"acceptance/{acceptance_id}.json"


def _is_alone(name: str) -> bool:
    return bool(_SIGNATURE.fullmatch(name) or _ACCEPTANCE.fullmatch(name))


def _content(file: ByteSource, member: Member, entry: Entry) -> Content:
    compressed = entry.name != member.path
    if not compressed and entry.size_bytes != member.size_bytes:
        message = f"{entry.size_bytes:,} bytes, the manifest says {member.size_bytes:,}"
        raise _wrong(member.path, message, "R-4.19")
    if compressed:
        _check_compressed(member, entry)
    else:
        check_aligned(entry)
    return Content(
        file,
        member.path,
        entry,
        member.size_bytes,
        compressed,
        member.blake3,
        member.chunks,
    )


def check_aligned(entry: Entry) -> None:
    """Refuse an entry of more than 16 KiB whose content does not start aligned.

    Raises:
        StructureError: It could not be mapped into memory in place.
    """
    if (
        entry.size_bytes > limits.RAW_BYTES
        and entry.data_offset % limits.ALIGN_BYTES != 0
    ):
        message = f"content starts at byte {entry.data_offset:,}, not a multiple of 64"
        raise _wrong(entry.name, message, "R-4.13")


def _check_compressed(member: Member, entry: Entry) -> None:
    if member.role in ALWAYS_RAW or member.size_bytes <= limits.RAW_BYTES:
        raise _wrong(entry.name, "must be readable without zstd", "R-4.23")
    count = -(-member.size_bytes // limits.CHUNK_BYTES)
    most = member.size_bytes + count * (limits.FRAME_BYTES - limits.CHUNK_BYTES)
    if entry.size_bytes > most:
        message = f"{entry.size_bytes:,} bytes for {member.size_bytes:,} plain ones"
        raise _wrong(entry.name, message, "R-4.19")


def _misplaced(entry: Entry) -> BundleError:
    if entry.name == MANIFEST_PATH or not entry.name.startswith(
        ("replays/", "signatures/", "acceptance/")
    ):
        return _wrong(entry.name, "it lies behind the manifest, unsealed", "R-4.26")
    message = "no signature, no acceptance record, no part of a replay"
    return _wrong(entry.name, message, "R-4.26")


def _wrong(name: str, message: str, rule: str) -> StructureError:
    return StructureError(message, rule=rule, where=name)
