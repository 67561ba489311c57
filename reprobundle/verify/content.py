"""Where the content of a record's outputs lies: on disk, sealed, or attached."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO, NamedTuple

from reprobundle.errors import MissingMemberError
from reprobundle.format.reader import Bundle, ReplayFile
from reprobundle.format.record import Output, Record


class Content(NamedTuple):
    """Opens what belongs to one record.

    Attributes:
        names: Members of the record, by their names relative to it.
        open_own: Opens one of them, wherever it lies.
        open_sealed: Opens a sealed member by its full path.
    """

    names: frozenset[str]
    open_own: Callable[[str], BinaryIO]
    open_sealed: Callable[[str], BinaryIO]

    def open(self, output: Output) -> BinaryIO:
        """Return the content of an output that is stored."""
        if output.stored == "sealed":
            return self.open_sealed(output.member)
        return self.open_member(output.member)

    def open_member(self, name: str) -> BinaryIO:
        """Return a member by its name relative to the record, or its sealed path."""
        if name in self.names:
            return self.open_own(name)
        return self.open_sealed(name)


def on_disk(record: Record, files: Mapping[str, Path]) -> Content:
    """Return the content of a record that has just been made.

    Args:
        record: The record.
        files: Member name relative to the record → file.
    """
    return Content(
        names=_names(record),
        open_own=lambda name: files[name].open("rb"),
        open_sealed=_nothing_sealed,
    )


def sealed(bundle: Bundle, number: int, record: Record) -> Content:
    """Return the content of the sealed run `number`."""
    return Content(
        names=_names(record),
        open_own=lambda name: bundle.open(f"runs/{number}/{name}"),
        open_sealed=bundle.open,
    )


def attached(
    bundle: Bundle, source: ReplayFile, replay_id: str, record: Record
) -> Content:
    """Return the content of a replay that lies in `source`, the bundle or a file."""
    elsewhere = {one.name: one.sealed for one in record.members if one.sealed}

    def open_own(name: str) -> BinaryIO:
        if name in elsewhere:
            return bundle.open(elsewhere[name])
        return source.open_unsealed(f"replays/{replay_id}/{name}")

    return Content(names=_names(record), open_own=open_own, open_sealed=bundle.open)


def _names(record: Record) -> frozenset[str]:
    return frozenset(member.name for member in record.members)


def _nothing_sealed(name: str) -> BinaryIO:
    raise MissingMemberError("no member of the record", rule="R-7.2", where=name)
