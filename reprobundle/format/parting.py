"""Split a bundle into two parts, and put them together again byte for byte."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from reprobundle.errors import BadCallError, DigestError, StructureError
from reprobundle.format import limits
from reprobundle.format.archive import ArchiveWriter
from reprobundle.format.atomic import explained, replacing
from reprobundle.format.canonical import encode
from reprobundle.format.content import Content
from reprobundle.format.digests import digest_file
from reprobundle.format.integrity import check_digests
from reprobundle.format.manifest import MANIFEST_PATH
from reprobundle.format.part import PART_PATH, OtherPart, Part
from reprobundle.format.reader import Bundle, open_bundle
from reprobundle.format.source import read_exactly

_PIECE_BYTES = 4 << 20
RULE = "R-4.42"


def split_bundle(
    bundle: Bundle, moved: Collection[str], *, first: Path, rest: Path
) -> None:
    """Write two parts: `rest` with the members in `moved`, `first` with all others.

    What lies outside the seal goes with the first part. Stored bytes are copied as
    they are, so the same bundle gives the same parts.

    Args:
        bundle: A whole bundle.
        moved: Paths of members; at least one, and not all.
        first: Where part 1 goes.
        rest: Where part 2 goes.

    Raises:
        BadCallError: It is a part already, or a path is not one of its members.
        EnvironmentUnusableError: A file cannot be written.
    """
    if bundle.part is not None:
        raise BadCallError("this is one part of a bundle already")
    unknown = sorted(set(moved) - set(bundle.members))
    if unknown or not moved or len(set(moved)) == len(bundle.members):
        message = f"no member {unknown[0]!r} to move" if unknown else "nothing to split"
        raise BadCallError(message)
    there = tuple(path for path in bundle.members if path in moved)
    here = tuple(path for path in bundle.members if path not in moved)
    _write(rest, bundle, there, Part(bundle=bundle.id, number=2, absent=here))
    with explained(f"cannot read {str(rest)!r}"):
        other = OtherPart(
            name=rest.name, size_bytes=rest.stat().st_size, blake3=digest_file(rest)
        )
    part = Part(bundle=bundle.id, number=1, absent=there, other=other)
    _write(first, bundle, here, part, unsealed=True)


def _write(
    target: Path,
    bundle: Bundle,
    paths: tuple[str, ...],
    part: Part,
    *,
    unsealed: bool = False,
) -> None:
    with replacing(target) as descriptor:
        archive = ArchiveWriter(descriptor)
        for path in paths:
            _copy(archive, bundle.content(path))
        _copy(archive, bundle.content(MANIFEST_PATH))
        document = encode(part)
        archive.add(PART_PATH, document, aligned=len(document) > limits.RAW_BYTES)
        if unsealed:
            for content in bundle.unsealed_contents().values():
                _copy(archive, content)
        archive.close_directory()


def join_parts(
    first: Path,
    rest: Path,
    target: Path,
    *,
    progress: Callable[[int], None] | None = None,
) -> str:
    """Write the bundle that `first` and `rest` are the parts of; return its id.

    Every digest is proven before anything is written.

    Raises:
        BadCallError: One is whole, or both are the same part.
        StructureError: They are not the two parts of one bundle.
        DigestError: A member is not what was sealed, or `rest` is another file than
            the one that the first part names.
        EnvironmentUnusableError: A file cannot be read or written.
    """
    with open_bundle(first) as one, open_bundle(rest) as two:
        if one.part is not None and one.part.number == 2:
            one, two, rest = two, one, first
        _refuse_strangers(one, two, rest)
        for bundle in (one, two):
            for damage in check_digests(bundle, progress=progress):
                raise DigestError(
                    damage.path, expected=damage.expected, got=damage.got, rule="R-4.25"
                )
        with replacing(target) as descriptor:
            archive = ArchiveWriter(descriptor)
            for path in one.members:
                _copy(archive, (two if path in one.absent else one).content(path))
            _copy(archive, one.content(MANIFEST_PATH))
            for name, content in one.unsealed_contents().items():
                if name != PART_PATH:
                    _copy(archive, content)
            archive.close_directory()
        return one.id


def _refuse_strangers(one: Bundle, two: Bundle, rest: Path) -> None:
    """Refuse two files unless they are part 1 and part 2 of one bundle."""
    for bundle in (one, two):
        if bundle.part is None:
            raise BadCallError(
                f"{bundle.path.name} is a whole bundle",
                advice="there is nothing to join",
            )
    if one.id != two.id:
        message = f"parts of two bundles: {one.id[:12]}… and {two.id[:12]}…"
        raise StructureError(message, rule=RULE)
    if one.part is None or one.part.other is None or two.absent == one.absent:
        raise BadCallError("both are the same part", advice="give the other one too")
    if missing := sorted(one.absent & two.absent):
        message = f"{missing[0]!r} lies in neither; they were not made by one split"
        raise StructureError(message, rule=RULE)
    if one.absent | two.absent != set(one.members):
        message = "some members lie in both parts; they were not made by one split"
        raise StructureError(message, rule=RULE)
    got = digest_file(rest)
    if got != one.part.other.blake3:
        raise DigestError(rest.name, expected=one.part.other.blake3, got=got, rule=RULE)


def _copy(archive: ArchiveWriter, content: Content) -> None:
    """Append one entry with its stored bytes as they are."""
    entry = content.entry
    archive.begin(entry.name, entry.size_bytes, aligned=bool(entry.padding_bytes))
    for start in range(entry.data_offset, entry.end, _PIECE_BYTES):
        count = min(_PIECE_BYTES, entry.end - start)
        archive.write(read_exactly(content.file, start, count))
    archive.finish(entry.crc32)


def whole_copy(bundle: Path, target: Path) -> str:
    """Write a copy of a whole bundle, such as a pasted one; return its id.

    Raises:
        BadCallError: It is a part.
        DigestError: A member is not what was sealed.
        EnvironmentUnusableError: A file cannot be read or written.
    """
    with open_bundle(bundle) as opened:
        if opened.part is not None:
            other = opened.part.other
            named = f"{other.name}, blake3 {other.blake3}" if other else "part 1"
            raise BadCallError(
                f"this is one part of a bundle; the other one is {named}",
                advice="give both: reprobundle join PART1 PART2 -o BUNDLE",
            )
        for damage in check_digests(opened):
            raise DigestError(
                damage.path, expected=damage.expected, got=damage.got, rule="R-4.25"
            )
        source = opened.anchor.file
        with replacing(target) as descriptor:
            archive = ArchiveWriter(descriptor)
            for start in range(0, opened.size_bytes, _PIECE_BYTES):
                count = min(_PIECE_BYTES, opened.size_bytes - start)
                archive.write(read_exactly(source, start, count))
            archive.flush()
        return opened.id
