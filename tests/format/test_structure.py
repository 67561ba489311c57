"""Every way in which the container's bytes can lie is refused with its own rule."""

from __future__ import annotations

import struct
import zipfile
import zlib

import pytest

from reprobundle.errors import (
    BundleError,
    LimitError,
    MissingMemberError,
    NotABundleError,
    StructureError,
    UnsafeNameError,
)

from .forge import Forged, ForgedBundle, build_zip


def test_a_forged_bundle_that_is_right_opens(open_bytes):
    assert "README.txt" in open_bytes(ForgedBundle().build()).members


def entry(entries: list[Forged], name: str) -> Forged:
    return next(e for e in entries if e.name == name)


def changed(name="inputs/x.csv", **changes):
    """A bundle in which one entry has other fields than it should."""
    entries = ForgedBundle().entries()
    target = entry(entries, name)
    for key, value in changes.items():
        if key in {"local", "central"}:
            getattr(target, key).update(value)
        elif key == "both":
            target.both(**value)
        else:
            setattr(target, key, value)
    return build_zip(entries)


def with_deflate():
    entries = ForgedBundle().entries()
    target = entry(entries, "inputs/x.csv")
    plain = target.data
    packer = zlib.compressobj(wbits=-15)
    target.data = packer.compress(plain) + packer.flush()
    target.both(method=8, size=len(plain), crc=zlib.crc32(plain))
    return build_zip(entries)


def with_overlap():
    entries = ForgedBundle().entries()
    first, second = entries[1], entries[2]
    inner = build_zip([Forged(second.name, second.data)])
    local = inner[: 30 + len(second.raw_name) + len(second.data)]
    first.data = local
    data = build_zip([*entries[:2], *entries[3:]])
    assert data.count(local) == 1
    entries[2].central["offset"] = data.index(local)
    return build_zip([*entries[:2], *entries[2:]])


def without_entry(name="inputs/x.csv"):
    return build_zip([e for e in ForgedBundle().entries() if e.name != name])


def with_entry(extra: Forged, before: str = "B3SUMS"):
    entries = ForgedBundle().entries()
    place = next(n for n, e in enumerate(entries) if e.name == before)
    return build_zip([*entries[:place], extra, *entries[place:]])


def swapped():
    entries = ForgedBundle().entries()
    entries[1], entries[2] = entries[2], entries[1]
    return build_zip(entries)


def unaligned():
    forged = ForgedBundle({"inputs/x.bin": b"x" * 20_000, "README.txt": b"r"})
    entries = forged.entries()
    entry(entries, "inputs/x.bin").local_extra = b""
    return build_zip(entries)


def changed_name():
    entries = ForgedBundle().entries()
    entry(entries, "inputs/x.csv").name = b"inputs/\xff.csv"
    return build_zip(entries)


def zip64_field(*values: int) -> bytes:
    return struct.pack(f"<HH{len(values)}Q", 1, 8 * len(values), *values)


WRONG = {
    "a file before the first entry": (
        lambda: ForgedBundle().build(prefix=b"#!/bin/sh\n"),
        StructureError,
        "R-4.11",
    ),
    "bytes between two entries": (
        lambda: changed(before=b"hidden"),
        StructureError,
        "R-4.11",
    ),
    "bytes before the directory": (
        lambda: ForgedBundle().build(between=b"hidden"),
        StructureError,
        "R-4.11",
    ),
    "bytes behind the directory": (
        lambda: ForgedBundle().build(hidden=b"hidden"),
        StructureError,
        "R-4.5",
    ),
    "a comment": (
        lambda: ForgedBundle().build(comment=b"hello"),
        StructureError,
        "R-4.2",
    ),
    "a comment that is only stated": (
        lambda: ForgedBundle().build(comment_bytes=3),
        StructureError,
        "R-4.2",
    ),
    "trailing bytes": (
        lambda: ForgedBundle().build(trailing=b"\n"),
        StructureError,
        "R-4.2",
    ),
    "an entry comment": (lambda: changed(comment=b"hello"), StructureError, "R-4.8"),
    "an overlap": (with_overlap, StructureError, "R-4.11"),
    "deflate": (with_deflate, StructureError, "R-4.6"),
    "zstd as a ZIP method, which unzip skips without an error": (
        lambda: changed(both={"method": 93, "version": 63}),
        StructureError,
        "R-4.6",
    ),
    "deflate in the local header alone": (
        lambda: changed(local={"method": 8}),
        StructureError,
        "R-4.6",
    ),
    "an encrypted entry": (
        lambda: changed(both={"flags": 0x801}),
        StructureError,
        "R-4.7",
    ),
    "a data descriptor": (
        lambda: changed(both={"flags": 0x808}, after=b"PK\x07\x08" + bytes(12)),
        StructureError,
        "R-4.7",
    ),
    "bytes like a data descriptor": (
        lambda: changed(after=b"PK\x07\x08" + bytes(12)),
        StructureError,
        "R-4.11",
    ),
    "a data descriptor that is only flagged": (
        lambda: changed(both={"flags": 0x808}),
        StructureError,
        "R-4.7",
    ),
    "no UTF-8 flag": (lambda: changed(both={"flags": 0}), StructureError, "R-4.7"),
    "a symbolic link": (
        lambda: changed(central={"external": 0o120777 << 16}),
        StructureError,
        "R-4.8",
    ),
    "a device": (
        lambda: changed(central={"external": 0o060644 << 16}),
        StructureError,
        "R-4.8",
    ),
    "a set-uid bit": (
        lambda: changed(central={"external": 0o104755 << 16}),
        StructureError,
        "R-4.8",
    ),
    "a time": (lambda: changed(both={"time": 7}), StructureError, "R-4.8"),
    "a time in the directory alone": (
        lambda: changed(central={"time": 7}),
        StructureError,
        "R-4.8",
    ),
    "another maker": (
        lambda: changed(central={"made_by": 20}),
        StructureError,
        "R-4.8",
    ),
    "another disk": (lambda: changed(central={"disk": 1}), StructureError, "R-4.8"),
    "internal attributes": (
        lambda: changed(central={"internal": 1}),
        StructureError,
        "R-4.8",
    ),
    "an extra field in the directory": (
        lambda: changed(central_extra=b"UT\x01\0x"),
        StructureError,
        "R-4.9",
    ),
    "an extra field in the local header": (
        lambda: changed(local_extra=b"UT\x01\0x"),
        StructureError,
        "R-4.9",
    ),
    "padding that is not zero": (
        lambda: changed(local_extra=b"FB\x04\0evil"),
        StructureError,
        "R-4.9",
    ),
    "padding beyond need": (
        lambda: changed(local_extra=b"FB\x64\0" + bytes(100)),
        StructureError,
        "R-4.9",
    ),
    "another name in the local header": (
        lambda: changed(local={"name": b"inputs/y.csv"}),
        StructureError,
        "R-4.10",
    ),
    "another checksum in the local header": (
        lambda: changed(local={"crc": 1}),
        StructureError,
        "R-4.10",
    ),
    "another size in the local header": (
        lambda: changed(local={"size": 5, "csize": 5}),
        StructureError,
        "R-4.10",
    ),
    "no local header": (
        lambda: changed(local={"signature": 0}),
        StructureError,
        "R-4.10",
    ),
    "a compressed size in the directory": (
        lambda: changed(central={"csize": 5}),
        StructureError,
        "R-4.12",
    ),
    "a size that reaches into the next entry": (
        lambda: changed(both={"size": 100, "csize": 100}),
        StructureError,
        "R-4.11",
    ),
    "a size that reaches into the directory": (
        lambda: changed("manifest.json", both={"size": 5000, "csize": 5000}),
        StructureError,
        "R-4.11",
    ),
    "large content that is not aligned": (unaligned, StructureError, "R-4.13"),
    "a name that is not UTF-8": (
        lambda: changed_name(),
        StructureError,
        "R-4.14",
    ),
    "ten million entries stated": (
        lambda: ForgedBundle().build(
            total=0xFFFF, zip64={"count": 10**7, "total": 10**7}
        ),
        LimitError,
        "R-4.4",
    ),
    "a directory of a terabyte stated": (
        lambda: ForgedBundle().build(size=0xFFFFFFFF, zip64={"size": 1 << 40}),
        LimitError,
        "R-4.4",
    ),
    "more entries stated than there are": (
        lambda: ForgedBundle().build(count=9, total=9),
        StructureError,
        "R-4.5",
    ),
    "fewer entries stated than there are": (
        lambda: ForgedBundle().build(count=3, total=3),
        StructureError,
        "R-4.5",
    ),
    "a directory said to lie elsewhere": (
        lambda: ForgedBundle().build(offset=3),
        StructureError,
        "R-4.5",
    ),
    "two totals that differ": (
        lambda: ForgedBundle().build(count=3),
        StructureError,
        "R-4.3",
    ),
    "a ZIP64 record without need": (
        lambda: ForgedBundle().build(zip64={}),
        StructureError,
        "R-4.5",
    ),
    "a full field without a ZIP64 record": (
        lambda: ForgedBundle().build(offset=0xFFFFFFFF),
        StructureError,
        "R-4.3",
    ),
    "a ZIP64 record used without need": (
        lambda: ForgedBundle().build(offset=0xFFFFFFFF, zip64={}),
        StructureError,
        "R-4.3",
    ),
    "a ZIP64 locator that points elsewhere": (
        lambda: ForgedBundle().build(count=0xFFFF, total=0xFFFF, zip64={"record": 7}),
        StructureError,
        "R-4.3",
    ),
    "a ZIP64 size for a small entry": (
        lambda: changed(
            central={"size": 0xFFFFFFFF, "csize": 0xFFFFFFFF},
            central_extra=zip64_field(8, 8),
        ),
        StructureError,
        "R-4.12",
    ),
    "a ZIP64 field that is missing": (
        lambda: changed(central={"size": 0xFFFFFFFF, "csize": 0xFFFFFFFF}),
        StructureError,
        "R-4.3",
    ),
    "an offset beyond every file": (
        lambda: changed(
            "manifest.json",
            central={"offset": 0xFFFFFFFF, "version": 45, "made_by": 3 << 8 | 45},
            central_extra=zip64_field((1 << 64) - 1),
        ),
        StructureError,
        "R-4.11",
    ),
    "a ZIP64 size of an exabyte": (
        lambda: changed(
            central={"size": 0xFFFFFFFF, "csize": 0xFFFFFFFF},
            central_extra=zip64_field(1 << 60, 1 << 60),
        ),
        StructureError,
        "R-4.11",
    ),
    "a member without an entry": (without_entry, MissingMemberError, "R-4.15"),
    "an entry without a member": (
        lambda: with_entry(Forged("runs/1/outputs/z.txt", b"?")),
        StructureError,
        "R-4.16",
    ),
    "entries in another order": (swapped, StructureError, "R-4.17"),
    "an entry twice": (
        lambda: with_entry(Forged("inputs/x.csv", b"a,b\n1,2\n")),
        UnsafeNameError,
        "R-5.8",
    ),
    "a file that is a folder too": (
        lambda: with_entry(Forged("inputs", b"?"), before="inputs/x.csv"),
        UnsafeNameError,
        "R-5.9",
    ),
    "an absolute name": (
        lambda: with_entry(Forged("/etc/passwd", b"?")),
        UnsafeNameError,
        "R-5.2",
    ),
    "a name with a backslash": (
        lambda: with_entry(Forged("inputs\\..\\x", b"?")),
        UnsafeNameError,
        "R-5.3",
    ),
    "a name with an escape sequence": (
        lambda: with_entry(Forged("inputs/\x1b[2J", b"?")),
        UnsafeNameError,
        "R-5.4",
    ),
    "a name that turns the text": (
        lambda: with_entry(Forged("inputs/\u202egpj.exe", b"?")),
        UnsafeNameError,
        "R-5.4",
    ),
    "a name in another Unicode form": (
        lambda: with_entry(Forged("inputs/e\u0301", b"?")),
        UnsafeNameError,
        "R-5.5",
    ),
    "a Windows device": (
        lambda: with_entry(Forged("inputs/nul.csv", b"?")),
        UnsafeNameError,
        "R-5.6",
    ),
    "a name of 60,000 bytes": (
        lambda: with_entry(Forged("inputs/" + "x" * 60_000, b"?")),
        UnsafeNameError,
        "R-5.7",
    ),
    "a twin by case": (
        lambda: with_entry(Forged("inputs/X.CSV", b"?")),
        UnsafeNameError,
        "R-5.8",
    ),
    "a folder entry": (
        lambda: with_entry(Forged("project/empty/", b"")),
        UnsafeNameError,
        "R-5.2",
    ),
    "an entry above its folder": (
        lambda: with_entry(Forged("inputs/../../x", b"?")),
        UnsafeNameError,
        "R-5.2",
    ),
    "an unsealed entry of another kind": (
        lambda: build_zip([*ForgedBundle().entries(), Forged("extra.txt", b"?")]),
        StructureError,
        "R-4.26",
    ),
    "a replay folder that is no digest": (
        lambda: build_zip(
            [*ForgedBundle().entries(), Forged("replays/1/record.json", b"{}")]
        ),
        StructureError,
        "R-4.26",
    ),
    "a replay without a record": (
        lambda: build_zip(
            [*ForgedBundle().entries(), Forged(f"replays/{'0' * 64}/a.txt", b"{}")]
        ),
        StructureError,
        "R-4.27",
    ),
    "a replay out of order": (
        lambda: build_zip(
            [
                *ForgedBundle().entries(),
                *(
                    Forged(f"replays/{'0' * 64}/{name}", b"{}")
                    for name in ("record.json", "b", "a")
                ),
            ]
        ),
        StructureError,
        "R-4.27",
    ),
    "a scattered replay": (
        lambda: build_zip(
            [
                *ForgedBundle().entries(),
                Forged(f"replays/{'0' * 64}/record.json", b"{}"),
                Forged(f"replays/{'1' * 64}/record.json", b"{}"),
                Forged(f"replays/{'0' * 64}/a.txt", b"{}"),
            ]
        ),
        StructureError,
        "R-4.27",
    ),
    "no manifest": (
        lambda: build_zip([Forged("hello.txt", b"hello")]),
        NotABundleError,
        "R-4.15",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_refuses(case, open_bytes):
    make, error, rule = WRONG[case]
    with pytest.raises(BundleError) as caught:
        open_bytes(make())
    assert (type(caught.value), caught.value.rule) == (error, rule), caught.value
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 400


NO_ZIP = {
    "an empty file": (b"", "the file is empty"),
    "a PDF": (b"%PDF-1.7\n" + b"x" * 500, "no ZIP file but a PDF document"),
    "a gzip file": (b"\x1f\x8b\x08" + bytes(500), "no ZIP file but a gzip file"),
    "text": (b"hello\n", "no ZIP file"),
    "an LFS pointer": (
        b"version https://git-lfs.github.com/spec/v1\n",
        "no ZIP file but a Git LFS pointer",
    ),
}


@pytest.mark.parametrize("case", NO_ZIP)
def test_says_what_a_file_is_that_is_no_bundle(case, open_bytes):
    data, message = NO_ZIP[case]
    with pytest.raises(NotABundleError) as caught:
        open_bytes(data)
    assert caught.value.message.startswith(f"{message} [R-4.1]") or (
        str(caught.value).startswith(message)
    )
    assert caught.value.rule == "R-4.1"


def test_a_bundle_zipped_again_is_told_apart_from_a_damaged_one(tmp_path, open_bytes):
    again = tmp_path / "again.zip"
    with zipfile.ZipFile(again, "w", zipfile.ZIP_DEFLATED) as archive:
        for item in ForgedBundle().entries():
            archive.writestr(item.raw_name.decode(), item.data)
    with pytest.raises(StructureError, match="zipped it again; use the original"):
        open_bytes(again.read_bytes())


SMALLEST = {"README.txt": b"r\n", "project/train.py": b"print('hello')\n"}


def test_every_truncation_of_a_small_bundle_is_refused(open_bytes):
    data = ForgedBundle(SMALLEST).build()
    tail = len(data) - 500
    for length in [*range(0, tail, 3), *range(tail, len(data))]:
        with pytest.raises(BundleError) as caught:
            open_bytes(data[:length])
        assert isinstance(caught.value, NotABundleError | StructureError), length


def test_every_flipped_bit_outside_of_content_is_refused_on_opening(open_bytes):
    forged = ForgedBundle(SMALLEST)
    data = forged.build()
    content = bytearray(len(data))
    for path, (_, stored) in forged.stored.items():
        start = data.index(path.encode()) + len(path)
        content[start : start + len(stored)] = b"\1" * len(stored)
        assert data[start : start + len(stored)] == stored
    opened = []
    for place in range(len(data)):
        broken = bytearray(data)
        broken[place] ^= 1 << place % 8
        try:
            open_bytes(bytes(broken))
        except BundleError:
            continue
        opened.append(place)
    assert opened, "flipped content must be found by its digest, not on opening"
    assert [place for place in opened if not content[place]] == []
