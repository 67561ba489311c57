"""Why a ZIP file is not in canonical form, in words that help its owner.

Nothing here decides: `reprobundle.format.structure` compares whole headers, and asks
for the most telling difference only once they are known to differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reprobundle.errors import BundleError, NotABundleError, StructureError
from reprobundle.format import archive
from reprobundle.format.archive import Entry

# First bytes of files that are taken for a bundle by mistake.
_KNOWN_STARTS = (
    (b"%PDF", "a PDF document"),
    (b"\x1f\x8b", "a gzip file"),
    (b"\x28\xb5\x2f\xfd", "a zstd file"),
    (b"7z\xbc\xaf", "a 7z archive"),
    (b"\x89PNG", "a PNG image"),
    (b"\x89HDF", "an HDF5 file"),
    (b"version https://git-lfs", "a Git LFS pointer"),
    (b"<!DOCTYPE", "a web page"),
    (b"<html", "a web page"),
    (b"{", "a JSON document"),
)

_WRITTEN_ANEW = "another program zipped it again; use the original file"

_LOCAL_FIELDS = (
    "signature",
    "version",
    "flags",
    "method",
    "time",
    "date",
    "crc32",
    "compressed size",
    "size",
    "name length",
    "extra length",
)
_CENTRAL_FIELDS = (
    "signature",
    "made by",
    "version",
    "flags",
    "method",
    "time",
    "date",
    "crc32",
    "compressed size",
    "size",
    "name length",
    "extra length",
    "comment length",
    "disk",
    "internal attributes",
    "external attributes",
    "offset",
)


def not_a_zip(start: bytes) -> NotABundleError:
    """Return what a file is that begins with `start` and has no end record."""
    if start.startswith(archive.LOCAL_SIGNATURE.to_bytes(4, "little")):
        return NotABundleError(
            "the file starts as a ZIP file but its end is missing",
            rule="R-4.1",
            advice="it was cut short: put the .journal that lay beside it there again, "
            "or obtain it again",
        )
    for magic, what in _KNOWN_STARTS:
        if start.startswith(magic):
            return NotABundleError(f"no ZIP file but {what}", rule="R-4.1")
    return NotABundleError("no ZIP file", rule="R-4.1")


def explain_local(entry: Entry, head: bytes) -> BundleError:
    """Return why `head` is not the local header of `entry`."""
    error = _explain_fields(
        entry.name,
        "local header",
        _LOCAL_FIELDS,
        archive.LOCAL.unpack_from(archive.local_header(entry)),
        archive.LOCAL.unpack_from(head),
    )
    if error is not None:
        return error
    start = archive.LOCAL.size
    name = entry.name.encode()
    if head[start : start + len(name)] != name:
        return StructureError(
            "the local header has another name than the directory",
            rule="R-4.10",
            where=entry.name,
        )
    return StructureError(
        "the local header has an extra field that is neither ZIP64 nor zero padding",
        rule="R-4.9",
        where=entry.name,
    )


def explain_directory(entries: Iterable[Entry], data: bytes) -> BundleError:
    """Return why the directory `data` is not that of `entries`."""
    position = 0
    for entry in entries:
        expected = archive.central_header(entry)
        got = data[position : position + len(expected)]
        if got != expected:
            return _explain_central(entry, expected, got)
        position += len(expected)
    return bad_zip64("the end records do not agree with the directory")


def _explain_central(entry: Entry, expected: bytes, got: bytes) -> BundleError:
    error = _explain_fields(
        entry.name,
        "directory",
        _CENTRAL_FIELDS,
        archive.CENTRAL.unpack_from(expected),
        archive.CENTRAL.unpack_from(got),
    )
    return error or StructureError(
        "the directory has an extra field that is not ZIP64",
        rule="R-4.9",
        where=entry.name,
    )


def _explain_fields(
    name: str,
    structure: str,
    labels: Sequence[str],
    expected: Sequence[int],
    got: Sequence[int],
) -> BundleError | None:
    """Return the error for the most telling field that differs, if one does."""
    differing = {
        label: (want, have)
        for label, want, have in zip(labels, expected, got, strict=True)
        if want != have and label != "extra length"
    }
    for label in ("signature", "method", *differing):
        if label in differing:
            return _explain_field(name, structure, label, *differing[label])
    return None


def _explain_field(
    name: str, structure: str, label: str, want: int, have: int
) -> BundleError:
    """Return the error for one field that is not as it must be."""
    if label == "method":
        return StructureError(
            f"{structure}: compression method {have}, expected 0 (stored)",
            rule="R-4.6",
            where=name,
            advice=_WRITTEN_ANEW,
        )
    if label == "flags":
        why = " (encrypted)" if have & 1 else " (data descriptor)" if have & 8 else ""
        return StructureError(
            f"{structure}: flags {have:#06x}{why}, expected {want:#06x}",
            rule="R-4.7",
            where=name,
            advice=_WRITTEN_ANEW,
        )
    if label == "external attributes" and have >> 28 == 0o12:
        return StructureError(
            f"{structure}: it is a symbolic link", rule="R-4.8", where=name
        )
    agreement = {"crc32", "size", "compressed size", "name length", "signature"}
    rule = "R-4.8"
    if label in agreement:
        rule = "R-4.10" if structure == "local header" else "R-4.12"
    return StructureError(
        f"{structure}: {label} is {have:#x}, expected {want:#x}", rule=rule, where=name
    )


def bad_count(stated: int, found: int) -> StructureError:
    """Return the error for a directory of another length than stated."""
    return StructureError(
        f"the end record states {stated:,} entries, the directory holds {found:,}",
        rule="R-4.5",
    )


def bad_zip64(message: str) -> StructureError:
    """Return the error for a ZIP64 structure that is not as it must be."""
    return StructureError(f"ZIP64: {message}", rule="R-4.3")
