"""What a bundle holds: the manifest, whose digest is the bundle's id.

It states facts about plain content alone (path, size, digests, role), never where or
how a member is stored, so another compressor or another number of threads gives the
same id. It holds no time, host or tool version either: the run record does.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

import msgspec

from reprobundle.errors import (
    DocumentError,
    LimitError,
    NotABundleError,
    UnsupportedVersionError,
)
from reprobundle.format import limits
from reprobundle.format.canonical import check_size_and_depth, decode, reason
from reprobundle.format.digests import digest_bytes
from reprobundle.format.names import check_names

MANIFEST_PATH = "manifest.json"
README_PATH = "README.txt"
CHECKSUMS_PATH = "B3SUMS"
FORMAT: Literal["reprobundle"] = "reprobundle"
VERSION = "1.0"

Role = Literal[
    "readme",
    "project",
    "input",
    "stand-in",
    "external",
    "lock",
    "policy",
    "record",
    "output",
    "log",
    "series",
    "checksums",
]

GROUPS: dict[str, frozenset[str]] = {
    README_PATH: frozenset({"readme"}),
    "project": frozenset({"project", "input"}),
    "inputs": frozenset({"input"}),
    "stand-ins": frozenset({"stand-in"}),
    "external": frozenset({"external"}),
    "lock": frozenset({"lock"}),
    "policy.json": frozenset({"policy"}),
    "runs": frozenset({"record", "output", "log", "series"}),
    CHECKSUMS_PATH: frozenset({"checksums"}),
}
"""First component of a member's path → the roles it may have, in layout order."""

STAND_INS = "stand-ins/"
"""Where samples lie; what follows is the name of the withheld file."""

_ROLES_BY_NUMBER = tuple(GROUPS.values())
_GROUP_NUMBERS = {group: number for number, group in enumerate(GROUPS)}
_FILES = frozenset({README_PATH, "policy.json", CHECKSUMS_PATH})
_RECORD = re.compile(r"runs/[1-9][0-9]*/record\.json")
_VERSION = re.compile(r"(0|[1-9][0-9]{0,5})\.(0|[1-9][0-9]{0,5})")

ALWAYS_RAW = frozenset({"readme", "lock", "policy", "record", "checksums"})
"""Roles whose content every reader sees, also one without zstd."""

READABLE_PROJECT_BYTES = 1 << 20
"""The program's own files are stored as they are up to this size, for the same end."""

Digest = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$", max_length=64)]
Size = Annotated[int, msgspec.Meta(ge=0, le=limits.FILE_BYTES)]


class Member(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    gc=False,
):
    """One sealed file.

    Attributes:
        path: Its name in the bundle.
        size_bytes: Size of its plain content.
        blake3: Digest of its plain content, as ``b3sum`` prints it.
        role: What it is to the run.
        executable: Whether it is unpacked with the execute bit.
        chunks: BLAKE3 of each 4 MiB of plain content, in order, if it is larger than
            one chunk; else empty.
    """

    path: str
    size_bytes: Size
    blake3: Digest
    role: Role
    executable: bool = False
    chunks: tuple[Digest, ...] = ()


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The last sealed file, ``manifest.json``: every other sealed file, in order.

    Attributes:
        format: Always ``reprobundle``.
        version: Version of the format, ``major.minor``.
        chunk_bytes: Size of a chunk, always 4 MiB.
        members: All other sealed files, in layout order.
    """

    format: Literal["reprobundle"] = FORMAT
    version: str = VERSION
    chunk_bytes: Literal[4194304] = 4194304
    members: tuple[Member, ...]


def decode_manifest(data: bytes) -> Manifest:
    """Return the manifest in `data`, proven consistent in itself.

    A newer minor version may add fields, which are left out here; everything that
    this version knows is checked all the same.

    Raises:
        NotABundleError: The document belongs to something else.
        UnsupportedVersionError: Its major version is not 1.
        DocumentError: It breaks its schema, its canonical form, or contradicts itself.
        LimitError: It states too many or too large members.
        UnsafeNameError: A path is unsafe, or two of them are twins.
    """
    version = decode_version(data)
    if is_newer_minor(version):
        manifest = _decode_newer_minor(data)
    else:
        manifest = decode(
            data, Manifest, where=MANIFEST_PATH, rule="R-6.6", canonical=True
        )
    check_members(manifest.members)
    return manifest


def decode_version(data: bytes) -> str:
    """Return the version that the manifest in `data` states.

    Raises:
        NotABundleError: The document is no manifest of a bundle.
        UnsupportedVersionError: Its major version is not 1.
        DocumentError: The version is malformed.
    """
    check_size_and_depth(data, where=MANIFEST_PATH, limit_bytes=limits.DOCUMENT_BYTES)
    try:
        head = msgspec.json.decode(data, type=_Head)
    except (ValueError, RecursionError) as error:
        message = f"no manifest of a bundle: {reason(error)}"
        rule = "R-6.6" if isinstance(error, msgspec.ValidationError) else "R-6.4"
        raise DocumentError(message, rule=rule, where=MANIFEST_PATH) from error
    if head.format != FORMAT:
        raise NotABundleError(
            f"format is {head.format[:40]!r}, expected {FORMAT!r}",
            rule="R-6.5",
            where=MANIFEST_PATH,
        )
    match = _VERSION.fullmatch(head.version)
    if match is None:
        raise DocumentError(
            f"version {head.version[:40]!r} is not of the form 1.0",
            rule="R-6.6",
            where=MANIFEST_PATH,
        )
    if match[1] != VERSION.split(".")[0]:
        raise UnsupportedVersionError(
            f"this bundle follows format {head.version}, this reader knows {VERSION}",
            version=head.version,
            rule="R-6.5",
        )
    return head.version


def is_newer_minor(version: str) -> bool:
    """Return whether a 1.x `version` may hold fields this reader does not know."""
    return int(version.split(".")[1]) > int(VERSION.split(".")[1])


def check_members(members: Sequence[Member]) -> None:
    """Refuse members that are unsafe, misplaced, repeated or contradict themselves.

    Raises:
        BundleError: One of its kinds, see `decode_manifest`.
    """
    if len(members) > limits.MEMBER_COUNT:
        message = f"{len(members):,} members, at most {limits.MEMBER_COUNT:,}"
        raise LimitError(message, rule="R-6.8", where=MANIFEST_PATH)
    if sum(member.size_bytes for member in members) > limits.FILE_BYTES:
        message = f"the members are larger than {limits.FILE_BYTES:,} bytes together"
        raise LimitError(message, rule="R-6.8", where=MANIFEST_PATH)
    check_names(member.path for member in members)
    keys = []
    for member in members:
        keys.append(check_placed(member.path, member.role))
        if member.chunks or member.size_bytes > limits.CHUNK_BYTES:
            _check_chunks(member)
    if keys != sorted(keys):
        raise DocumentError(
            "the members are not in layout order", rule="R-6.10", where=MANIFEST_PATH
        )
    _check_checksums(members)


def layout_key(path: str) -> tuple[int, bytes]:
    """Return the key that sorts sealed paths into the order in which they lie.

    Raises:
        DocumentError: The path belongs to no group.
    """
    group = path.partition("/")[0]
    number = _GROUP_NUMBERS.get(group)
    if number is None or (group in _FILES) != (group == path):
        raise DocumentError(
            f"no place for it: a sealed path is one of {', '.join(GROUPS)}",
            rule="R-6.9",
            where=path,
        )
    return number, path.encode()


def check_placed(path: str, role: str) -> tuple[int, bytes]:
    """Return the layout key of a path, after proving its place and its role.

    Raises:
        DocumentError: It says which of both.
    """
    key = layout_key(path)
    is_record = path.startswith("runs/") and bool(_RECORD.fullmatch(path))
    if role not in _ROLES_BY_NUMBER[key[0]] or is_record != (role == "record"):
        message = f"role {role[:20]!r} does not belong there"
        raise DocumentError(message, rule="R-6.9", where=path)
    return key


def checksum_lines(members: Iterable[Member]) -> bytes:
    """Return what ``B3SUMS`` must hold: a line for each member but itself."""
    return "".join(
        f"{member.blake3}  {member.path}\n"
        for member in members
        if member.path != CHECKSUMS_PATH
    ).encode()


class _Head(msgspec.Struct, frozen=True, kw_only=True):
    """As much of a manifest as every version keeps."""

    format: str
    version: str


def _decode_newer_minor(data: bytes) -> Manifest:
    raw = decode(data, dict[str, Any], where=MANIFEST_PATH, rule="R-6.6")
    known = {name: raw[name] for name in Manifest.__struct_fields__ if name in raw}
    members = known.get("members")
    if isinstance(members, list):
        known["members"] = [_known_fields(member) for member in members]
    try:
        return msgspec.convert(known, Manifest)
    except msgspec.ValidationError as error:
        raise DocumentError(reason(error), rule="R-6.6", where=MANIFEST_PATH) from error


def _known_fields(member: object) -> object:
    if not isinstance(member, dict):
        return member
    return {name: member[name] for name in Member.__struct_fields__ if name in member}


def _check_chunks(member: Member) -> None:
    count = -(-member.size_bytes // limits.CHUNK_BYTES)
    expected = count if count > 1 else 0
    if len(member.chunks) != expected:
        raise DocumentError(
            f"{len(member.chunks)} chunk digests for {member.size_bytes:,} bytes, "
            f"expected {expected}",
            rule="R-6.11",
            where=member.path,
        )


def _check_checksums(members: Sequence[Member]) -> None:
    paths = {member.path: member for member in members}
    for path in (README_PATH, CHECKSUMS_PATH):
        if path not in paths:
            raise DocumentError(
                f"it does not list {path}", rule="R-6.12", where=MANIFEST_PATH
            )
    lines = checksum_lines(members)
    checksums = paths[CHECKSUMS_PATH]
    if digest_bytes(lines) != checksums.blake3 or len(lines) != checksums.size_bytes:
        raise DocumentError(
            "its digest is not that of the list the manifest leads to",
            rule="R-6.12",
            where=CHECKSUMS_PATH,
        )
