"""Builds ZIP files and bundles byte by byte, right or wrong in one chosen place.

Written from APPNOTE and spec.md with the standard library alone: nothing here comes
from the code under test.
"""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import dataclass, field
from typing import Any

from blake3 import blake3

CHUNK = 4 << 20


@dataclass
class Forged:
    """One entry; `local` and `central` override single fields of the two headers."""

    name: str | bytes
    data: bytes = b""
    local: dict[str, Any] = field(default_factory=dict)
    central: dict[str, Any] = field(default_factory=dict)
    local_extra: bytes | None = None
    central_extra: bytes = b""
    comment: bytes = b""
    before: bytes = b""
    after: bytes = b""

    def both(self, **fields: Any) -> Forged:
        self.local.update(fields)
        self.central.update(fields)
        return self

    @property
    def raw_name(self) -> bytes:
        return self.name if isinstance(self.name, bytes) else self.name.encode()


def padding(offset: int, name: bytes, data: bytes) -> bytes:
    if len(data) <= 16 << 10 or name.endswith(b".zst"):
        return b""
    size = -(offset + 30 + len(name) + 4) % 64
    return b"FB" + struct.pack("<H", size) + bytes(size)


def build_zip(entries: list[Forged], **end: Any) -> bytes:
    """Return a ZIP file of `entries`; `end` overrides fields of the end record.

    Besides these: ``prefix``, ``between`` (before the directory), ``hidden`` (behind
    it), ``comment``, ``trailing``, ``zip64`` (overrides of a ZIP64 end record).
    """
    out = bytearray(end.pop("prefix", b""))
    directory = bytearray()
    for entry in entries:
        out += entry.before
        offset = len(out)
        name = entry.raw_name
        facts = {
            "version": 20,
            "flags": 0x800,
            "method": 0,
            "time": 0,
            "date": 0x21,
            "crc": zlib.crc32(entry.data),
            "csize": len(entry.data),
            "size": len(entry.data),
        }
        local = {**facts, "name": name, **entry.local}
        extra = entry.local_extra
        if extra is None:
            extra = padding(offset, name, entry.data)
        out += struct.pack(
            "<IHHHHHIIIHH",
            local.get("signature", 0x04034B50),
            local["version"],
            local["flags"],
            local["method"],
            local["time"],
            local["date"],
            local["crc"],
            local["csize"],
            local["size"],
            len(local["name"]),
            len(extra),
        )
        out += local["name"] + extra + entry.data + entry.after
        central = {
            **facts,
            "made_by": 3 << 8 | 20,
            "disk": 0,
            "internal": 0,
            "external": 0o100644 << 16,
            "offset": offset,
            **entry.central,
        }
        directory += struct.pack(
            "<IHHHHHHIIIHHHHHII",
            central.get("signature", 0x02014B50),
            central["made_by"],
            central["version"],
            central["flags"],
            central["method"],
            central["time"],
            central["date"],
            central["crc"],
            central["csize"],
            central["size"],
            len(name),
            len(entry.central_extra),
            len(entry.comment),
            central["disk"],
            central["internal"],
            central["external"],
            central["offset"],
        )
        directory += name + entry.central_extra + entry.comment
    out += end.pop("between", b"")
    offset = len(out)
    out += directory + end.pop("hidden", b"")
    comment = end.pop("comment", b"")
    trailing = end.pop("trailing", b"")
    zip64 = end.pop("zip64", None)
    if zip64 is not None:
        facts64 = {
            "signature": 0x06064B50,
            "count": len(entries),
            "total": len(entries),
            "size": len(directory),
            "offset": offset,
            "record": len(out),
            **zip64,
        }
        out += struct.pack(
            "<IQHHIIQQQQ",
            facts64["signature"],
            44,
            3 << 8 | 45,
            45,
            0,
            0,
            facts64["count"],
            facts64["total"],
            facts64["size"],
            facts64["offset"],
        )
        out += struct.pack("<IIQI", 0x07064B50, 0, facts64["record"], 1)
    facts_end = {
        "disk": 0,
        "count": len(entries),
        "total": len(entries),
        "size": len(directory),
        "offset": offset,
        "comment_bytes": len(comment),
        **end,
    }
    out += struct.pack(
        "<IHHHHIIH",
        0x06054B50,
        facts_end["disk"],
        0,
        facts_end["count"],
        facts_end["total"],
        facts_end["size"],
        facts_end["offset"],
        facts_end["comment_bytes"],
    )
    return bytes(out + comment + trailing)


ROLES = {
    "README.txt": "readme",
    "project": "project",
    "inputs": "input",
    "external": "external",
    "lock": "lock",
    "policy.json": "policy",
    "B3SUMS": "checksums",
}
ORDER = [
    "README.txt",
    "project",
    "inputs",
    "external",
    "lock",
    "policy.json",
    "runs",
    "B3SUMS",
]

FILES = {
    "README.txt": b"how to open this\n",
    "project/train.py": b"print('hello')\n",
    "inputs/x.csv": b"a,b\n1,2\n",
    "policy.json": b"{}\n",
    "runs/1/outputs/y.txt": b"3\n",
    "runs/1/record.json": b"{}\n",
}


def member(path: str, content: bytes, **changes: Any) -> dict[str, Any]:
    top = path.partition("/")[0]
    role = ROLES.get(top, "record" if path.endswith("/record.json") else "output")
    facts: dict[str, Any] = {
        "path": path,
        "size_bytes": len(content),
        "blake3": blake3(content).hexdigest(),
        "role": role,
    }
    if len(content) > CHUNK:
        facts["chunks"] = [
            blake3(content[start : start + CHUNK]).hexdigest()
            for start in range(0, len(content), CHUNK)
        ]
    return {**facts, **changes}


def canonical(document: Any) -> bytes:
    text = json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False)
    return f"{text}\n".encode()


class ForgedBundle:
    """A bundle that is right unless a test changes its parts before `build`.

    Attributes:
        members: The manifest's members, as plain objects.
        stored: Path → name and bytes of its entry.
        manifest: Fields of the manifest besides the members.
        unsealed: Entries behind the manifest.
    """

    def __init__(self, files: dict[str, bytes] | None = None) -> None:
        files = dict(FILES if files is None else files)
        paths = sorted(
            files, key=lambda p: (ORDER.index(p.partition("/")[0]), p.encode())
        )
        self.members = [member(path, files[path]) for path in paths]
        self.stored = {path: (path, files[path]) for path in paths}
        self.manifest: dict[str, Any] = {
            "format": "reprobundle",
            "version": "1.0",
            "chunk_bytes": CHUNK,
        }
        self.unsealed: list[Forged] = []

    def change(self, path: str, **facts: Any) -> ForgedBundle:
        next(m for m in self.members if m["path"] == path).update(facts)
        return self

    def add_checksums(self) -> None:
        lines = "".join(f"{m['blake3']}  {m['path']}\n" for m in self.members).encode()
        self.members.append(member("B3SUMS", lines))
        self.stored["B3SUMS"] = ("B3SUMS", lines)

    def manifest_bytes(self) -> bytes:
        return canonical({**self.manifest, "members": self.members})

    def entries(self, manifest: bytes | None = None) -> list[Forged]:
        if "B3SUMS" not in self.stored:
            self.add_checksums()
        data = self.manifest_bytes() if manifest is None else manifest
        return [
            *(Forged(name, content) for name, content in self.stored.values()),
            Forged("manifest.json", data),
            *self.unsealed,
        ]

    def build(self, **end: Any) -> bytes:
        return build_zip(self.entries(), **end)
