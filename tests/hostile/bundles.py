"""Bundles that are meant to hurt: each asks for far more than its size.

Every one is right in its digests, so that it gets as far as its poison lets it.
"""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Callable

import zstandard
from blake3 import blake3

from tests.conformance.documents import (
    POLICY,
    Document,
    Run,
    Story,
    again,
    bundle_id,
    digest,
    replay_entries,
    replayed,
    tolerance,
)
from tests.format.forge import CHUNK, Forged, ForgedBundle, build_zip

MIB = 1 << 20
SMALL = {"README.txt": b"r", "project/a.py": b"1"}


def frame(data: bytes) -> bytes:
    """Return `data` as one zstd frame as the format wants it."""
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


# --- the container -------------------------------------------------------------------


def folders(count: int) -> bytes:
    """Return a bundle of that many names, each in thirty folders of its own."""
    names = [
        "/".join(["project", *(f"{n:x}-{level:x}-{'x' * 20}" for level in range(30))])
        for n in range(count)
    ]
    return build_zip([Forged(name) for name in [*names, "manifest.json"]])


def members(count: int) -> bytes:
    """Return a bundle of that many empty members."""
    files = {f"inputs/{n:07x}": b"" for n in range(count)}
    bundle = Story(files=files).forge()
    if count < 65_000:
        return bundle.build()
    return bundle.build(count=0xFFFF, total=0xFFFF, zip64={})


def repeated(chunks: int) -> bytes:
    """Return a bundle whose member is that many times 4 MiB of zeros."""
    plain = bytes(CHUNK)
    whole = blake3()
    for _ in range(chunks):
        whole.update(plain)
    return _claimed(chunks * CHUNK, frame(plain) * chunks, whole.hexdigest(), plain)


def claimed(size_bytes: int) -> bytes:
    """Return a bundle that states so many bytes, and holds one chunk."""
    return _claimed(size_bytes, frame(bytes(CHUNK)), "0" * 64, bytes(CHUNK))


def _claimed(size_bytes: int, stored: bytes, whole: str, chunk: bytes) -> bytes:
    bundle = Story(files={"inputs/x": b""}).forge()
    count = -(-size_bytes // CHUNK)
    bundle.change("inputs/x", size_bytes=size_bytes, blake3=whole)
    if count > 1:
        bundle.change("inputs/x", chunks=[digest(chunk)] * count)
    bundle.stored["inputs/x"] = ("inputs/x.zst", stored)
    return bundle.build()


def wide_window() -> bytes:
    """Return a bundle whose frame asks for a window of 1 GiB."""
    # Magic, descriptor (checksum, 8 bytes of size), window of 2^30, size, empty block.
    head = struct.pack("<IBBQ", 0xFD2FB528, 0b11000100, 20 << 3, CHUNK)
    return _claimed(CHUNK, head + b"\1\0\0" + bytes(4), "0" * 64, bytes(CHUNK))


def many_blocks() -> bytes:
    """Return a bundle whose frame has more empty blocks than a frame may have."""
    head = struct.pack("<IBBQ", 0xFD2FB528, 0b11000100, 12 << 3, CHUNK)
    stored = head + bytes(3) * 1_000_000 + b"\1\0\0" + bytes(4)
    return _claimed(CHUNK, stored, "0" * 64, bytes(CHUNK))


# --- documents -----------------------------------------------------------------------


def record(extra: bytes) -> bytes:
    """Return a bundle whose reference record ends with this text of JSON."""
    story = Story()
    made = story.runs[0][0].build()["record.json"]
    text = made.rstrip()[:-1] + b"," + extra + b"}\n"
    return Story(files={"runs/1/record.json": text}).forge().build()


def recorded(**changes: object) -> bytes:
    """Return a bundle whose reference record has these fields."""
    return Story(runs=[(Run(changes=changes), {})]).forge().build()


def newer_manifest(text: bytes) -> bytes:
    """Return a bundle of a newer minor version whose manifest has one more field."""
    bundle = ForgedBundle(SMALL)
    bundle.manifest["version"] = "1.9"
    bundle.entries()
    manifest = bundle.manifest_bytes().rstrip()[:-1] + b',"z":' + text + b"}\n"
    return build_zip(bundle.entries(manifest))


def policy(**fields: object) -> bytes:
    """Return a bundle with two differing replays' outputs and this policy."""
    outputs = {f"out{'a' * 20}{n}.txt": b"1\n" for n in range(40)}
    story = Story(runs=[(Run(outputs), {})], policy={**POLICY, **fields})
    return _with_replay(story, Run(dict.fromkeys(outputs, b"2\n"), beside={}))


def _with_replay(story: Story, run: Run) -> bytes:
    bundle = story.forge()
    bundle.unsealed += replay_entries(bundle_id(bundle), run)
    return bundle.build()


def replays(count: int) -> bytes:
    """Return a bundle with that many replays that agree with the reference."""
    return replayed(Story(), *[again()] * count).build()


# --- outputs -------------------------------------------------------------------------


def compared(
    name: str, kind: str, file_format: str, reference: bytes, replay: bytes
) -> bytes:
    """Return a bundle with a replay whose one output differs from the reference's."""

    def run(data: bytes) -> Run:
        told: Document = {
            "name": name,
            "kind": kind,
            "format": file_format,
            "size_bytes": len(data),
            "blake3": digest(data),
            "stored": "here",
            "member": f"outputs/{name}",
        }
        return Run({name: data}, {"outputs": [told]}, beside={})

    rules = [{"match": "*", "tolerance": {"rtol": 0.1, "atol": 0.1}, "reason": "r"}]
    text_rules = rules if kind in ("text", "log") else []
    story = Story(
        runs=[(run(reference), {})],
        policy={
            **POLICY,
            "tolerances": [tolerance("float32"), tolerance("number")],
            "outputs": text_rules,
            **({"author": "a", "reason": "r"} if text_rules else {}),
        },
    )
    return _with_replay(story, run(replay))


def npy(header: str, data: bytes) -> bytes:
    """Return a NumPy file, format 2.0, with this header."""
    text = f"{header}\n".encode()
    return b"\x93NUMPY\x02\x00" + struct.pack("<I", len(text)) + text + data


def safetensors(header: str, data: bytes) -> bytes:
    """Return a safetensors file with this header."""
    return struct.pack("<Q", len(header)) + header.encode() + data


def _arrays(file_format: str, make: Callable[[bytes], bytes]) -> bytes:
    return compared(f"x.{file_format}", "arrays", file_format, make(b"1"), make(b"2"))


def many_fields(count: int, rows: int) -> bytes:
    fields = [(f"{n:x}", "|u1") for n in range(count)]
    header = f"{{'descr':{fields!r},'fortran_order':False,'shape':({rows},)}}"
    return _arrays("npy", lambda last: npy(header, bytes(count * rows - 1) + last))


def many_axes(count: int) -> bytes:
    header = f"{{'descr':'|u1','fortran_order':False,'shape':({'1,' * count})}}"
    return _arrays("npy", lambda last: npy(header, last))


def deep_header(text: str) -> bytes:
    header = f"{{'descr':'|u1','fortran_order':False,'shape':{text}}}"
    return _arrays("npy", lambda last: npy(header, last))


def fortran_npz(mebibytes: int) -> bytes:
    header = f"{{'descr':'|u1','fortran_order':True,'shape':({mebibytes},{MIB})}}"

    def make(last: bytes) -> bytes:
        held = io.BytesIO()
        with (
            zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive,
            archive.open("a.npy", "w", force_zip64=True) as entry,
        ):
            entry.write(npy(header, b""))
            for _ in range(mebibytes - 1):
                entry.write(bytes(MIB))
            entry.write(bytes(MIB - 1) + last)
        return held.getvalue()

    return _arrays("npz", make)


def many_tensors(count: int) -> bytes:
    one = '{"dtype":"U8","shape":[0],"data_offsets":[0,0]}'
    rest = ",".join(f'"{n:x}":{one}' for n in range(count))
    header = f'{{"w":{{"dtype":"U8","shape":[1],"data_offsets":[0,1]}},{rest}}}'
    return _arrays("safetensors", lambda last: safetensors(header, last))


def huge_tensor(axes: int) -> bytes:
    shape = ",".join(["9223372036854775807"] * axes)
    header = f'{{"w":{{"dtype":"Q4","shape":[{shape}],"data_offsets":[0,1]}}}}'
    return _arrays("safetensors", lambda last: safetensors(header, last))


def nested_tensors(count: int) -> bytes:
    header = f'{{"w":[{"[]," * count}[]]}}'
    return _arrays("safetensors", lambda last: safetensors(header, last))


def document(text: bytes) -> bytes:
    """Return a bundle that compares this JSON with it and a blank."""
    return compared("x.json", "document", "json", text, text + b" ")


def notebook(pieces: int, first: int) -> bytes:
    stream = {"output_type": "stream", "name": "stdout", "text": "x"}
    outputs = [{**stream, "text": "y" * first}, *[stream] * pieces]
    cell = {"cell_type": "code", "source": "", "outputs": outputs}
    text = json.dumps({"cells": [cell], "nbformat": 4}).encode()
    return compared("x.ipynb", "document", "notebook", text, text + b" ")


def table(text: bytes) -> bytes:
    return compared("x.csv", "table", "csv", text, text + b"\n")


def wide_rows(rows: int, cell: int) -> bytes:
    line = b"x" * cell + b",1.5\n"
    return table(b"a,b\n" + line * rows)


def log(text: bytes) -> bytes:
    return compared("x.log", "log", "text", text + b"\n", text + b"b\n")


def jpeg_scans(count: int, picture: bytes) -> bytes:
    """Return a bundle with a picture whose last scan stands there again and again."""
    start = picture.rfind(b"\xff\xda")
    scan = picture[start:-2]

    def make(last: bytes) -> bytes:
        return picture[:start] + scan * count + b"\xff\xd9" + last

    return compared("x.jpg", "bytes", "bytes", make(b"1"), make(b"2"))


def png_claim(width: int, height: int) -> bytes:
    """Return a bundle with a picture that states that size and holds nothing."""

    def chunk(name: bytes, body: bytes) -> bytes:
        import zlib

        check = struct.pack(">I", zlib.crc32(name + body))
        return struct.pack(">I", len(body)) + name + body + check

    def make(last: bytes) -> bytes:
        import zlib

        head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
        parts = (
            chunk(b"IHDR", head),
            chunk(b"IDAT", zlib.compress(bytes(1000) + last)),
            chunk(b"IEND", b""),
        )
        return b"\x89PNG\r\n\x1a\n" + b"".join(parts)

    return compared("x.png", "bytes", "bytes", make(b"1"), make(b"2"))


def keys(count: int) -> bytes:
    return b"{" + b",".join(b'"%x":0.5' % n for n in range(count)) + b"}"
