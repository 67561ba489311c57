"""Mutations of the file's bytes: damage on the way, and clumsy editing."""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from reprobundle.format.archive import ArchiveWriter, Entry
from reprobundle.format.reader import open_bundle
from reprobundle.verify.selftest.mutation import Made, Mutation, NotPossibleError
from reprobundle.verify.selftest.subject import Subject

MOST_MEMBERS = 40
PLACES = 8
_PIECE_BYTES = 4 << 20

_STRUCTURE = frozenset(
    {"container", "limits", "format-version", "manifest", "member-names", "membership"}
)
_CONTENT = frozenset({"member-digest", "container", "sealed-document"})
# A flipped bit may lie in a replay that is attached.
_ATTACHED = frozenset(
    {"replay-name", "replay-record", "replay-members", "signature-form"}
)


def _entries(subject: Subject) -> tuple[Entry, ...]:
    with open_bundle(subject.path) as bundle:
        return bundle.entries


def _working_copy(subject: Subject) -> Path:
    return Path(shutil.copyfile(subject.path, subject.folder / "altered.rpb.zip"))


def _spread(items: Sequence[Entry], count: int) -> list[Entry]:
    """Return at most `count` of the items, spread evenly."""
    if len(items) <= count:
        return list(items)
    return [items[index * len(items) // count] for index in range(count)]


def _flip(path: Path, offset: int) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        old = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([old ^ 0x10]))


def _flipped_content(subject: Subject) -> Iterator[Made]:
    copy = _working_copy(subject)
    full = [entry for entry in _entries(subject) if entry.size_bytes]
    for entry in _spread(full, MOST_MEMBERS):
        offset = entry.data_offset + entry.size_bytes // 2
        _flip(copy, offset)
        yield Made(copy, f"a bit of {entry.name}")
        _flip(copy, offset)


def _flipped_headers(subject: Subject) -> Iterator[Made]:
    copy = _working_copy(subject)
    entries = _entries(subject)
    end = entries[-1].end
    size_bytes = copy.stat().st_size
    offsets = [entry.offset + 14 for entry in _spread(entries, PLACES)]
    offsets += [end + (size_bytes - end) * place // PLACES for place in range(PLACES)]
    for offset in offsets:
        _flip(copy, offset)
        yield Made(copy, f"a bit of the structure at byte {offset:,}")
        _flip(copy, offset)


def _truncated(subject: Subject) -> Iterator[Made]:
    size_bytes = subject.path.stat().st_size
    places = [size_bytes * place // PLACES for place in range(PLACES)]
    for kept in sorted({size_bytes - 1, *places}, reverse=True):
        copy = subject.folder / "altered.rpb.zip"
        _copy_head(subject.path, copy, kept)
        yield Made(copy, f"cut off after {kept:,} of {size_bytes:,} bytes")


def _copy_head(source: Path, target: Path, size_bytes: int) -> None:
    with source.open("rb") as old, target.open("wb") as new:
        while size_bytes and (piece := old.read(min(_PIECE_BYTES, size_bytes))):
            new.write(piece)
            size_bytes -= len(piece)


def _extended(subject: Subject) -> Iterator[Made]:
    copy = _working_copy(subject)
    with copy.open("ab") as file:
        file.write(b"\0")
    yield Made(copy, "a byte behind the end")
    data = b"#!/bin/sh\n"
    with subject.path.open("rb") as old, copy.open("wb") as new:
        new.write(data)
        shutil.copyfileobj(old, new)
    yield Made(copy, "bytes in front")


# --- a ZIP tool that knows nothing of the format: valid archives of other entries

Piece = tuple[str, Entry | bytes]
"""A name, and an entry of the bundle or other content."""


def _zipped_anew(subject: Subject, pieces: Sequence[Piece]) -> Path:
    """Write a sound archive of these entries, checksums and all."""
    copy = subject.folder / "altered.rpb.zip"
    with subject.path.open("rb") as old, copy.open("w+b") as new:
        archive = ArchiveWriter(new.fileno())
        for name, content in pieces:
            if isinstance(content, bytes):
                archive.begin(name, len(content), aligned=len(content) > 1 << 14)
                archive.write(content)
                archive.finish(zlib.crc32(content))
                continue
            aligned = bool(content.padding_bytes)
            archive.begin(name, content.size_bytes, aligned=aligned)
            old.seek(content.data_offset)
            left = content.size_bytes
            while left:
                piece = old.read(min(_PIECE_BYTES, left))
                archive.write(piece)
                left -= len(piece)
            archive.finish(content.crc32)
        archive.close_directory()
    return copy


def _pieces(subject: Subject) -> list[Piece]:
    return [(entry.name, entry) for entry in _entries(subject)]


def _dropped(subject: Subject) -> Iterator[Made]:
    pieces = _pieces(subject)
    sealed = [name for name, _ in pieces if not name.startswith("replays/")]
    for name in sealed[:: max(1, len(sealed) // PLACES)]:
        left = [piece for piece in pieces if piece[0] != name]
        yield Made(_zipped_anew(subject, left), f"{name} taken out")


def _added(subject: Subject) -> Iterator[Made]:
    pieces = _pieces(subject)
    place = next(n for n, piece in enumerate(pieces) if piece[0].startswith("runs/"))
    more = [*pieces[:place], ("project/zz_more.py", b"print(1)\n"), *pieces[place:]]
    yield Made(_zipped_anew(subject, more), "a file that the manifest does not list")


def _doubled(subject: Subject) -> Iterator[Made]:
    pieces = _pieces(subject)
    twice = [*pieces[:1], *pieces]
    yield Made(_zipped_anew(subject, twice), f"{pieces[0][0]} twice")


def _renamed(subject: Subject) -> Iterator[Made]:
    pieces = _pieces(subject)
    place, (name, content) = next(
        (n, piece) for n, piece in enumerate(pieces) if piece[0].startswith("project/")
    )
    pieces[place] = (f"{name}x", content)
    yield Made(_zipped_anew(subject, pieces), f"{name} renamed")


def _swapped(subject: Subject) -> Iterator[Made]:
    pieces = _pieces(subject)
    sealed = [n for n, (name, _) in enumerate(pieces) if name.startswith("runs/")]
    if len(sealed) < 2:
        raise NotPossibleError("the bundle holds one file of a run only")
    first, second = sealed[0], sealed[-1]
    (one, left), (other, right) = pieces[first], pieces[second]
    pieces[first], pieces[second] = (one, right), (other, left)
    yield Made(_zipped_anew(subject, pieces), f"contents of {one} and {other} swapped")


def _edited(top: str) -> Callable[[Subject], Iterator[Made]]:
    """Return what edits the first file below `top` and makes a sound archive of all."""

    def make(subject: Subject) -> Iterator[Made]:
        entries = [entry for entry in _entries(subject) if entry.name.startswith(top)]
        if not entries:
            raise NotPossibleError(f"the bundle holds no file below {top}")
        target = entries[0]
        with subject.path.open("rb") as file:
            file.seek(target.data_offset)
            data = file.read(target.size_bytes)
        pieces: list[Piece] = [
            (name, data[:-1] + b"#\n") if name == target.name else (name, content)
            for name, content in _pieces(subject)
        ]
        yield Made(_zipped_anew(subject, pieces), f"{target.name} edited")

    return make


BYTE_MUTATIONS = (
    Mutation(
        "flip-content",
        "one bit of a member flipped",
        _CONTENT | _STRUCTURE | _ATTACHED,
        _flipped_content,
    ),
    Mutation(
        "flip-structure",
        "one bit of a header or of the directory flipped",
        _STRUCTURE | _ATTACHED | {"member-digest"},
        _flipped_headers,
    ),
    Mutation("truncate", "the file cut short", _STRUCTURE, _truncated),
    Mutation("extend", "bytes put in front or behind", _STRUCTURE, _extended),
    Mutation("drop", "a member taken out", _STRUCTURE | {"sealed-document"}, _dropped),
    Mutation("add", "a member put in", _STRUCTURE, _added),
    Mutation("double", "a member put in twice", _STRUCTURE, _doubled),
    Mutation("rename", "a member renamed", _STRUCTURE, _renamed),
    Mutation(
        "swap", "the contents of two members swapped", _CONTENT | _STRUCTURE, _swapped
    ),
    Mutation(
        "edit-script",
        "a script edited and zipped again",
        _CONTENT | _STRUCTURE,
        _edited("project/"),
    ),
    Mutation(
        "edit-input",
        "an input edited and zipped again",
        _CONTENT | _STRUCTURE,
        _edited("inputs/"),
    ),
    Mutation(
        "edit-output",
        "an output edited and zipped again",
        _CONTENT | _STRUCTURE,
        _edited("runs/1/outputs/"),
    ),
    Mutation(
        "edit-policy",
        "the policy edited and zipped again",
        _CONTENT | _STRUCTURE,
        _edited("policy.json"),
    ),
)
