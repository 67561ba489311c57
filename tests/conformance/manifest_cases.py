"""The vectors of sections 5 and 6: names, and the manifest."""

from __future__ import annotations

from collections.abc import Callable

from tests.conformance.case import Case
from tests.conformance.container_files import TARGET, base
from tests.conformance.documents import SCRIPT, Story
from tests.format.forge import Forged, ForgedBundle, build_zip, member

LARGEST = (1 << 53) - 1


def _named(*names: str) -> Callable[[], bytes]:
    """Return what makes a bundle with further project files of these names."""
    files = dict.fromkeys(names, b"#\n")
    return lambda: Story(files=files).forge().build()


def _nameless() -> bytes:
    bundle = base()
    bundle.members[0]["path"] = ""
    bundle.stored = {"": ("", bundle.stored.pop("README.txt")[1]), **bundle.stored}
    return bundle.build()


def _entry_twice() -> bytes:
    entries = base().entries()
    return build_zip([*entries[:2], Forged("project/a.py", SCRIPT), *entries[2:]])


def _document(change: Callable[[bytes], bytes], **manifest: object) -> bytes:
    """Return a bundle whose manifest has other bytes; `manifest` are its fields."""
    bundle = base()
    bundle.manifest.update(manifest)
    bundle.entries()
    return build_zip(bundle.entries(change(bundle.manifest_bytes())))


def _fields(**manifest: object) -> bytes:
    return _document(lambda data: data, **manifest)


def _member(path: str = TARGET, **facts: object) -> bytes:
    return base().change(path, **facts).build()


def _nested(levels: int) -> object:
    value: object = 0
    for _ in range(levels):
        value = [value]
    return value


def _out_of_order() -> bytes:
    bundle = base()
    members = bundle.members
    members[1], members[2] = members[2], members[1]
    bundle.stored = {one["path"]: bundle.stored[one["path"]] for one in members}
    return bundle.build()


def _elsewhere() -> bytes:
    bundle = base()
    path, content = "notes/a.txt", b"?"
    bundle.members.append(member(path, content, role="output"))
    bundle.stored[path] = (path, content)
    return bundle.build()


def _other_checksums() -> bytes:
    bundle = base()
    bundle.add_checksums()
    lines = bundle.stored["B3SUMS"][1].replace(b"  project/a.py", b"  project/b.py")
    bundle.stored["B3SUMS"] = ("B3SUMS", lines)
    bundle.members[-1] = member("B3SUMS", lines)
    return bundle.build()


def _more_than_2_53_bytes() -> bytes:
    bundle: ForgedBundle = base()
    bundle.change("project/a.py", size_bytes=LARGEST)
    return bundle.change("policy.json", size_bytes=1).build()


def _name(name: str, requirement: str, comment: str, make: Callable[[], bytes]) -> Case:
    return Case("names", name, requirement, "invalid", "UNREADABLE", comment, make)


def _manifest(
    name: str, requirement: str, comment: str, make: Callable[[], bytes]
) -> Case:
    return Case("manifest", name, requirement, "invalid", "UNREADABLE", comment, make)


NAMES = (
    Case(
        "names",
        "unusual",
        "R-5.4",
        "valid",
        "INTACT",
        "Names that are unusual and mean the same file everywhere.",
        _named(
            "project/-rf",
            "project/.hidden",
            "project/a b (1).py",
            "project/console.py",
            "project/naïve/日本語.txt",
        ),
    ),
    _name("empty", "R-5.1", "A member's name is empty.", _nameless),
    _name(
        "parent_folder",
        "R-5.2",
        "A name leads out of its folder.",
        _named("project/../../evil.py"),
    ),
    _name(
        "backslash",
        "R-5.3",
        "A name holds a backslash, which is a separator on Windows.",
        _named("project/..\\evil.py"),
    ),
    _name(
        "turned_text",
        "R-5.4",
        "A name holds a character that turns the text behind it.",
        _named("project/a\u202egpj.py"),
    ),
    _name(
        "decomposed",
        "R-5.5",
        "A name is in Unicode form D.",
        _named("project/cafe\u0301.py"),
    ),
    _name(
        "windows_device",
        "R-5.6",
        "A name is a device on Windows.",
        _named("project/aux.py"),
    ),
    _name(
        "long_component",
        "R-5.7",
        "A component has 256 bytes.",
        _named(f"project/{'x' * 256}"),
    ),
    _name(
        "twins_by_case",
        "R-5.8",
        "Two names differ in case alone.",
        _named("project/b.py", "project/B.py"),
    ),
    _name(
        "entry_twice",
        "R-5.8",
        "The file holds an entry twice.",
        _entry_twice,
    ),
    _name(
        "file_and_folder",
        "R-5.9",
        "A name is a file and a folder.",
        _named("project/b", "project/b/c.py"),
    ),
)

MANIFEST = (
    Case(
        "manifest",
        "newer_minor_version",
        "R-6.6",
        "valid",
        "INCOMPLETE",
        "Version 1.7 with two fields that 1.0 does not know. A reader of 1.0 reads "
        "what it knows and says that it has not checked everything.",
        lambda: _fields(version="1.7", note={"new": [1.5]}),
    ),
    _manifest(
        "deep",
        "R-6.2",
        "The manifest, of version 1.7, nests 65 levels deep.",
        lambda: _fields(version="1.7", note=_nested(64)),
    ),
    _manifest(
        "repeated_key",
        "R-6.3",
        "The manifest states a field twice, with the same value.",
        lambda: _document(
            lambda data: data.replace(
                b' "format"', b' "format": "reprobundle",\n "format"', 1
            )
        ),
    ),
    _manifest(
        "byte_order_mark",
        "R-6.4",
        "A byte order mark lies before the manifest's text.",
        lambda: _document(lambda data: b"\xef\xbb\xbf" + data),
    ),
    _manifest(
        "newer_major_version",
        "R-6.5",
        "The manifest states version 2.0.",
        lambda: _fields(version="2.0"),
    ),
    _manifest(
        "unknown_field",
        "R-6.6",
        "The manifest of version 1.0 has a field that its schema does not know.",
        lambda: _fields(note="x"),
    ),
    _manifest(
        "other_indent",
        "R-6.7",
        "The manifest is indented by two spaces.",
        lambda: _document(lambda data: data.replace(b"\n ", b"\n  ")),
    ),
    _manifest(
        "more_than_2_53_bytes",
        "R-6.8",
        "Two members state 2^53 bytes together. Such a manifest breaks R-4.19 and "
        "R-6.11 too; the limit is found first.",
        _more_than_2_53_bytes,
    ),
    _manifest(
        "unknown_place",
        "R-6.9",
        "A member lies in a folder that the layout does not know.",
        _elsewhere,
    ),
    _manifest(
        "out_of_order",
        "R-6.10",
        "Manifest and entries agree in an order that is not the layout's.",
        _out_of_order,
    ),
    _manifest(
        "chunks_of_a_small_member",
        "R-6.11",
        "A small member has a chunk digest.",
        lambda: _member(chunks=["0" * 64]),
    ),
    _manifest(
        "other_checksums",
        "R-6.12",
        "A line of B3SUMS names another file.",
        _other_checksums,
    ),
)

CASES = (*NAMES, *MANIFEST)
