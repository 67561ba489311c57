"""Open a bundle: prove its structure first, then give out checked content."""

from __future__ import annotations

import contextlib
import io
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import BinaryIO, TypeVar, cast

from reprobundle.errors import (
    AbsentMemberError,
    BundleError,
    DocumentError,
    LimitError,
    MissingMemberError,
    NotABundleError,
    StructureError,
)
from reprobundle.format import limits
from reprobundle.format.archive import LOCAL, Entry
from reprobundle.format.content import Content, ContentStream
from reprobundle.format.digests import digest_bytes
from reprobundle.format.extraction import extract
from reprobundle.format.integrity import Damage, check_digests
from reprobundle.format.journal import (
    BeforeChange,
    before_change,
    end_state,
    explain_interrupted,
)
from reprobundle.format.manifest import (
    MANIFEST_PATH,
    Manifest,
    Member,
    decode_manifest,
    decode_version,
    is_newer_minor,
)
from reprobundle.format.names import check_names
from reprobundle.format.pairing import (
    acceptance_id,
    check_aligned,
    group_replays,
    pair_members,
    record_id,
)
from reprobundle.format.part import PART_PATH, Part, decode_part
from reprobundle.format.source import ByteSource, Place, open_source, read_exactly
from reprobundle.format.structure import (
    Directory,
    derive_structure,
    prove_entry,
    prove_structure,
    read_directory,
)

__all__ = [
    "Bundle",
    "Damage",
    "ReplayFile",
    "check_digests",
    "extract",
    "open_any",
    "open_bundle",
    "open_listing",
    "open_replay_file",
]

_BUFFER_BYTES = 1 << 16

Opened = TypeVar("Opened", bound="ReplayFile")


class ReplayFile:
    """An open archive of replays whose structure has been proven.

    Attributes:
        path: The file, here or elsewhere.
        size_bytes: Its size.
        entries: Every entry of the archive, in the order in which they lie.
        replay_ids: Record ids of its replays, in the order of attaching.
        signatures: Names of the unsealed files below ``signatures/``.
        acceptance_ids: Ids of the attached acceptance records, in the order of
            attaching.
        interrupted: Whether a change of the file is not complete, so that this is how
            it was before.
    """

    def __init__(
        self,
        path: Path | Place,
        file: ByteSource,
        entries: Sequence[Entry],
        sealed_count: int,
    ) -> None:
        """Take an open file; `entries` from `sealed_count` on are outside the seal."""
        self.path = path
        self.size_bytes = file.size_bytes
        self.interrupted = isinstance(file, BeforeChange)
        self.entries = tuple(entries)
        self._file = file
        unsealed = entries[sealed_count:]
        self._replays = group_replays(_behind_part(unsealed, sealed_count))
        if not sealed_count and not self._replays:
            raise NotABundleError("a ZIP file without a replay", rule="R-4.27")
        self._unsealed = {
            entry.name: Content(file, entry.name, entry, entry.size_bytes)
            for entry in unsealed
        }
        self.replay_ids = tuple(self._replays)
        self.signatures = tuple(
            name for name in self._unsealed if name.startswith("signatures/")
        )
        self.acceptance_ids = tuple(filter(None, map(acceptance_id, self._unsealed)))
        if self.acceptance_ids and not sealed_count:
            message = "a replay file holds replays only, and this an acceptance record"
            raise StructureError(message, rule="R-4.27")

    def __enter__(self: Opened) -> Opened:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; streams of it cannot be read any more."""
        self._file.close()

    def replay_entries(self, replay_id: str) -> tuple[str, ...]:
        """Return the full names (``replays/<id>/…``) of an attached replay's files.

        Raises:
            MissingMemberError: No such replay is attached.
        """
        if replay_id not in self._replays:
            raise MissingMemberError(
                f"no replay {replay_id[:64]!r} is attached", rule="R-4.31"
            )
        return self._replays[replay_id]

    def read_unsealed(
        self, name: str, *, limit_bytes: int = limits.DOCUMENT_BYTES
    ) -> bytes:
        """Return the content of a file outside the seal.

        A replay's ``record.json`` and an acceptance record are compared with the id;
        all else is for the caller to compare with that record.

        Raises:
            MissingMemberError: There is no such file.
            LimitError: It is larger than `limit_bytes`.
            DigestError: It is a record that does not have the digest it is named by.
        """
        content = self._find_unsealed(name)
        _check_size(content, limit_bytes)
        data = content.read()
        content.check(data, record_id(name))
        return data

    def open_unsealed(self, name: str) -> BinaryIO:
        """Return a seekable stream of a file outside the seal, nothing compared.

        Raises:
            MissingMemberError: There is no such file.
        """
        return _stream(self._find_unsealed(name))

    def unsealed_contents(self) -> Mapping[str, Content]:
        """Return the contents outside the seal, by name."""
        return MappingProxyType(self._unsealed)

    @property
    def anchor(self) -> Content:
        """What tells this file from every other one: here its first replay's record."""
        first = self.replay_ids[0]
        return self._unsealed[self._replays[first][0]]._replace(digest=first)

    def _find_unsealed(self, name: str) -> Content:
        if name not in self._unsealed:
            raise MissingMemberError(
                f"no file {name!r} outside the seal", rule="R-4.31"
            )
        return self._given_out(self._unsealed[name])

    def _given_out(self, content: Content) -> Content:
        """Return `content`, whose place in the file is proven."""
        return content


class Bundle(ReplayFile):
    """An open bundle; made by `open_bundle` or `open_listing`.

    Attributes:
        path: The file, here or elsewhere.
        id: Bundle id, BLAKE3 of the manifest.
        manifest: The manifest.
        members: Path → member, in layout order, without the manifest itself.
        size_bytes: Size of the bundle file.
        newer_minor: Whether it follows a newer 1.x and may hold facts that this
            reader does not know.
        proven: Whether all of its structure has been proven. If not, only the
            directory was, and the header before a content is when that is asked for.
        replay_ids: Record ids of the attached replays, in the order of attaching.
        signatures: Names of the unsealed files below ``signatures/``.
        acceptance_ids: Ids of the attached acceptance records, in that order too.
        interrupted: As in `ReplayFile`.
        part: What it says about the other part, if it is a part of a bundle.
        absent: The members that lie in the other part; `content` refuses them.
    """

    def __init__(
        self,
        path: Path | Place,
        file: ByteSource,
        entries: Sequence[Entry],
        *,
        proven: bool = True,
    ) -> None:
        """Take an open file whose entries have been proven, or its directory only."""
        self.proven = proven
        position = [entry.name for entry in entries].index(MANIFEST_PATH)
        super().__init__(path, file, entries, position + 1)
        entry = entries[position]
        check_aligned(entry)
        content = Content(file, MANIFEST_PATH, entry, entry.size_bytes)
        _check_size(content, limits.DOCUMENT_BYTES)
        data = self._given_out(content).read()
        if zlib.crc32(data) != entry.crc32:
            # Nothing else seals the manifest but the id, which comes from elsewhere.
            raise StructureError(
                "its ZIP checksum is another", rule="R-4.24", where=MANIFEST_PATH
            )
        self.id = digest_bytes(data)
        self.manifest: Manifest = decode_manifest(data)
        self.newer_minor = is_newer_minor(self.manifest.version)
        members = self.manifest.members
        self.members: Mapping[str, Member] = MappingProxyType(
            {member.path: member for member in members}
        )
        self.part: Part | None = self._read_part()
        self.absent = frozenset(self.part.absent if self.part else ())
        self._sealed = self._paired(members, entries[:position])
        self._manifest = content._replace(digest=self.id)

    def read(self, path: str, *, limit_bytes: int = limits.DOCUMENT_BYTES) -> bytes:
        """Return the plain content of a sealed member, its digest checked.

        Raises:
            MissingMemberError: The bundle has no such member.
            LimitError: It is larger than `limit_bytes`.
            DigestError: Its content is not what was sealed.
            StructureError: It cannot be decompressed.
        """
        content = self.content(path)
        _check_size(content, limit_bytes)
        return content.read()

    def open(self, path: str) -> BinaryIO:
        """Return a seekable stream of the plain content of a sealed member.

        Each chunk is checked against its sealed digest before a byte of it is given
        out. At most one chunk is held.

        Raises:
            MissingMemberError: The bundle has no such member. Reading may raise
                `DigestError` and `StructureError`.
        """
        return _stream(self.content(path))

    @property
    def anchor(self) -> Content:
        """The manifest: what tells this bundle from every other one."""
        return self._manifest

    def content(self, path: str) -> Content:
        """Return the content of a sealed member, or of the manifest.

        Raises:
            MissingMemberError: The bundle has no such member.
        """
        if path == MANIFEST_PATH:
            return self._manifest
        if path in self.absent:
            raise self._elsewhere(path)
        if path not in self._sealed:
            raise MissingMemberError(f"no member {path!r}", rule="R-4.31")
        return self._given_out(self._sealed[path])

    def _paired(
        self, members: Sequence[Member], entries: Sequence[Entry]
    ) -> dict[str, Content]:
        """Return the content of each member that has to be here."""
        for entry in entries:
            is_member = entry.name in self.members
            path = entry.name if is_member else entry.name.removesuffix(".zst")
            if path in self.absent:
                message = f"{PART_PATH} says that it lies in the other part"
                raise StructureError(message, rule="R-4.41", where=entry.name)
        here = [member for member in members if member.path not in self.absent]
        return pair_members(self._file, here, entries)

    def _read_part(self) -> Part | None:
        if PART_PATH not in self._unsealed:
            return None
        data = self.read_unsealed(PART_PATH)
        return decode_part(data, self.id, self.manifest.members)

    def _elsewhere(self, path: str) -> AbsentMemberError:
        other = self.part.other if self.part else None
        where = f"{other.name!r} (blake3 {other.blake3[:12]}…)" if other else "part 1"
        return AbsentMemberError(
            f"this is one part of a bundle, and the member lies in the other, {where}",
            rule="R-4.41",
            where=path,
            advice="put both together with: reprobundle join PART1 PART2 -o BUNDLE",
        )

    def _given_out(self, content: Content) -> Content:
        if not self.proven:
            prove_entry(self._file, content.entry)
        return content


def open_bundle(path: Path | Place) -> Bundle:
    """Open the bundle at `path` after proving its structure.

    One that lies elsewhere is fetched as a whole, once its directory and manifest are
    known to be those of a bundle.

    Raises:
        NotABundleError: The file is something else, empty or cut short.
        UnsupportedVersionError: It follows a newer major version.
        BundleError: Its structure, names, limits or manifest are not as they must be.
        EnvironmentUnusableError: The file cannot be read.
    """
    return _open(path, lambda source: _proven(path, source))


def open_listing(path: Path | Place) -> Bundle:
    """Open the bundle at `path` for parts of it.

    Of one that lies elsewhere only the end is read now: the directory is proven, and
    that everything has its place by it. The header before a content is proven when the
    content is asked for. One whose bytes are all here is opened as by `open_bundle`.

    Raises:
        NotABundleError: The file is something else, empty or cut short.
        UnsupportedVersionError: It follows a newer major version.
        BundleError: What was read of it is not as it must be.
        EnvironmentUnusableError: The file cannot be read.
    """
    return _open(
        path,
        lambda source: (_proven if source.at_hand else _listed)(path, source),
    )


def open_replay_file(path: Path) -> ReplayFile:
    """Open replays that travel alone (``NAME.rpr.zip``), as strictly as a bundle.

    Raises:
        NotABundleError: The file is something else, empty or cut short.
        BundleError: Its structure, names or limits are not as they must be.
        EnvironmentUnusableError: The file cannot be read.
    """
    return _open(
        path,
        lambda source: ReplayFile(
            path, source, _prove(source, read_directory(source)), 0
        ),
    )


def _open(
    path: Path | Place, read: Callable[[ByteSource], Opened], *, attempts: int = 3
) -> Opened:
    """Return what `read` makes of a file; it is closed again if that fails.

    A file whose end is being changed is read as it was before. If the change began or
    ended while it was read, it is read anew.
    """
    if not isinstance(path, Path):
        return _closing(open_source(path), read)
    seen = end_state(path)
    try:
        return _closing(before_change(path, open_source(path)), read)
    except BundleError as error:
        if attempts > 1 and end_state(path) != seen:
            return _open(path, read, attempts=attempts - 1)
        explain_interrupted(path, error)
        error.file = path.name
        raise


def _closing(source: ByteSource, read: Callable[[ByteSource], Opened]) -> Opened:
    try:
        return read(source)
    except BaseException:
        source.close()
        raise


def open_any(path: Path) -> ReplayFile:
    """Open a bundle, or a file of replays if there is no manifest in it.

    Raises:
        NotABundleError: The file is something else, empty or cut short.
        BundleError: It is not as it must be.
        EnvironmentUnusableError: The file cannot be read.
    """
    try:
        return open_bundle(path)
    except NotABundleError as error:
        try:
            return open_replay_file(path)
        except NotABundleError:
            raise error from None


def _behind_part(unsealed: Sequence[Entry], sealed_count: int) -> Sequence[Entry]:
    """Return the entries outside the seal without the one that makes a file a part."""
    if sealed_count and unsealed and unsealed[0].name == PART_PATH:
        check_aligned(unsealed[0])
        return unsealed[1:]
    return unsealed


def _prove(source: ByteSource, directory: Directory) -> list[Entry]:
    check_names(entry.name for entry in directory.entries)
    return prove_structure(source, directory)


def _proven(path: Path | Place, source: ByteSource) -> Bundle:
    if not source.at_hand:
        _listed(path, source)
        source.fetch_all()
    directory = read_directory(source)
    _refuse_other_formats(source, directory)
    return Bundle(path, source, _prove(source, directory))


def _listed(path: Path | Place, source: ByteSource) -> Bundle:
    directory = read_directory(source)
    _refuse_other_formats(source, directory)
    check_names(entry.name for entry in directory.entries)
    return Bundle(path, source, derive_structure(directory), proven=False)


def _refuse_other_formats(source: ByteSource, directory: Directory) -> None:
    """Refuse a ZIP file that is no bundle, or one of a newer major version.

    It looks at the manifest before anything is proven: a newer major version may have
    another structure, and "update" is the better answer then. Every other objection
    waits for the structure to be proven.
    """
    names = (entry for entry in directory.entries if entry.name == MANIFEST_PATH)
    entry = next(names, None)
    if entry is None:
        raise NotABundleError(
            f"a ZIP file without {MANIFEST_PATH}",
            rule="R-4.15",
            advice="no bundle, or the contents of one packed anew",
        )
    if entry.size_bytes > limits.DOCUMENT_BYTES or entry.offset > directory.offset:
        return
    with contextlib.suppress(NotABundleError, DocumentError, LimitError):
        head = read_exactly(source, entry.offset, LOCAL.size)
        name_bytes, extra_bytes = LOCAL.unpack(head)[-2:]
        start = entry.offset + LOCAL.size + name_bytes + extra_bytes
        decode_version(read_exactly(source, start, entry.size_bytes))


def _check_size(content: Content, limit_bytes: int) -> None:
    if content.size_bytes > limit_bytes:
        raise LimitError(
            f"{content.size_bytes:,} bytes, at most {limit_bytes:,} are read at once",
            rule="R-4.30",
            where=content.name,
        )


def _stream(content: Content) -> BinaryIO:
    return cast("BinaryIO", io.BufferedReader(ContentStream(content), _BUFFER_BYTES))
