"""The entities of an RO-Crate, as they are added one by one."""

from __future__ import annotations

import mimetypes
from typing import TYPE_CHECKING, Any

from reprobundle.export.actions import Result
from reprobundle.export.tree import Item
from reprobundle.export.writing import Written

if TYPE_CHECKING:
    from rocrate.rocrate import ROCrate

TERMS = {
    # BLAKE3 of a file's content, 64 hexadecimal digits; exit status of a process.
    "blake3": "urn:reprobundle:term:blake3",
    "exitStatus": "urn:reprobundle:term:exitStatus",
}
_ANY_BYTES = "application/octet-stream"
_TEXTS = frozenset({"B3SUMS", "README.txt", "CITATION.cff", "LICENSE"})

Properties = dict[str, Any]


class Entities:
    """What a crate holds so far.

    Attributes:
        files: Name of each file in the crate → its identifier.
    """

    def __init__(self, crate: ROCrate) -> None:
        """Take an empty crate."""
        self.files: dict[str, str] = {}
        self._crate = crate
        self._own: set[str] = set()

    def add(self, identifier: str, kind: str | list[str], **properties: object) -> str:
        """Add a contextual entity, once, and return its identifier."""
        from rocrate.model.contextentity import ContextEntity

        if identifier not in self._own:
            self._own.add(identifier)
            stated = {"@type": kind, **known(properties)}
            self._crate.add(ContextEntity(self._crate, identifier, stated))
        return identifier

    def add_file(self, item: Item, done: Written) -> None:
        """Add a file of the crate."""
        from rocrate.model.file import File

        properties: Properties = {
            "name": item.name,
            "description": f"{item.role} of the bundle",
            "contentSize": str(done.size_bytes),
            "sha256": done.sha256,
            "blake3": done.blake3,
            "encodingFormat": _encoding(item.name),
        }
        original = _original_name(item)
        if original:
            properties["alternateName"] = original
        file = File(self._crate, dest_path=item.name, properties=properties)
        self._crate.add(file)
        self.files[item.name] = file.id

    def reference(self, owner: str, number: int, one: Result) -> Properties:
        """Return a reference to a file of the crate, or to what is told about it."""
        if one.member in self.files:
            return {"@id": self.files[one.member]}
        note = one.note or "not in the crate"
        return {
            "@id": self.add(
                f"{owner}-{number}",
                "CreativeWork",
                name=one.name,
                description=note,
                contentSize=str(one.size_bytes),
                blake3=one.blake3,
            )
        }


def known(properties: Properties) -> Properties:
    """Return what is stated; a single value stands without a list, as 1.3 wants."""
    return {
        key: value[0] if isinstance(value, list) and len(value) == 1 else value
        for key, value in properties.items()
        if value not in ("", [])
    }


def _encoding(name: str) -> str:
    guessed, _ = mimetypes.guess_type(name)
    text = "text/plain" if name.rpartition("/")[2] in _TEXTS else _ANY_BYTES
    return guessed or text


def _original_name(item: Item) -> str:
    """Return the name by which the run knows a file, where the crate has another."""
    top, _, rest = item.name.partition("/")
    if top in ("project", "inputs", "stand-ins"):
        return rest
    parts = item.name.split("/", 3)
    is_output = item.role in ("output", "replay") and len(parts) == 4
    return parts[3] if is_output and parts[2] == "outputs" else ""
