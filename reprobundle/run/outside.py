"""Files that a run read outside its project: what they are called and looked for by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from reprobundle.format.record import FileRead, Record, WithheldFile
from reprobundle.run.own_words import own_path


def external(record: Record) -> list[FileRead]:
    """Return the files that a run read outside its project."""
    return [read for read in record.reads if read.path.startswith("external:")]


def places(read: FileRead) -> tuple[Path, ...]:
    """Return where the file lay, as paths of this machine: by its link first."""
    return tuple(own_path(place) for place in (read.opened_as, read.origin) if place)


def shown(read: FileRead) -> str:
    """Return the path that a program knows the file by."""
    return read.opened_as or read.origin


def as_withheld(reads: Iterable[FileRead]) -> Iterator[WithheldFile]:
    """Yield files by the path they had, to be looked for like withheld ones."""
    for read in reads:
        yield WithheldFile(
            name=read.origin, size_bytes=read.size_bytes, blake3=read.blake3
        )


def other_names(reads: Iterable[FileRead]) -> dict[str, str]:
    """Return what a caller may call each file → the path it had.

    A shell replaces ``~`` at the start of an argument.
    """
    names = {}
    for read in reads:
        for text in (read.origin, read.opened_as, *map(str, places(read))):
            if text:
                names[text] = read.origin
    return names
