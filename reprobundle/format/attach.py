"""Attach what lies outside the seal, and take it off again byte for byte."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from reprobundle.errors import (
    BadCallError,
    DigestError,
    LimitError,
    MissingMemberError,
)
from reprobundle.format import limits
from reprobundle.format.archive import ArchiveWriter, Entry
from reprobundle.format.atomic import explained, replacing
from reprobundle.format.content import Content
from reprobundle.format.digests import digest_bytes
from reprobundle.format.integrity import check_replay_digests
from reprobundle.format.journal import journal_path, locked, undoable
from reprobundle.format.names import check_names
from reprobundle.format.pairing import RECORD_NAME, acceptance_name, check_attached
from reprobundle.format.reader import (
    Bundle,
    ReplayFile,
    open_any,
    open_bundle,
    open_replay_file,
)
from reprobundle.format.signature import LIMIT_BYTES, signature_name, subject_of
from reprobundle.format.store import Planned, Source, store

_PIECE_BYTES = 4 << 20
_OLDER = "detach older replays"

Tree = tuple[bytes, Iterable[Source]]
"""One replay: its ``record.json`` and its other files."""


def attach_replay(bundle_path: Path, record: bytes, sources: Iterable[Source]) -> str:
    """Append one replay to the bundle and return its id, the BLAKE3 of `record`.

    No sealed byte changes. After a crash at any moment the next attach, detach or
    `restore_bundle` first puts the old bundle back.

    Args:
        bundle_path: A bundle.
        record: The replay's ``record.json``.
        sources: Its other files, names relative to the record.

    Raises:
        BadCallError: It is attached already, it ran another bundle, or another
            process changes the bundle.
        BundleError: The bundle is not as it must be, or a name is unsafe.
        PackRefusedError: A source is no regular file, or changed while it was read.
        EnvironmentUnusableError: There is no room, or the bundle cannot be changed.
    """
    replay_id = digest_bytes(record)
    with locked(bundle_path) as descriptor, open_bundle(bundle_path) as bundle:
        _refuse_attached(bundle, replay_id)
        _refuse_stranger(bundle, record, f"replay {replay_id[:12]}…")
        archive = _writer_behind(descriptor, bundle)
        planned = _plan_tree(record, sources)
        _check_count(len(bundle.entries) + len(planned))
        check_attached(len(bundle.replay_ids) + 1, 0, _OLDER)
        with (
            explained(f"cannot attach to {str(bundle_path)!r}"),
            undoable(bundle_path, descriptor, archive.offset, bundle.anchor),
        ):
            store(archive, planned, workers=None, level=0, progress=None)
            archive.close_directory()
    return replay_id


def attach_replay_file(bundle_path: Path, replay_path: Path) -> list[str]:
    """Append the replays of a replay file that are not attached yet; return their ids.

    The signatures over its replays come along, also over one that is attached already.

    Raises:
        DigestError: A record of the file is not what it is named by.
        BadCallError: A replay ran another bundle, or another process changes this one.
        BundleError: The bundle or the file is not as it must be.
        EnvironmentUnusableError: There is no room, or the bundle cannot be changed.
    """
    with (
        open_replay_file(replay_path) as replays,
        locked(bundle_path) as descriptor,
        open_bundle(bundle_path) as bundle,
    ):
        for damage in check_replay_digests(replays):
            raise DigestError(
                damage.path, expected=damage.expected, got=damage.got, rule="R-4.28"
            )
        new = [id_ for id_ in replays.replay_ids if id_ not in bundle.replay_ids]
        contents = replays.unsealed_contents()
        names = [name for id_ in new for name in replays.replay_entries(id_)]
        names += [name for name in replays.signatures if name not in bundle.signatures]
        if not names:
            return new
        for id_ in new:
            record = replays.read_unsealed(f"replays/{id_}/{RECORD_NAME}")
            _refuse_stranger(bundle, record, f"replay {id_[:12]}…")
        archive = _writer_behind(descriptor, bundle)
        _check_count(len(bundle.entries) + len(names))
        check_attached(len(bundle.replay_ids) + len(new), 0, _OLDER)
        with (
            explained(f"cannot attach to {str(bundle_path)!r}"),
            undoable(bundle_path, descriptor, archive.offset, bundle.anchor),
        ):
            for name in names:
                _copy_content(archive, contents[name])
            archive.close_directory()
    return new


def attach_acceptance(bundle_path: Path, document: bytes) -> str:
    """Append an acceptance record and return its id, the BLAKE3 of `document`.

    No sealed byte changes, and a crash is undone as that of `attach_replay`.

    Args:
        bundle_path: A bundle.
        document: The record in canonical form.

    Raises:
        BadCallError: It is attached already, or is about another bundle, or another
            process changes the bundle.
        BundleError: The bundle is not as it must be.
        EnvironmentUnusableError: There is no room, or the bundle cannot be changed.
    """
    identifier = digest_bytes(document)
    name = acceptance_name(identifier)
    with locked(bundle_path) as descriptor, open_bundle(bundle_path) as bundle:
        if identifier in bundle.acceptance_ids:
            raise BadCallError(
                f"acceptance record {identifier[:12]}… is attached already"
            )
        _refuse_stranger(bundle, document, f"acceptance record {identifier[:12]}…")
        archive = _writer_behind(descriptor, bundle)
        _check_count(len(bundle.entries) + 1)
        check_attached(0, len(bundle.acceptance_ids) + 1, "detach older ones")
        with (
            explained(f"cannot attach to {str(bundle_path)!r}"),
            undoable(bundle_path, descriptor, archive.offset, bundle.anchor),
        ):
            aligned = len(document) > limits.RAW_BYTES
            archive.add(name, document, aligned=aligned)
            archive.close_directory()
    return identifier


def attach_signature(path: Path, subject: str, signature: bytes) -> str:
    """Append a signature to a bundle or a replay file; return its entry's name.

    Neither what is sealed nor a replay nor an earlier signature changes.

    Args:
        path: A bundle or a replay file.
        subject: Id of the document that was signed.
        signature: The armoured SSH signature.

    Raises:
        BadCallError: It is there already, or another process changes the file.
        LimitError: It is larger than a signature can be.
        BundleError: The file is not as it must be.
        EnvironmentUnusableError: There is no room, or the file cannot be changed.
    """
    if len(signature) > LIMIT_BYTES:
        message = f"{len(signature):,} bytes, a signature has at most {LIMIT_BYTES:,}"
        raise LimitError(message, rule="R-4.33")
    name = signature_name(subject, signature)
    with locked(path) as descriptor, open_any(path) as file:
        if name in file.signatures:
            raise BadCallError(f"{path.name} holds this signature already")
        archive = _writer_behind(descriptor, file)
        _check_count(len(file.entries) + 1)
        with (
            explained(f"cannot sign {str(path)!r}"),
            undoable(path, descriptor, archive.offset, file.anchor),
        ):
            archive.add(name, signature, aligned=False)
            archive.close_directory()
    return name


def detach_replay(bundle_path: Path, identifier: str) -> None:
    """Take off one replay or acceptance record, and the signatures over it.

    The bundle is then, byte for byte, as if it had never been attached.

    Raises:
        MissingMemberError: Nothing of this id is attached.
        BadCallError: Another process changes the bundle.
        BundleError: The bundle is not as it must be.
        EnvironmentUnusableError: The bundle cannot be changed.
    """
    with locked(bundle_path) as descriptor, open_bundle(bundle_path) as bundle:
        names = {name for name in bundle.signatures if subject_of(name) == identifier}
        if identifier in bundle.acceptance_ids:
            names.add(acceptance_name(identifier))
        else:
            names.update(bundle.replay_entries(identifier))
        _remove(bundle_path, descriptor, bundle, names)


def detach_signature(path: Path, name: str) -> None:
    """Take one signature off a bundle or a replay file.

    Raises:
        MissingMemberError: There is none of that name.
        BadCallError: Another process changes the file.
        BundleError: The file is not as it must be.
        EnvironmentUnusableError: The file cannot be changed.
    """
    with locked(path) as descriptor, open_any(path) as file:
        if name not in file.signatures:
            raise MissingMemberError(f"no signature {name[:100]!r}", rule="R-4.31")
        _remove(path, descriptor, file, {name})


def _remove(path: Path, descriptor: int, file: ReplayFile, names: set[str]) -> None:
    """Write the end of the file at `path` anew without the entries called `names`."""
    entries = file.entries
    first = next(n for n, entry in enumerate(entries) if entry.name in names)
    offset = entries[first].offset
    archive = ArchiveWriter(descriptor, offset=offset, entries=entries[:first])
    with (
        explained(f"cannot detach from {str(path)!r}"),
        undoable(path, descriptor, offset, file.anchor) as read_old,
    ):
        for entry in entries[first:]:
            if entry.name in names:
                continue
            archive.begin(entry.name, entry.size_bytes, aligned=_aligned(entry))
            for start in range(entry.data_offset, entry.end, _PIECE_BYTES):
                count = min(_PIECE_BYTES, entry.end - start)
                archive.write(read_old(start, count))
            archive.finish(entry.crc32)
        archive.close_directory()


def restore_bundle(bundle_path: Path) -> bool:
    """Undo an attach or detach that was cut off; return whether there was one.

    Raises:
        BadCallError: It is under way in another process.
        StructureError: The journal is damaged or belongs to another bundle.
        EnvironmentUnusableError: The bundle cannot be changed.
    """
    interrupted = journal_path(bundle_path.resolve()).is_file()
    with locked(bundle_path):
        return interrupted


def write_replay_file(
    target: Path, trees: Iterable[Tree], *, durable: bool = True
) -> list[str]:
    """Write replays alone to `target` (``NAME.rpr.zip``); return their ids.

    Args:
        target: Where the file goes; one that is there is replaced.
        trees: For each replay its ``record.json`` and its other files, names relative
            to the record.
        durable: As in `replacing`.

    Raises:
        BadCallError: There is no replay, or one twice.
        UnsafeNameError: A name is unsafe, or two of them are twins.
        PackRefusedError: A source is no regular file, or changed while it was read.
        EnvironmentUnusableError: A source cannot be read or the target not written.
    """
    planned = {digest_bytes(record): _plan_tree(record, tree) for record, tree in trees}
    if not planned:
        raise BadCallError("no replay to write")
    check_attached(len(planned), 0, "write them to several files")
    with replacing(target, durable=durable) as descriptor:
        archive = ArchiveWriter(descriptor)
        for plans in planned.values():
            store(archive, plans, workers=None, level=0, progress=None)
        _check_count(len(archive.entries))
        archive.close_directory()
    return list(planned)


def _plan_tree(record: bytes, sources: Iterable[Source]) -> list[Planned]:
    """Return the files of one replay in the order in which they lie, all raw.

    Outside the seal nothing says what is behind a name, so no file is compressed: its
    entry has its own name and content.
    """
    top = f"replays/{digest_bytes(record)}"
    ordered = sorted(sources, key=lambda source: source.path.encode())
    everything = [Source(RECORD_NAME, "record", record), *ordered]
    check_names(f"{top}/{source.path}" for source in everything)
    return [
        Planned(source, f"{top}/{source.path}", raw_up_to=None) for source in everything
    ]


def _refuse_attached(bundle: ReplayFile, replay_id: str) -> None:
    if replay_id in bundle.replay_ids:
        raise BadCallError(
            f"replay {replay_id[:12]}… is attached already",
            advice="detach it first to attach it anew",
        )


class _Stated(msgspec.Struct):
    bundle: str = ""


def _refuse_stranger(bundle: Bundle, record: bytes, what: str) -> None:
    """Refuse a record that says it is about another bundle.

    Attached, it would only make a good bundle look altered. A record that cannot be
    read is for the verifier to judge.
    """
    try:
        stated = msgspec.json.decode(record, type=_Stated).bundle
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    if stated and stated != bundle.id:
        raise BadCallError(
            f"{what} is of bundle {stated[:12]}…, this is {bundle.id[:12]}…",
            advice="attach it to the bundle that it is of",
        )


def _check_count(count: int) -> None:
    if count > limits.ENTRY_COUNT:
        message = f"{count:,} entries, at most {limits.ENTRY_COUNT:,} are read"
        raise LimitError(message, rule="R-4.4", advice=_OLDER)


def _writer_behind(descriptor: int, bundle: ReplayFile) -> ArchiveWriter:
    end = bundle.entries[-1].end
    return ArchiveWriter(descriptor, offset=end, entries=bundle.entries)


def _copy_content(archive: ArchiveWriter, content: Content) -> None:
    entry = content.entry
    archive.begin(entry.name, entry.size_bytes, aligned=_aligned(entry))
    for span in content.spans():
        archive.write(content.stored(span))
    archive.finish(entry.crc32)


def _aligned(entry: Entry) -> bool:
    return entry.size_bytes > limits.RAW_BYTES
