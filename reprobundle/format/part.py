"""A part of a bundle: the manifest whole, and some of the members it lists.

``part.json`` directly behind the manifest says which members lie in the other part.
It is outside the seal: both parts have the id of the whole, and somebody who writes
one of their own can only take members away, which no verifier takes for a whole bundle.
"""

from collections.abc import Sequence
from typing import Annotated, Final, Literal

import msgspec

from reprobundle.errors import StructureError
from reprobundle.format.canonical import decode
from reprobundle.format.manifest import Digest, Member, Size

PART_PATH: Final = "part.json"
PART_SCHEMA: Final = "reprobundle/part/1"
RULE: Final = "R-4.41"


class OtherPart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file that holds the other members.

    Attributes:
        name: Its name when it was written.
        size_bytes: Its size then.
        blake3: Its digest then, as ``b3sum`` prints it.
    """

    name: str
    size_bytes: Size
    blake3: Digest


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What ``part.json`` says.

    Attributes:
        bundle: Id of the bundle.
        number: 1 holds what is needed first, 2 the rest.
        absent: Paths of the members in the other part, in layout order.
        other: The other part, by digest; None in part 2, which was written before it.
    """

    schema: Literal["reprobundle/part/1"] = PART_SCHEMA
    bundle: Digest
    number: Literal[1, 2]
    absent: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    other: OtherPart | None = None


def decode_part(data: bytes, bundle_id: str, members: Sequence[Member]) -> Part:
    """Return the part that `data` describes, proven against the manifest.

    Raises:
        DocumentError: It breaks its schema or its canonical form.
        StructureError: It is about another bundle, or names what the manifest does not
            list, or not in its order.
    """
    part = decode(data, Part, where=PART_PATH, rule=RULE, canonical=True)
    if part.bundle != bundle_id:
        message = f"it is of bundle {part.bundle[:12]}…, this is {bundle_id[:12]}…"
        raise StructureError(message, rule=RULE, where=PART_PATH)
    absent = frozenset(part.absent)
    listed = tuple(member.path for member in members if member.path in absent)
    if listed != part.absent:
        message = (
            "it names members that the manifest does not list, or not in its order"
        )
        raise StructureError(message, rule=RULE, where=PART_PATH)
    if (part.number == 1) != (part.other is not None):
        message = "the first part, and only that, names the other one"
        raise StructureError(message, rule=RULE, where=PART_PATH)
    return part
