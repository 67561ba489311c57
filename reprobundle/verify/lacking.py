"""What a replay takes from the seal of its bundle, and lacks while it is alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from reprobundle.errors import DigestError, MissingMemberError
from reprobundle.format.reader import Bundle
from reprobundle.format.record import Record

_RULE = "R-7.2"


class Lacking(NamedTuple):
    """One content that a record has, and that lies in the bundle only.

    Attributes:
        name: An output, or a member by its name relative to the record.
        sealed: Full path of the sealed member of equal content.
        size_bytes: Its size.
        blake3: Its digest.
    """

    name: str
    sealed: str
    size_bytes: int
    blake3: str


def lacking(record: Record) -> Iterator[Lacking]:
    """Yield what does not lie beside a record: it lies in the bundle."""
    for output in record.outputs:
        if output.stored == "sealed":
            yield Lacking(output.name, output.member, output.size_bytes, output.blake3)
    for member in record.members:
        if member.sealed:
            yield Lacking(member.name, member.sealed, member.size_bytes, member.blake3)


def require_in_seal(bundle: Bundle, records: Iterable[Record]) -> None:
    """Refuse records that take from the seal what it does not hold.

    Attached, they would only make a good bundle look altered.

    Raises:
        MissingMemberError: There is no such member.
        DigestError: Its content is another.
    """
    for record in records:
        for one in lacking(record):
            held = bundle.members.get(one.sealed)
            if held is None:
                raise MissingMemberError(
                    f"{one.name} is said to be the sealed member {one.sealed!r}, and "
                    "the bundle has none of that name",
                    rule=_RULE,
                )
            if held.blake3 != one.blake3:
                raise DigestError(
                    f"{one.name} -> {one.sealed}",
                    expected=one.blake3,
                    got=held.blake3,
                    rule=_RULE,
                )
